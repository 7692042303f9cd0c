"""A second look at an unexpected answer, as it is met in the window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.picking import Mode


@pytest.fixture
def surprised(asked):
    """After an answer by its key that the question did not list."""
    first = asked.until(lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    listed = [k for k, e in enumerate(first.alternatives) if e.event != Event.DISAPPEAR]
    asked.questions.current = replace(
        first,
        alternatives=tuple(first.alternatives[k] for k in listed),
        beliefs=(first.beliefs[0], *(first.beliefs[k + 1] for k in listed)),
    )
    asked.annotator.start(Mode.DISAPPEAR)
    asked.annotator.accept()
    return asked, first


def test_the_question_comes_back_with_the_answer_as_proposal(surprised):
    asked, first = surprised
    again = asked.questions.current
    assert again.again == asked.answers[0].id
    assert again.slot == first.slot
    assert again.event.event == Event.DISAPPEAR
    assert again.alternatives[0].key == first.event.key
    assert "once more" in again.reason
    assert asked.looked[-1] is again


def test_the_first_proposal_takes_its_place_and_undo_brings_it_back(surprised):
    asked, first = surprised
    asked.annotator.choose(2)
    assert [a.events[0].key for a in asked.answers] == [first.event.key]
    assert [r.right for r in asked.questions.active.counted] == [True]
    asked.annotator.undo()
    assert [a.events[0].event for a in asked.answers] == [Event.DISAPPEAR]
    assert asked.questions.current.again == asked.answers[0].id
    asked.annotator.undo()
    assert asked.answers == []
    assert asked.questions.current.slot == first.slot
    assert not asked.questions.current.again
