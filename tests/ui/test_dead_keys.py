"""Clicks and keys reach the overlay, unless a tool of a layer is in the hand."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


def test_clicks_and_keys_work_whichever_layer_is_active(open_short, viewer, hand, qtbot):
    widget = open_short()
    widget.open_step(1)
    state = state_of(viewer)
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
    # What nobody could tell is not counted as learned from.
    session, annotator = state.session, state.annotator
    while session.can_undo:
        session.undo()
    for row, key in zip(range(4), ("Return", "Return", "Return", "U"), strict=True):
        annotator.select(10 * row)
        hand.key(key)
    assert len(session.annotations) == 4
    widget.open_step(2)
    assert widget.train.words.text().startswith("3 answers to learn from")
    # What was wrong is over with the next thing that somebody does.
    widget.open_step(3)
    session.message.emit("error", "this cannot be read")
    assert widget.notice.isVisible()
    qtbot.mouseClick(widget.track.explore, Qt.MouseButton.LeftButton)
    assert not widget.notice.isVisible()
