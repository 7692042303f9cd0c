"""Answers by real keys and clicks on the real canvas, in one window."""

import numpy as np
import pytest
from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtWidgets import QApplication
from scipy.ndimage import distance_transform_edt

from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.cells import proposals
from bridgetrack.tracks.table import track_table
from bridgetrack.ui.layers import camera_of
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of
from session_fixtures import MIDDLE, chosen_event
from window import press, settled, texts_on, undone


@pytest.mark.slow
def test_answers_by_keys_and_clicks(open_short, viewer, hand, qtbot, tmp_path):
    widget = open_short()
    state = state_of(viewer)
    seen = camera_of(viewer).center, camera_of(viewer).zoom
    for part in (
        clicks_and_keys_work_whichever_layer_is_active,
        answers_are_given_and_undone,
        looking_and_browsing_answer_nothing,
        an_end_and_a_beginning_are_named,
        keys_are_about_a_cell_in_view,
        clicks_on_nothing_answer_nothing,
    ):
        widget.open_step(1)
        undone(state.session, qtbot)
        camera_of(viewer).center, camera_of(viewer).zoom = seen
        hand.key("Escape")
        state.annotator.point_at(-1)
        part(state, widget, viewer, hand, qtbot, tmp_path)


def moving(state, qtbot):
    """Row and position of a cell of frame 2 that moves on, with frame 2 in view."""
    state.canvas.show(2, None)
    qtbot.wait(50)
    detections = state.session.scene.detections
    middle = np.abs(detections.position - MIDDLE).max(axis=1) < 55
    for row in np.flatnonzero((detections.frame == 2) & middle):
        event = chosen_event(state.session.tracking, int(row))
        if event.event == Event.MOVE:
            return int(row), detections.position[row]
    raise AssertionError("no cell moves")


def answers_are_given_and_undone(state, widget, viewer, hand, qtbot, _):
    # Hovering shows the proposal.
    row, place = moving(state, qtbot)
    hand.point(place)
    assert state.annotator.hovered == row
    assert state.annotator.proposals
    drawn = texts_on(state)
    assert any("%" in t for t in drawn)
    # On the image as in words.
    names, best = state.session.names, state.annotator.proposals[0].event
    name = names(best.sources[0])
    assert name.startswith("#") and any(t.startswith(f"{name} ●") for t in drawn)
    hand.key("Return")
    table = widget.annotate.given
    said = table.listed.data(table.listed.index(0))
    assert said == f"● {names(best.sources[0])} in frame 2 continues"
    hand.key("Z")
    # Events of one cell are a key and enter.
    for key, event in (("L", Event.DISAPPEAR), ("A", Event.APPEAR)):
        hand.point(place)
        hand.key(key)
        assert len(state.session.annotations) == 0
        assert any("? [Enter]" in text for text in texts_on(state))
        hand.key("Return")
        assert [a.events[0].event for a in state.session.annotations] == [event]
        hand.key("Z")
        assert len(state.session.annotations) == 0
    hand.key("Escape")
    # Connect by key and click.
    session = state.session
    settled(session, qtbot)
    target = chosen_event(session.tracking, row).targets[0]
    hand.point(place)
    hand.key("C")
    assert state.annotator.picking.mode == Mode.MOVE
    assert state.canvas.frame == 2
    hand.key("Return")
    assert state.canvas.frame == 3
    assert len(state.canvas.overlay.marks.data) > 5, "the cell picked is outlined"
    hand.click(np.array(target.position) * 0.645)
    (answer,) = session.annotations
    assert answer.events[0].event == Event.MOVE
    assert state.canvas.frame == 2
    hand.key("Escape")
    assert state.annotator.picking.mode == Mode.REVIEW


