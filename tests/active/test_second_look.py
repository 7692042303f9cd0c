"""An answer that the model had not thought of is asked about once more."""

from __future__ import annotations

from dataclasses import replace

from active.active_cases import session
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import WIDE, Suggestion, still_asked, unexpected
from bridgetrack.annotations.annotation import EventRef, Kind


def question(one: ActiveSession) -> Suggestion:
    asked = one.next()
    assert asked is not None
    return asked


def without_last(asked: Suggestion) -> tuple[Suggestion, EventRef]:
    """A question with one event less, and that event."""
    short = replace(asked, alternatives=asked.alternatives[:-1], beliefs=asked.beliefs[:-1])
    return short, asked.alternatives[-1]


def slipped() -> tuple[ActiveSession, Suggestion, Suggestion]:
    """A session after an unexpected answer: the question, and the second look that follows."""
    one = session()
    asked, unlisted = without_last(question(one))
    assert unexpected(asked, unlisted)
    one.answer(asked, unlisted, seconds=2.0)
    return one, asked, question(one)


def test_the_next_question_is_a_second_look() -> None:
    one, asked, again = slipped()
    assert again.again in one.annotations
    assert again.slot == asked.slot
    assert one.annotations[again.again].events[0].key == again.event.key
    assert again.alternatives[0].key == asked.event.key
    assert len(again.beliefs) == 1 + len(again.alternatives)
    assert not one.wants_update


def test_listed_answers_are_not_looked_at_again() -> None:
    one = session()
    asked = replace(question(one), margin=0.9 * WIDE)
    one.answer(asked, asked.alternatives[0])
    assert not question(one).again
    assert not unexpected(asked, asked.event)


def test_the_same_answer_stays_and_counts_as_a_click() -> None:
    one, _, again = slipped()
    kept = one.answer(again, seconds=3.0)
    assert kept.id == again.again
    assert len(one.annotations) == 1
    assert (one.effort.clicks, one.effort.seconds) == (2, 5.0)
    assert one.records[0].right is False
    assert not question(one).again


def test_another_answer_takes_its_place() -> None:
    one, asked, again = slipped()
    noted = one.answer(again, asked.event, seconds=1.0)
    assert [a.id for a in one.annotations] == [noted.id]
    (record,) = one.counted
    assert record.right is True
    assert (record.looks, record.seconds) == (2, 3.0)
    assert not question(one).again


def test_cannot_tell_takes_the_answer_back() -> None:
    one, _, again = slipped()
    one.cannot_tell(again)
    assert [a.kind for a in one.annotations] == [Kind.CANNOT_TELL]


def test_nothing_is_asked_again_after_an_undo() -> None:
    one, _, again = slipped()
    one.answers.undo()
    assert not still_asked(one.annotations, again)
    assert not question(one).again
