"""Ticks in step 4 say which kinds of events there are; the others are not proposed."""

from __future__ import annotations

from bridgetrack.hypotheses.events import Event, EventKinds
from bridgetrack.ui.state import state_of
from doubtful_kind import as_if


def test_kinds_of_events_are_unticked_and_asked_about_where_none_is_clear(
    open_short, viewer, qtbot
):
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

    # What is not ticked is not proposed.
    assert (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert panel.divide.isChecked()
    panel.divide.click()
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.tracking.scene.kinds.divisions,
        timeout=60_000,
    )
    assert not (session.tracking.scene.hypotheses.event == Event.DIVIDE).any()
    assert not panel.divide.isChecked()
