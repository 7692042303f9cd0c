"""The plugin in a real viewer, with real mouse and keys on the real canvas."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.store import load_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.proposals import chosen_event
from bridgetrack.ui.layers import find_role
from bridgetrack.ui.picking import Mode

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def desk(open_short, viewer):
    from bridgetrack.ui.viewer_state import desk_of

    open_short("Bridgetrack").open_step(1)
    return desk_of(viewer)


@pytest.fixture
def moving(desk, qtbot):
    """Row and position of a cell of frame 2 that moves on, with frame 2 in view."""
    desk.canvas.show(2, None)
    qtbot.wait(50)
    detections = desk.session.scene.detections
    middle = np.abs(detections.position - 126).max(axis=1) < 80
    for row in np.flatnonzero((detections.frame == 2) & middle):
        event = chosen_event(desk.session.tracking, int(row))
        if event.event == Event.MOVE:
            return int(row), detections.position[row]
    raise AssertionError("no cell moves")


def test_the_installed_manifest_is_the_one_at_the_top_level():
    ours = Path(__file__).parents[2] / "napari.yaml"
    installed = files("bridgetrack_manifest") / "napari.yaml"
    assert installed.read_text() == ours.read_text(), "install the package again"


def test_the_overlay_is_the_active_layer(desk, viewer):
    assert viewer.layers.selection.active is desk.canvas.events_layer


def test_hovering_shows_the_proposal(desk, hand, moving):
    row, place = moving
    before = len(desk.canvas.marks_layer.data)
    hand.point(place)
    assert desk.annotator.hovered == row
    assert desk.annotator.proposals
    assert len(desk.canvas.marks_layer.data) > before
    assert any("%" in str(t) for t in desk.canvas.marks_layer.features["text"])


def test_a_proposal_is_drawn_in_its_own_frame_only(desk, moving):
    row, _ = moving
    desk.annotator.point_at(row)
    assert len(desk.canvas.marks_layer.data) > 0
    desk.canvas.show(5, None)
    desk.annotator.point_at(row)
    assert len(desk.canvas.marks_layer.data) == 0


def test_click_enter_backspace_numbers_undo_redo(desk, hand, moving, qtbot):
    session, (row, place) = desk.session, moving
    expected = chosen_event(session.tracking, row)
    hand.click(place)
    assert [a.events[0].key for a in session.annotations] == [expected.key]
    hand.key("Z", control=True)
    assert len(session.annotations) == 0
    hand.key("R")
    assert len(session.annotations) == 1
    hand.key("Z")
    hand.key("Return")
    assert [a.kind for a in session.annotations] == [Kind.CONFIRM]
    hand.key("Backspace")
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=5000)
    assert chosen_event(session.tracking, row).key != expected.key
    wanted = desk.annotator.proposals[1].event
    hand.key("2")
    assert wanted.key in [a.events[0].key for a in session.annotations]
    hand.key("D")
    assert len(session.annotations.at(*expected.sources[0].cell)) == 0
    assert load_annotations(session.answers.path) == session.annotations


def test_connect_by_key_and_click(desk, hand, moving):
    session, (row, place) = desk.session, moving
    target = chosen_event(session.tracking, row).targets[0]
    hand.point(place)
    hand.key("C")
    assert desk.annotator.picking.mode == Mode.MOVE
    assert desk.canvas.frame == 3
    assert len(desk.canvas.marks_layer.data) > 5, "the cell picked is outlined"
    hand.click(np.array(target.position) * 0.645)
    (answer,) = session.annotations
    assert answer.events[0].event == Event.MOVE
    assert desk.canvas.frame == 2
    hand.key("Escape")
    assert desk.annotator.picking.mode == Mode.REVIEW


@pytest.mark.parametrize(
    ("key", "event"), [("F", Event.FALSE), ("L", Event.DISAPPEAR), ("A", Event.APPEAR)]
)
def test_events_of_one_cell_are_one_key(desk, hand, moving, key, event):
    hand.point(moving[1])
    hand.key(key)
    assert [a.events[0].event for a in desk.session.annotations] == [event]


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        ("Y", Mode.DIVIDE),
        ("M", Mode.MERGE),
        ("X", Mode.SPLIT),
        ("S", Mode.SWAP),
        ("V", Mode.REVIEW),
    ],
)
def test_keys_choose_the_mode(desk, hand, key, mode):
    hand.key(key)
    assert desk.annotator.picking.mode == mode


def test_dragging_pans_and_annotates_nothing(desk, hand, moving, viewer, qtbot):
    from qtpy.QtCore import QPoint, Qt

    from bridgetrack.ui.layers import camera_of

    before = camera_of(viewer).center
    start = hand._pixel(moving[1])
    hand.qtbot.mousePress(hand.canvas, Qt.MouseButton.LeftButton, pos=start)
    for k in range(1, 6):
        hand.move(start + QPoint(12 * k, 0), held=True)
    hand.qtbot.mouseRelease(hand.canvas, Qt.MouseButton.LeftButton, pos=start + QPoint(60, 0))
    assert len(desk.session.annotations) == 0
    assert camera_of(viewer).center != before


def test_deleting_the_segmentation_ends_the_work(desk, viewer, qtbot):
    assert desk.session.source is not None
    viewer.layers.remove("cells")
    qtbot.waitUntil(lambda: desk.session.source is None, timeout=2000)
    assert desk.session.tracking is None


def test_closing_during_work_is_clean(open_short, viewer, pixels):
    from bridgetrack.ui.viewer_state import desk_of

    desk = desk_of(viewer)
    _, labels = pixels
    viewer.add_labels(labels.copy(), name="cells")
    viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    from qtpy.QtWidgets import QApplication

    QApplication.processEvents()
    assert desk.session.busy("measure")
    viewer.close()
    QApplication.processEvents()


def test_wrong_layers_explain_themselves(viewer, qtbot):
    viewer.add_labels(np.zeros((10, 10), dtype=int), name="flat")
    _, panel = viewer.window.add_plugin_dock_widget("bridgetrack", "Segment")
    qtbot.waitUntil(panel.source.notice.isVisible, timeout=2000)
    assert "time" in panel.source.notice.text()


def test_tracks_are_shown_and_follow_corrections(open_short, viewer, hand, qtbot):
    from bridgetrack.ui.viewer_state import desk_of

    widget = open_short("Bridgetrack")
    desk = desk_of(viewer)
    widget.open_step(3)
    assert find_role(viewer.layers, "tracks") is None
    widget.track.go.click()
    qtbot.waitUntil(lambda: widget.track.doubts.rowCount() > 5, timeout=5000)
    layer = find_role(viewer.layers, "tracks")
    assert layer is not None
    widget.track.doubts.cellClicked.emit(0, 0)
    row = desk.annotator.hovered
    assert row >= 0
    before = chosen_event(desk.session.tracking, row)
    data = layer.data.copy()
    hand.key("Backspace")
    qtbot.waitUntil(
        lambda: chosen_event(desk.session.tracking, row).key != before.key, timeout=5000
    )
    qtbot.waitUntil(lambda: not np.array_equal(data, layer.data), timeout=5000)
    widget.track.colour.setCurrentIndex(1)
    assert layer.color_by == "certainty"


def test_export_writes_what_is_ticked(open_short, tmp_path, qtbot):
    widget = open_short("Bridgetrack")
    widget.open_step(3)
    widget.track.go.click()
    box = widget.track.export
    qtbot.waitUntil(lambda: box.preview.rowCount() == 5, timeout=5000)
    box.geff.setChecked(True)
    box.ctc.setChecked(True)
    box.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in box.words.text(), timeout=10_000)
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"detections.csv", "ctc", "tracks.geff"} <= names


def test_two_viewers_do_not_interfere(make_napari_viewer, qtbot, pixels):
    from bridgetrack.ui.viewer_state import desk_of

    one, two = make_napari_viewer(show=True), make_napari_viewer(show=True)
    _, labels = pixels
    for v, n in ((one, 3), (two, 4)):
        v.add_labels(labels[:n].copy(), name="cells")
        v.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    sessions = [desk_of(v).session for v in (one, two)]
    qtbot.waitUntil(lambda: all(s.tracking is not None for s in sessions), timeout=20_000)
    assert [s.scene.detections.geometry.n_frames for s in sessions] == [3, 4]
    desk_of(one).annotator.point_at(3)
    desk_of(one).annotator.accept()
    assert [len(s.annotations) for s in sessions] == [1, 0]


def test_stacks_work_in_slices(stack, viewer, hand, qtbot):
    from bridgetrack.ui.viewer_state import desk_of

    widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")[1]
    desk = desk_of(viewer)
    qtbot.waitUntil(lambda: desk.session.tracking is not None, timeout=20_000)
    widget.open_step(1)
    desk.canvas.show(1, (2.0, 15.0, 16.0))
    qtbot.wait(50)
    assert desk.canvas.frame == 1
    assert desk.canvas.plane == pytest.approx(2)
    hand.click((7.5, 8.0))
    (answer,) = desk.session.annotations
    assert answer.events[0].sources[0].cell == (1, 1)
    hand.click((7.5, 20.5))
    assert len(desk.session.annotations) == 1, "the second cell is not in this plane"
    assert len(desk.canvas.marks_layer.data) > 0
    desk.canvas.show(1, (6.0, 45.0, 45.0))
    desk.annotator.leave()
    assert len(desk.canvas.marks_layer.data) == 0
