"""The plugin in a real viewer, with real mouse and keys on the real canvas."""

import numpy as np
import pytest
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

from bridgetrack.ui.canvas import SHORTCUTS
from bridgetrack.ui.explore_panel import ExplorePanel
from window import plugin, tracked

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
    _, widget = plugin(viewer)
    widget.track.open_explorer()
    [below] = widget.window().findChildren(ExplorePanel)
    sliders = 2  # each brings a field for its number, which is hidden
    n_controls = len(controls(widget)) + len(controls(below)) - sliders
    assert n_controls <= 60, "take one away for each that you add"
    assert widget.minimumSizeHint().width() <= 370
    assert sum(len(shortcut.keys) for shortcut in SHORTCUTS) <= 25


def test_two_viewers_do_not_interfere(another_viewer, qtbot, pixels):
    # Not shown: drawing several windows in turn may fail without a graphics card.
    one, two = another_viewer(shown=False), another_viewer(shown=False)
    _, labels = pixels
    for v, n in ((one, 3), (two, 4)):
        v.add_labels(labels[:n].copy(), name="cells")
    states = [plugin(v)[0] for v in (one, two)]
    sessions = [state.session for state in states]
    for session in sessions:
        tracked(session, qtbot)
    assert [s.scene.detections.geometry.n_frames for s in sessions] == [3, 4]
    states[0].canvas.show(0, None)
    states[0].annotator.point_at(3)
    states[0].annotator.accept()
    assert [len(s.annotations) for s in sessions] == [1, 0]
    # Closing during work is clean.
    sessions[1].tracker.measure()
    assert sessions[1].busy("measure")
    two.close()
    QApplication.processEvents()


def test_stacks_work_in_slices(stack, viewer, hand, qtbot):
    state, widget = plugin(viewer)
    tracked(state.session, qtbot)
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
    viewer.dims.ndisplay = 3
    viewer.dims.set_point(0, 1)
    state.annotator.select(int(np.flatnonzero(state.session.scene.detections.frame == 1)[0]))
    qtbot.wait(100)
    marks = state.canvas.overlay.marks
    assert marks.ndim == 3 and abs(np.median(marks.data[:, 0]) - 2) <= 1
    assert marks.blending == marks.text.blending == "translucent_no_depth"
    hand.click((7.5, 20.5))
    assert len(state.session.annotations) == 1, "clicks turn the volume"
    # A question is asked in its plane.
    viewer.dims.ndisplay = 2
    state.annotator.suggest()
    qtbot.waitUntil(lambda: state.session.questions.current is not None)
    question = state.session.questions.current
    assert state.canvas.plane == pytest.approx(question.asked.position[0], abs=0.51)
    qtbot.waitUntil(lambda: len(state.canvas.overlay.marks.data) > 5)
    hand.key("Return")
    assert len(state.session.annotations) == 2
