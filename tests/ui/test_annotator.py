"""What clicks and keys mean, without Qt."""

from __future__ import annotations

import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.session.cells import chosen_event
from bridgetrack.ui.picking import Mode


def test_accepting_twice_is_one_answer(session, annotator, at, row):
    annotator.click(*at(row))
    assert len(session.annotations) == 0, "a click only chooses"
    annotator.accept()
    annotator.accept()
    assert len(session.annotations) == 1


def test_rejecting_changes_the_proposal_and_undo_brings_it_back(session, annotator, at, row):
    before = chosen_event(session.tracking, row)
    annotator.hover(*at(row))
    annotator.reject()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    after = chosen_event(session.tracking, row)
    assert after.key != before.key
    assert annotator.proposals[0].event.key == after.key
    # Pressed twice, a key says nothing of what it brought into view.
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr("bridgetrack.ui.annotator.GLANCE", 1e6)
        for again in (annotator.reject, annotator.cannot_tell, annotator.accept):
            again()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    annotator.undo()
    assert chosen_event(session.tracking, row).key == before.key
    annotator.redo()
    assert chosen_event(session.tracking, row).key == after.key


def test_a_contradicting_answer_replaces_the_earlier_in_one_step(session, annotator, at, said, row):
    annotator.click(*at(row))
    annotator.accept()
    other = annotator.proposals[1].event
    annotator.choose(2)
    assert [a.events[0].key for a in session.annotations] == [other.key]
    assert any("replaces" in words for _, words in said)
    annotator.undo()
    assert len(session.annotations) == 1
    assert [a.events[0].key for a in session.annotations] != [other.key]


def test_a_click_on_nothing_says_so(session, annotator, at, said, row):
    annotator.set_mode(Mode.MOVE)
    annotator.click(*at(row))
    annotator.click(1, (-5.0, -5.0))
    assert "no cell here" in said[-1][1]
    assert len(session.annotations) == 0
