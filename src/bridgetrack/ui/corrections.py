"""Answers that correct a link of the present tracks."""

from __future__ import annotations

from bridgetrack.annotations.annotation import EventRef
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.ui.proposals import chosen_event

SOURCE = "correction"
"""Source noted in such answers."""


def exchanged(tracking: Tracking, one: int, two: int) -> tuple[EventRef, EventRef] | None:
    """Moves of two cells (by their rows) with their successors exchanged.

    None unless both are in one frame and move on.
    """
    a, b = chosen_event(tracking, one), chosen_event(tracking, two)
    if a is None or b is None or not a.event == b.event == Event.MOVE:
        return None
    if a.sources[0].frame != b.sources[0].frame:
        return None
    return EventRef(Event.MOVE, a.sources, b.targets), EventRef(Event.MOVE, b.sources, a.targets)
