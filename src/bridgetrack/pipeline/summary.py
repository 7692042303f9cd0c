"""What came out of tracking, in numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import NOUN, describe_event
from bridgetrack.hypotheses.events import ODD, Event, kind_words
from bridgetrack.inference.margins import smallest_first, smallest_margins
from bridgetrack.notes import plural
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.tracks import Tracks

LEAST = 3
"""Events of a kind below which nothing is said: one or two may well be doubtful."""
CLEAR = 1.0
"""Margin, or lower bound on it, from which on an event is clear, in contradicted annotations.

On movies for development the clearest of three or more events of a kind that a movie does not have
reaches 0.7 (once 2.1), of one that it has 1.1 to 6.5."""


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


_COUNTED = {
    "divide": ("division", "divisions"),
    "appear": ("appearance", "appearances"),
    "disappear": ("disappearance", "disappearances"),
    "skip": ("cell missed for some frames", "cells missed for some frames"),
    "merge": ("merge", "merges"),
    "split": ("cell cut in two", "cells cut in two"),
    "false": ("false detection", "false detections"),
}


def count_words(counts: dict[str, int]) -> str:
    """The numbers of `count_events` in words; kinds of events that do not occur are left out."""
    size = f"{plural(counts['cells'], 'cell')} in {plural(counts['frames'], 'frame')}"
    found = [plural(counts["tracks"], "track"), plural(counts["lineages"], "lineage")]
    found += [plural(counts[key], *words) for key, words in _COUNTED.items() if counts[key]]
    return f"{size}: {', '.join(found)}"


def least_certain(tracking: Tracking, count: int = 5) -> list[dict[str, Any]]:
    """Chosen events whose margin to the best alternative is smallest, in words.

    Appearances in the first and disappearances in the last frame are no choice and are left out.
    Where a margin is too hard to find, as in windows or where hundreds of events are tied, what it
    is at least is given, and ``at_least`` is true.
    """
    scene, exact = tracking.scene, False
    if tracking.windows is not None:
        known = np.flatnonzero(np.isfinite(tracking.margins) & tracking.solution.chosen)
        rows = known[smallest_first(tracking.margins[known], known)[:count]]
        margins = tracking.margins[rows]
    else:
        given = tracking.scores, tracking.solution, tracking.margins
        found = smallest_margins(scene.problem, *given, count, scene.constraints.allowed)
        rows, margins, exact = found
    refs = event_refs(scene.detections, scene.hypotheses.take(rows))
    return [
        {
            "event": ref.event.key,
            "frame": ref.cells[0].frame,
            "cells": [list(c.cell) for c in ref.cells],
            "margin": margin,
            "words": describe_event(ref),
            **({} if exact else {"at_least": True}),
        }
        for margin, ref in zip(margins.tolist(), refs, strict=True)
    ]


def use_of_annotations(tracking: Tracking) -> dict[str, Any]:
    """How many annotations were used, and why others were not."""
    anchored, constraints = tracking.scene.anchored, tracking.scene.constraints
    lost = [{"id": item.id, "reason": f"{item.cell}: {item.reason}"} for item in anchored.lost]
    unused = [{"id": name, "reason": why} for name, why in constraints.unused.items()]
    return {
        "given": len(anchored.annotations),
        "used": len(set(constraints.ids)),
        "lost": lost,
        "unused": unused,
    }


def unclear_kinds(tracking: Tracking) -> dict[Event, int]:
    """How many events there are of every kind of which none is clear, the most frequent first.

    Masks that are right give no skips, splits, merges and false detections; those that are chosen
    then are nearly as good as something else. Where such events are real, some of them are clear,
    as are those that answers confirm. A person is asked; nothing is left out unasked.
    """
    event, chosen = tracking.scene.hypotheses.event, tracking.solution.chosen
    found = {}
    for kind in ODD:
        margins = tracking.margins[chosen & (event == kind)]
        if len(margins) >= LEAST and not (np.nan_to_num(margins, nan=np.inf) >= CLEAR).any():
            found[kind] = len(margins)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def unclear_words(kind: Event, count: int) -> str:
    """What was noticed, as a sentence without its end."""
    return f"{count:,} {NOUN[kind][1]} were found, and none of them is clear"


def unclear_remarks(tracking: Tracking) -> list[str]:
    """The same for the command line, with what to do."""
    return [
        f"{unclear_words(kind, count)}; if this movie has none, leave them out by "
        f"--without {kind_words(kind)}"
        for kind, count in unclear_kinds(tracking).items()
    ]
