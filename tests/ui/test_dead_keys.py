"""Where clicks and keys go to another layer, the panel says so and leads back."""

from __future__ import annotations

import pytest
from qtpy.QtCore import Qt

from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


def test_another_active_layer_is_told_and_a_button_leads_back(open_short, viewer, hand, qtbot):
    widget = open_short()
    widget.open_step(1)
    state = state_of(viewer)
    place = state.session.scene.detections.position[3]
    state.canvas.show(int(state.session.scene.detections.frame[3]), None)
    qtbot.wait(50)
    assert not widget.elsewhere.isVisible()
    viewer.layers.selection.active = viewer.layers["short"]
    hand.click(place)
    hand.key("Return")
    assert len(state.session.annotations) == 0
    qtbot.waitUntil(widget.elsewhere.isVisible, timeout=20_000)
    assert "“short”" in widget.where.text()
    qtbot.mouseClick(widget.back, Qt.MouseButton.LeftButton)
    assert not widget.elsewhere.isVisible()
    hand.click(place)
    hand.key("Return")
    assert len(state.session.annotations) == 1
    viewer.layers.selection.active = viewer.layers["cells"]
    widget.open_step(0)
    qtbot.wait(100)
    assert not widget.elsewhere.isVisible(), "there is nothing to answer in step 1"


def test_what_nobody_could_tell_is_not_counted_as_learned_from(open_short, viewer, hand, qtbot):
    widget = open_short()
    widget.open_step(1)
    session, annotator = state_of(viewer).session, state_of(viewer).annotator
    for row, key in zip(range(4), ("Return", "Return", "Return", "U"), strict=True):
        annotator.select(10 * row)
        hand.key(key)
    assert len(session.annotations) == 4
    widget.open_step(2)
    assert widget.train.words.text().startswith("3 answers to learn from")
