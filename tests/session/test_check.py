"""While a sample is judged, nothing else takes the place of its questions or of a judgement."""

from __future__ import annotations

import pytest

from bridgetrack.annotations.annotation import Kind


@pytest.fixture
def questions(session):
    """Asking about a sample of the tracks, after a question of the model was answered."""
    session.answer(session.ask(), "yes")
    session.questions.check_sample(4)
    session.questions.take_keys(True)
    return session.questions


def test_its_question_stays_where_it_is_passed_on(session, questions):
    asked, queue = questions.current, questions.active.queue
    session.answer(asked, "skip")
    assert session.ask() is asked and asked.sampled
    assert questions.active.queue == queue


def test_what_is_said_of_its_events_elsewhere_is_an_answer_and_judges_nothing(session, questions):
    asked = questions.current
    session.edits.note(Kind.CONFIRM, asked.event, "click")
    assert [a.source for a in session.annotations][1:] == ["click"]
    assert questions.check.sample.left == (0, 1, 2, 3) and questions.current.sampled


def test_judgements_are_no_answers_and_are_taken_back_apart_from_them(session, questions):
    session.edits.note(Kind.CONFIRM, questions.check.sample.events[3], "click")
    tracking = session.tracking
    for answer in ("yes", "no", "cannot tell"):
        session.answer(session.ask(), answer)
    assert questions.check.sample.verdicts == ("yes", "no", "?", "")
    assert len(session.annotations) == 2 and session.tracking is tracking
    assert questions.take_back() and session.ask().number == 2
    session.undo()
    session.undo()
    assert questions.check.sample.verdicts == ("yes", "no", "", "")
    assert not len(session.annotations) and session.ask().number == 2
