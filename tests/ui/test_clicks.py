"""Clicks on nothing answer nothing, and keys are about a cell that can be seen."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import QEvent
from qtpy.QtWidgets import QApplication
from scipy.ndimage import distance_transform_edt

from bridgetrack.annotations.annotation import Kind, describe
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.cells import proposals
from bridgetrack.ui.layers import camera_of
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of
from session_fixtures import MIDDLE, chosen_event

pytestmark = pytest.mark.filterwarnings("ignore")


def empty_place(state, hand) -> tuple[float, float]:
    """The place in view of the shown frame that is farthest from all cells, in world units."""
    labels = state.canvas.labels
    away = distance_transform_edt(np.asarray(labels.data[state.canvas.frame]) == 0)
    inside = hand.canvas.rect().adjusted(20, 20, -20, -20)
    order = np.argsort(-away, axis=None)
    for y, x in np.column_stack(np.unravel_index(order[:20_000:50], away.shape)):
        world = (float(y) * labels.scale[-2], float(x) * labels.scale[-1])
        if away[y, x] > 3 and inside.contains(hand._pixel(world)):
            return world
    raise AssertionError("no empty place is in view")


def answers(session) -> int:
    return len(session.annotations)


def clicks_on_nothing_answer_nothing(widget, viewer, hand, qtbot):
    widget.open_step(3)
    state = state_of(viewer)
    session, annotator = state.session, state.annotator
    rows = [r for r in range(200) if len(proposals(session.tracking, r)) > 1]

    def choose(k: int) -> None:
        annotator.select(rows[k])
        qtbot.wait(50)
        assert annotator.outlined >= 0
        assert answers(session) == 0

    def click_nothing() -> None:
        hand.click(empty_place(state, hand))
        assert answers(session) == 0
        assert annotator.outlined == -1, "the choice is cleared"

    choose(0)
    click_nothing()
    for key, shift in (("F", False), ("V", True), ("B", False)):
        choose(1)
        hand.key(key, shift=shift)
        click_nothing()
        hand.key("Return")
        assert answers(session) == 0
        hand.key("Escape")
    for step in (1, 2, 0):
        widget.open_step(3)
        choose(2)
        widget.open_step(step)
        click_nothing()


def keys_are_about_a_cell_in_view(viewer, hand, qtbot):
    state = state_of(viewer)
    session, annotator, camera = state.session, state.annotator, camera_of(viewer)
    detections = session.scene.detections
    middle = np.abs(detections.position - MIDDLE).max(axis=1) < 55
    row = next(int(r) for r in np.flatnonzero(middle) if len(proposals(session.tracking, r)) > 1)
    state.canvas.activate()
    zoom = camera.zoom
    for key in ("Return", "2", "Backspace", "U"):
        annotator.select(row)
        centre, camera.zoom = camera.center, 20
        camera.center = (*centre[:-2], centre[-2] + 100, centre[-1])
        hand.key(key)
        assert len(session.annotations) == 0, f"{key} is about a cell outside of the canvas"
    # Another frame.
    camera.zoom = zoom
    annotator.select(row)
    viewer.dims.set_current_step(0, int(detections.frame[row]) + 1)
    hand.move(hand._pixel(empty_place(state, hand)))
    hand.key("Return")
    assert len(session.annotations) == 0
    # The pointer leaves the image: a cell that it only passed over is not chosen.
    viewer.mouse_over_canvas = True
    hand.point(detections.position[row] * state.canvas.labels.scale[1:])
    QApplication.sendEvent(viewer.window._qt_viewer, QEvent(QEvent.Type.Leave))
    assert annotator.outlined == -1
    hand.key("Return")
    assert len(session.annotations) == 0
    # Back in view it is chosen still.
    annotator.select(row)
    hand.key("Return")
    assert [a.kind for a in session.annotations] == [Kind.CONFIRM]


def test_only_a_cell_that_is_seen_is_answered_about(open_short, viewer, hand, qtbot):
    widget = open_short()
    keys_are_about_a_cell_in_view(viewer, hand, qtbot)
    hand.key("Z")
    clicks_on_nothing_answer_nothing(widget, viewer, hand, qtbot)


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
