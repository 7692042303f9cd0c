"""Ticks in step 4 say which kinds of events there are; the others are not proposed."""

from __future__ import annotations

from bridgetrack.hypotheses.events import Event, EventKinds
from bridgetrack.ui.state import state_of
from doubtful_kind import as_if


def test_what_is_not_ticked_is_not_proposed(open_short, viewer, qtbot):
    widget = open_short()
    panel = widget.track
    session = state_of(viewer).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert panel.divide.isChecked()
    panel.divide.click()
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.tracking.scene.kinds.divisions,
        timeout=60_000,
    )
    assert not (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert not panel.divide.isChecked()


def test_a_kind_that_is_nowhere_clear_is_asked_about(open_short, viewer, qtbot):
    widget = open_short()
    panel, session = widget.track, state_of(viewer).session
    box = panel.unclear
    widget.open_step(3)
    assert not box.isVisibleTo(panel), "cells are clear here"

    session.tracking = as_if(session.tracking, [0.2, 0.9, 0.0])
    session.tracking_changed.emit()
    assert box.isVisibleTo(panel) and box.words.text().startswith("3 merges were found")
    box.none.click()
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.busy("measure", "track"),
        timeout=60_000,
    )
    assert session.kinds == EventKinds(merges=False)
    assert not box.isVisibleTo(panel)
