"""Suggest next in a real viewer, answered with real keys on the real canvas."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.session.cells import CellNames, question_words, shown_diameter
from bridgetrack.ui.layers import camera_of
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of
from session_fixtures import FRAMES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def state(open_short, viewer, qtbot):
    """A state whose first questions are there, with the keys on the canvas."""
    widget = open_short()
    state = state_of(viewer)
    state.widget = widget
    widget.open_step(1)
    state.session.questions.prepare()
    qtbot.waitUntil(lambda: bool(state.session.questions.active.queue), timeout=20_000)
    return state


@pytest.fixture
def asked(state, hand, qtbot):
    """As `state`, with G pressed."""
    hand.key("G")
    assert state.session.questions.current is not None
    return state


def kinds(state):
    """What was answered."""
    return [a.kind for a in state.session.annotations]


def test_a_question_is_shown_left_come_back_to_and_ended(asked, hand, viewer, qtbot):
    # G goes to the event.
    question, widget = asked.session.questions.current, asked.widget
    assert widget.step == 1
    said = question_words(question, asked.session.names)
    assert widget.annotate.question.text() == said and " #" in said
    assert widget.annotate.choices.count() == 1 + len(question.alternatives)
    # Where tracks get other numbers, the pictures have them, too, and are not gone meanwhile.
    frames = widget.annotate.frames
    qtbot.waitUntil(lambda: len(frames.pictures) > 0, timeout=20_000)
    before = [button.icon().cacheKey() for button in frames.buttons]
    with pytest.MonkeyPatch.context() as renamed:
        renamed.setattr(CellNames, "__call__", lambda self, cell: "#999")
        asked.session.tracking_changed.emit()
        assert frames.pictures
        qtbot.waitUntil(
            lambda: all(
                b.icon().cacheKey() != key for b, key in zip(frames.buttons, before, strict=True)
            ),
            timeout=20_000,
        )
    assert asked.canvas.frame == question.frame
    middle = np.array(question.position[-2:]) * 0.645
    near = 3 * shown_diameter(asked.session.scene.detections) * 0.645
    assert np.abs(camera_of(viewer).center[-2:] - middle).max() < near
    assert viewer.layers.selection.active is asked.canvas.overlay.events
    written = asked.canvas.overlay.marks
    qtbot.waitUntil(
        lambda: any("frame" in str(t) for t in written.features["text"]), timeout=20_000
    )
    strip = widget.annotate.frames
    assert [p.frame for p in strip.pictures] == [question.frame, question.last_frame]
    for k, frame in ((1, question.last_frame), (0, question.frame)):
        qtbot.mouseClick(strip.buttons[k], Qt.MouseButton.LeftButton)
        assert [b.isChecked() for b in strip.buttons] == [k == 0, k == 1]
        assert asked.canvas.frame == frame, "a click on a picture shows its frame"
        qtbot.wait(50)
        assert len(asked.canvas.overlay.marks.data) > 5, "cells are outlined in either frame"
    hand.key("G")
    # G comes back from another frame, and escape ends it.
    question = asked.session.questions.current
    far = (question.frame + 3) % FRAMES
    viewer.dims.set_point(0, far)
    qtbot.wait(30)
    assert asked.canvas.frame == far
    hand.key("G")
    assert asked.session.questions.current is question
    assert asked.canvas.frame == question.frame
    camera = camera_of(viewer)
    camera.zoom = camera.zoom / 2
    zoom = camera.zoom
    # Who presses a key twice has not seen what comes then.
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr("bridgetrack.ui.annotator.GLANCE", 1e6)
        for key in ("Return", "2", "Backspace", "U"):
            hand.key(key)
            assert "look at it, then answer" in asked.widget.notice.text(), key
            asked.widget.notice.say("", "")
        asked.annotator.choose(1)  # a click in the list
        assert "look at it, then answer" in asked.widget.notice.text()
        assert not len(asked.session.annotations)
        assert asked.session.questions.current is question
    hand.key("Return")
    assert camera.zoom == zoom, "the zoom chosen stays"
    assert len(asked.session.annotations) == 1
    hand.key("Escape")
    assert asked.annotator.picking.mode == Mode.REVIEW
    hint = asked.widget.annotate.hint
    qtbot.waitUntil(lambda: "Point at a cell" in hint.text(), timeout=20_000)
    detections = asked.session.scene.detections
    row = int(np.flatnonzero(detections.frame == asked.canvas.frame)[0])
    asked.annotator.point_at(row)
    assert asked.annotator.proposals
    hand.key("Z")
    # Deleting the overlay is survived deleting the cells ends it.
    viewer.layers.remove(asked.canvas.overlay.events)
    qtbot.wait(30)
    asked.widget.annotate.next.click()
    assert asked.canvas.overlay.events in viewer.layers
    hand.key("Return")
    assert len(asked.session.annotations) == 1
    viewer.layers.remove("cells")
    qtbot.waitUntil(lambda: asked.session.movie is None, timeout=20_000)
    assert asked.session.questions.current is None
    hint = asked.widget.annotate.hint
    qtbot.waitUntil(lambda: "Choose a movie" in hint.text(), timeout=20_000)
    assert not len(asked.canvas.overlay.marks.data), "nothing of it is left on the image"
    viewer.dims.ndisplay = 3  # frames as a volume: drawing that raises nothing
    qtbot.wait(100)


def test_the_queue_goes_on_while_it_learns(asked, hand, viewer, qtbot):
    panel, window = asked.widget.annotate, asked.widget.window()
    yes, lengths = panel.actions["accept"], set()
    qtbot.waitUntil(panel.question.isVisible, timeout=20_000)
    qtbot.wait(100)
    place = yes.mapTo(window, yes.rect().center())
    for k in range(9):
        qtbot.waitUntil(lambda: asked.session.questions.current is not None, timeout=20_000)
        qtbot.wait(50)
        # The mouse stays where it is: Yes is below it at every question, however long.
        lengths.add(len(panel.question.text() + panel.reason.text()))
        assert yes.mapTo(window, yes.rect().center()) == place
        assert window.childAt(place) is yes
        qtbot.mouseClick(yes, Qt.MouseButton.LeftButton)
        assert len(asked.session.annotations) == k + 1
    assert len(lengths) > 2
    qtbot.waitUntil(lambda: not asked.session.questions.busy, timeout=20_000)
    asked.widget.open_step(2)
    train = asked.widget.train
    assert train.plot.isVisible() == bool(asked.session.questions.report.points)
    assert "9 answers" in train.verdict.text()
    assert "too few to say how accurate it is" in train.verdict.text()