def looking_and_browsing_answer_nothing(state, widget, viewer, hand, qtbot, _):
    # The overlay is the active layer.
    assert viewer.layers.selection.active is state.canvas.overlay.events
    row, place = moving(state, qtbot)
    # Browsing the modes answers nothing.
    session, annotator = state.session, state.annotator
    hand.point(place)
    assert annotator.outlined == row
    before = session.masks.labels.channel_frame(2).copy()
    for key in "CYKJE":
        hand.key(key)
        assert annotator.picking.empty and state.canvas.frame == 2, key
    assert len(session.annotations) == 0 and len(session.masks.answers) == 0
    assert not session.can_undo
    np.testing.assert_array_equal(session.masks.labels.channel_frame(2), before)
    hand.key("Escape")
    # Dragging pans and annotates nothing.
    before = camera_of(viewer).center
    start = hand._pixel(place)
    hand.qtbot.mousePress(hand.canvas, Qt.MouseButton.LeftButton, pos=start)
    for k in range(1, 6):
        hand.move(start + QPoint(12 * k, 0), held=True)
    hand.qtbot.mouseRelease(hand.canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(60, 0))
    assert len(state.session.annotations) == 0
    assert camera_of(viewer).center != before
    camera_of(viewer).center = before
    qtbot.wait(50)


def an_end_and_a_beginning_are_named(state, widget, viewer, hand, qtbot, tmp_path):
    fates = widget.annotate.fates
    session, annotator = state.session, state.annotator

    def named(letter):
        qtbot.wait(QApplication.keyboardInputInterval() + 100)  # letters before it are of no word
        qtbot.keyClicks(fates, letter)

    named("d")  # dies
    assert not len(session.annotations), "no cell is chosen"
    row, place = moving(state, qtbot)
    hand.click(place)
    named("d")
    settled(session, qtbot)
    [answer] = session.annotations
    assert (answer.named, answer.events[0].event) == ("death", Event.DISAPPEAR)
    listed = widget.annotate.given.listed
    assert listed.words(listed.answers[0]).endswith("dies") and "dies" in widget.notice.text()
    tracks = session.tracking.tracks
    mine = tracks.nodes.loc[tracks.nodes["id"] == row, "track_id"].iloc[0]
    table = track_table(tracks).set_index("track_id")
    assert table.loc[mine, "ends_in"] == "death"
    after = int(np.flatnonzero(session.scene.detections.frame == 3)[0])
    annotator.select(after)
    annotator.name_fate("birth")
    born = list(session.annotations)[-1]
    assert (born.named, born.events[0].event) == ("birth", Event.APPEAR)


def empty_place(state, hand):
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


def keys_are_about_a_cell_in_view(state, widget, viewer, hand, qtbot, _):
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
    camera.zoom = zoom
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


def clicks_on_nothing_answer_nothing(state, widget, viewer, hand, qtbot, _):
    session, annotator = state.session, state.annotator
    row = next(r for r in range(200) if len(proposals(session.tracking, r)) > 1)
    for key, step in (("Escape", 3), ("F", 3), ("Escape", 0)):
        widget.open_step(3)
        annotator.select(row)
        qtbot.wait(50)
        assert annotator.outlined >= 0
        hand.key(key)
        widget.open_step(step)
        hand.click(empty_place(state, hand))
        assert annotator.outlined == -1, "the choice is cleared"
        hand.key("Return")
        assert len(session.annotations) == 0


def clicks_and_keys_work_whichever_layer_is_active(state, widget, viewer, hand, qtbot, _):
    detections = state.session.scene.detections
    here = np.flatnonzero(detections.frame == detections.frame[3])[2:5]
    places = detections.position[here]
    state.canvas.show(int(detections.frame[3]), None)
    qtbot.wait(50)
    viewer.layers.selection.active = viewer.layers["short"]
    hand.point(places[0])
    hand.key("Return")
    assert len(state.session.annotations) == 1
    cells = viewer.layers["cells"]
    viewer.layers.selection.active, cells.mode = cells, "pick"
    hand.click(places[1])
    assert viewer.layers.selection.active is cells, "the tool stays in the hand"
    cells.mode = "pan_zoom"
    before = len(state.session.annotations)
    hand.click(places[2])
    assert viewer.layers.selection.active is state.canvas.overlay.events
    hand.key("Return")
    assert len(state.session.annotations) == before + 1
    session = state.session
    # What was wrong is over with the next thing that somebody does.
    widget.open_step(3)
    session.message.emit("error", "this cannot be read")
    assert widget.notice.isVisible()
    press(qtbot, widget.track.explore)
    assert not widget.notice.isVisible()
