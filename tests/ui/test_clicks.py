"""Pointing at cells makes answers, without a window."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind, describe
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.cells import proposals
from bridgetrack.ui.picking import Mode
from session_fixtures import chosen_event


def test_a_click_is_about_the_cell_under_the_pointer(session, annotator, at, row):
    other = next(
        r
        for r in np.flatnonzero(session.scene.detections.frame == at(row)[0]).tolist()
        if r != row and proposals(session.tracking, r)
    )
    annotator.hover(*at(other))
    annotator.select(row)  # by a list, while the pointer rests on another cell
    annotator.click(*at(other))
    assert len(session.annotations) == 0 and annotator.outlined == other
    annotator.click(*at(other))
    assert len(session.annotations) == 0
    annotator.accept()
    (answer,) = session.annotations
    assert (at(other)[0], int(session.scene.detections.label[other])) in [
        c.cell for c in answer.cells
    ]
    annotator.select(row)
    annotator.set_mode(Mode.FALSE)
    annotator.click(*at(other))
    event = list(session.annotations)[-1].events[0]
    assert event.event == Event.FALSE
    assert event.cells[0].label == int(session.scene.detections.label[other])


def test_accepting_twice_is_one_answer(session, annotator, at, row):
    annotator.click(*at(row))
    assert len(session.annotations) == 0, "a click only chooses"
    annotator.accept()
    annotator.accept()
    assert len(session.annotations) == 1


def test_rejecting_changes_the_proposal_and_undo_brings_it_back(session, annotator, at, said, row):
    before = chosen_event(session.tracking, row)
    annotator.hover(*at(row))
    annotator.reject()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    after = chosen_event(session.tracking, row)
    assert after.key != before.key
    assert annotator.proposals[0].event.key == after.key
    assert "What happened instead? Press its number" in said[-1][1]
    # Pressed twice, a key says nothing of what it brought into view.
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr("bridgetrack.ui.annotator.GLANCE", 1e6)
        for again in (annotator.reject, annotator.cannot_tell, annotator.accept):
            again()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    (answer,) = session.annotations
    no = describe(answer, session.names)
    assert session.undo_words == no and no.startswith("not: #")
    annotator.undo()
    assert said[-1][1] == f"Undone: {no}. Redo (R) brings it back."
    assert annotator.hint.startswith("Point at a cell")
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
