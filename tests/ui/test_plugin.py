"""The plugin in a real viewer, with real mouse and keys on the real canvas."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPushButton,
    QSlider,
    QWidget,
)

from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.files import load_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.tracks.colours import colouring
from bridgetrack.ui.explore_panel import ExplorePanel
from bridgetrack.ui.layers import camera_of, find_role, look_at
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.shortcuts import SHORTCUTS
from bridgetrack.ui.state import state_of
from session_fixtures import MIDDLE, chosen_event

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def state(open_short, viewer):
    open_short().open_step(1)
    return state_of(viewer)


@pytest.fixture
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


def looking_and_browsing_answer_nothing(state, hand, moving, viewer, qtbot):
    # The overlay is the active layer.
    assert viewer.layers.selection.active is state.canvas.overlay.events
    # A proposal is drawn in its own frame only.
    row, place = moving
    state.annotator.point_at(row)
    qtbot.wait(20)
    assert len(state.canvas.overlay.marks.data) > 0
    state.canvas.show(5, None)
    state.annotator.point_at(row)
    qtbot.wait(20)
    assert len(state.canvas.overlay.marks.data) == 0
    state.canvas.show(2, None)
    qtbot.wait(50)
    # Browsing the modes answers nothing.
    session, annotator = state.session, state.annotator
    hand.point(place)
    assert annotator.outlined == row
    before = session.masks.labels.channel_frame(2).copy()
    for key in "CYLAFKJNEO":
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


def test_answers_by_keys_and_clicks(state, hand, moving, viewer, qtbot):
    answers_are_given_and_undone(state, hand, moving, qtbot)
    while state.session.can_undo:
        state.session.undo()
    hand.key("Escape")
    qtbot.waitUntil(lambda: not state.session.busy("correct", "track"), timeout=20_000)
    looking_and_browsing_answer_nothing(state, hand, moving, viewer, qtbot)


def answers_are_given_and_undone(state, hand, moving, qtbot):
    # Hovering shows the proposal.
    row, place = moving
    before = len(state.canvas.overlay.marks.data)
    hand.point(place)
    assert state.annotator.hovered == row
    assert state.annotator.proposals
    assert len(state.canvas.overlay.marks.data) > before
    drawn = {str(t) for t in state.canvas.overlay.marks.features["text"]}
    assert any("%" in t for t in drawn)
    # On the image as in words.
    names, best = state.session.names, state.annotator.proposals[0].event
    assert names(best.sources[0]).startswith("#") and names(best.sources[0]) in drawn
    hand.key("Return")
    table = state.viewer.window.dock_widgets["Bridgetrack (bridgetrack)"].annotate.given
    said = table.listed.data(table.listed.index(0))
    assert said == f"frame 2: ● {names(best.sources[0])} continues"
    hand.key("Z")
    # Events of one cell are a key and enter.
    for key, event in (("F", Event.FALSE), ("L", Event.DISAPPEAR), ("A", Event.APPEAR)):
        hand.point(place)
        hand.key(key)
        assert len(state.session.annotations) == 0
        assert any("? [Enter]" in str(t) for t in state.canvas.overlay.marks.features["text"])
        hand.key("Return")
        assert [a.events[0].event for a in state.session.annotations] == [event]
        hand.key("Z")
        assert len(state.session.annotations) == 0
    hand.key("Escape")
    # Connect by key and click.
    session = state.session
    # The tracks follow the last undo in the background.
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=20_000)
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
    hand.key("Z")
    # The mode stays and its key does not mark the same cell again.
    detections = state.session.scene.detections
    near = np.abs(detections.position - MIDDLE).max(axis=1) < 55
    other = next(int(r) for r in np.flatnonzero((detections.frame == 2) & near) if r != row)
    hand.key("F")
    hand.click(place)
    hand.key("F")
    hand.click(detections.position[other])
    cells = [a.cells[0].cell for a in state.session.annotations]
    assert cells == [(2, int(detections.label[r])) for r in (row, other)]
    for key in ("Escape", "Z", "Z"):
        hand.key(key)
    assert len(session.annotations) == 0
    # Click enter backspace numbers undo redo; the tracks follow the last undo in the background.
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=20_000)
    expected = chosen_event(session.tracking, row)
    hand.click(place)
    hand.key("Return")
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
    qtbot.waitUntil(lambda: not session.busy("correct"), timeout=20_000)
    assert chosen_event(session.tracking, row).key != expected.key
    wanted = state.annotator.proposals[1].event
    hand.key("2")
    assert wanted.key in [a.events[0].key for a in session.annotations]
    assert load_annotations(session.answers.path) == session.annotations


CONTROLS = (
    QPushButton, QCheckBox, QComboBox, QAbstractSpinBox, QSlider, QLineEdit, QAbstractItemView,
)  # fmt: skip


def controls(panel):
    """What a person can click or type into; a control may be made of others."""

    def inner(widget):
        above = widget.parentWidget()
        while above is not panel:
            if isinstance(above, CONTROLS):
                return True
            above = above.parentWidget()
        return False

    return [x for x in panel.findChildren(QWidget) if isinstance(x, CONTROLS) and not inner(x)]


def test_the_window_has_few_controls_and_keys(viewer):
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    widget.track.open_explorer()
    [below] = widget.window().findChildren(ExplorePanel)
    sliders = 2  # each brings a field for its number, which is hidden
    n_controls = len(controls(widget)) + len(controls(below)) - sliders
    assert n_controls <= 60, "take one away for each that you add"
    assert widget.minimumSizeHint().width() <= 370
    assert sum(len(shortcut.keys) for shortcut in SHORTCUTS) <= 25


def test_tracks_are_shown_and_follow_corrections(open_short, viewer, hand, qtbot):
    widget = open_short()
    state = state_of(viewer)
    assert find_role(viewer.layers, "tracks") is None
    # Other tracks come just when the layer is added, before it is drawn.

    def change(event):
        state.session.tracking_changed.emit()

    viewer.layers.events.inserted.connect(change)
    widget.open_step(3)  # shows them, without a button
    qtbot.waitUntil(lambda: find_role(viewer.layers, "tracks") is not None, timeout=20_000)
    viewer.layers.events.inserted.disconnect(change)
    layer = find_role(viewer.layers, "tracks")
    qtbot.waitUntil(lambda: layer.visible, timeout=20_000)
    fates = state.session.tracking.tracks.events
    row = int(fates.loc[fates["event"] == "divide", "sources"].iloc[0][0])
    state.annotator.select(row)
    before = chosen_event(state.session.tracking, row)
    data = layer.data.copy()
    hand.key("Backspace")
    qtbot.waitUntil(
        lambda: chosen_event(state.session.tracking, row).key != before.key, timeout=20_000
    )
    qtbot.waitUntil(lambda: not np.array_equal(data, layer.data), timeout=20_000)
    before = layer.track_colors.copy()
    widget.track.colour.setCurrentIndex(1)
    found = colouring(state.session.tracking.tracks, "certainty")
    qtbot.waitUntil(lambda: np.allclose(layer.track_colors[:, :3], found.colours, atol=1e-3))
    assert not np.allclose(layer.track_colors, before)


def test_two_viewers_do_not_interfere(another_viewer, qtbot, pixels):
    # Not shown: drawing several windows in turn may fail without a graphics card.
    one, two = another_viewer(shown=False), another_viewer(shown=False)
    _, labels = pixels
    for v, n in ((one, 3), (two, 4)):
        v.add_labels(labels[:n].copy(), name="cells")
        v.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    sessions = [state_of(v).session for v in (one, two)]
    qtbot.waitUntil(lambda: all(s.tracking is not None for s in sessions), timeout=20_000)
    assert [s.scene.detections.geometry.n_frames for s in sessions] == [3, 4]
    state_of(one).canvas.show(0, None)
    state_of(one).annotator.point_at(3)
    state_of(one).annotator.accept()
    assert [len(s.annotations) for s in sessions] == [1, 0]
    # Closing during work is clean.
    sessions[1].tracker.measure()
    assert sessions[1].busy("measure")
    two.close()
    QApplication.processEvents()


def test_stacks_work_in_slices(stack, viewer, hand, qtbot):
    widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")[1]
    state = state_of(viewer)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=20_000)
    widget.open_step(1)
    state.canvas.show(1, (2.0, 15.0, 16.0))
    qtbot.wait(50)
    assert state.canvas.frame == 1
    assert state.canvas.plane == pytest.approx(2)
    hand.click((7.5, 8.0))
    hand.key("Return")
    (answer,) = state.session.annotations
    assert answer.events[0].sources[0].cell == (1, 1)
    hand.click((7.5, 20.5))
    hand.key("Return")
    assert len(state.session.annotations) == 1, "the second cell is not in this plane"
    qtbot.wait(20)
    assert len(state.canvas.overlay.marks.data) > 0
    state.canvas.show(1, (6.0, 45.0, 45.0))
    state.annotator.point_at(-1)
    qtbot.wait(20)
    assert len(state.canvas.overlay.marks.data) == 0
    # Where the volume is in view, everything is drawn in its own plane and nothing hides it.
    widget.track.explore.click()
    [below] = widget.window().findChildren(ExplorePanel)
    qtbot.waitUntil(lambda: below.numbers is not None, timeout=20_000)
    viewer.dims.ndisplay = 3
    viewer.dims.set_point(0, 1)
    for label, (z, y, x) in {1: (2, 15, 16), 2: (5, 15, 41)}.items():
        look_at(viewer, (1, 2.0 * z, y / 2, x / 2))
        qtbot.wait(100)
        hand.click((y / 2, x / 2))
        assert state.session.scene.detections.label[state.annotator.hovered] == label
        marks = state.canvas.overlay.marks
        assert marks.ndim == 3 and abs(np.median(marks.data[:, 0]) - z) <= 1
        assert marks.blending == marks.text.blending == "translucent_no_depth"
        cell = state.annotator.hovered
        assert state.looks.chosen == (below.numbers.track_of(cell),), "the panel below follows"
    assert len(state.session.annotations) == 1, "clicks choose and answer nothing"
    # A question is asked in its plane.
    viewer.dims.ndisplay = 2
    state.annotator.suggest()
    qtbot.waitUntil(lambda: state.session.questions.current is not None, timeout=20_000)
    question = state.session.questions.current
    assert state.canvas.plane == pytest.approx(question.asked.position[0], abs=0.51)
    qtbot.waitUntil(lambda: len(state.canvas.overlay.marks.data) > 5, timeout=20_000)
    hand.key("Return")
    assert len(state.session.annotations) == 2
