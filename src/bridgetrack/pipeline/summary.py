"""What came out of tracking, in numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridgetrack.annotations.anchored import event_refs
from bridgetrack.annotations.words import describe_event
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.tracks import Tracks


def count_events(tracks: Tracks) -> dict[str, int]:
    """Numbers of what was found: cells, tracks, lineages and every kind of event."""
    found = tracks.events["event"].value_counts()
    counts = {
        "frames": tracks.geometry.n_frames,
        "cells": len(tracks.nodes),
        "tracks": tracks.n_tracks,
        "lineages": int(tracks.nodes["lineage_id"].nunique()),
    }
    return counts | {event.key: int(found.get(event.key, 0)) for event in Event}


def least_certain(tracking: Tracking, count: int = 5) -> list[dict[str, Any]]:
    """Chosen events whose margin to the best alternative is smallest, in words.

    Appearances in the first and disappearances in the last frame are no choice and are left out.
    """
    margins = np.where(tracking.solution.chosen, tracking.margins, np.nan)
    rows = np.flatnonzero(np.isfinite(margins))
    rows = rows[np.argsort(margins[rows], kind="stable")][:count]
    hypotheses = tracking.scene.hypotheses
    refs = event_refs(
        tracking.scene.detections,
        hypotheses.event[rows],
        hypotheses.sources[rows],
        hypotheses.targets[rows],
    )
    return [
        {
            "event": ref.event.key,
            "frame": ref.cells[0].frame,
            "cells": [list(c.cell) for c in ref.cells],
            "margin": float(margins[row]),
            "words": describe_event(ref),
        }
        for row, ref in zip(rows.tolist(), refs, strict=True)
    ]


def use_of_annotations(tracking: Tracking) -> dict[str, Any]:
    """How many annotations were used, and why others were not."""
    anchored, constraints = tracking.scene.anchored, tracking.scene.constraints
    lost = [{"id": item.id, "reason": f"{item.cell}: {item.reason}"} for item in anchored.lost]
    unused = [{"id": item.id, "reason": item.reason} for item in constraints.unused]
    return {
        "given": len(anchored.annotations),
        "used": len(set(constraints.ids)),
        "lost": lost,
        "unused": unused,
    }
