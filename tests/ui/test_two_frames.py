"""Both frames of a question in the panel."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.filterwarnings("ignore")


def test_both_frames_are_shown_and_a_click_goes_there(open_short, viewer, qtbot):
    from qtpy.QtCore import QPoint, Qt

    from bridgetrack.ui.panel import state_of

    widget = open_short()
    state, strip = state_of(viewer), widget.suggest.frames
    assert not strip.isVisible()
    widget.by_model.click()
    qtbot.waitUntil(lambda: len(strip.pictures) == 2, timeout=20_000)
    question = state.session.questions.current
    assert strip.isVisible()
    assert [p.frame for p in strip.pictures] == [question.frame, question.last_frame]
    before = strip.pictures
    for spot, frame in ((strip.width() - 40, question.last_frame), (40, question.frame)):
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(spot, 40))
        assert state.canvas.frame == frame
    shown = strip.grab().toImage()
    assert shown.width() >= 2 * 60
    state.annotator.accept()
    qtbot.waitUntil(
        lambda: len(strip.pictures) == 2 and strip.pictures is not before, timeout=20_000
    )
    assert strip.pictures[0].frame == state.session.questions.current.frame
    state.annotator.stop_asking()
    qtbot.waitUntil(lambda: not strip.isVisible(), timeout=20_000)
