"""Trackings with a few events of a kind that are not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import Tracking


def as_if(tracking: Tracking, margins: Sequence[float], kind: Event = Event.MERGE) -> Tracking:
    """The tracking with some events of a kind more, of these margins."""
    rows = tracking.scene.hypotheses.of(kind)[: len(margins)]
    chosen, known = tracking.solution.chosen.copy(), tracking.margins.copy()
    chosen[rows], known[rows] = True, margins
    return replace(tracking, solution=replace(tracking.solution, chosen=chosen), margins=known)
