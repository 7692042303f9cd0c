"""Ticks in step 4 say which kinds of events there are; the others are not proposed."""

from __future__ import annotations

from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.panel import state_of


def test_what_is_not_ticked_is_not_proposed(open_short, viewer, qtbot):
    widget = open_short("Bridgetrack")
    panel = widget.track
    session = state_of(viewer).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert (session.tracking.scene.hypotheses.event == Event.MERGE).any()
    box = panel.kinds["merges"]
    assert box.value
    box.native.click()
    qtbot.waitUntil(
        lambda: session.tracking is not None and session.tracking.scene.kinds.words == ("merges",),
        timeout=60_000,
    )
    assert not (session.tracking.scene.hypotheses.event == Event.MERGE).any()
    assert not box.value
