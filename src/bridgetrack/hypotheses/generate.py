"""Propose events for a movie, with gates and limits estimated from the movie."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.hypotheses.events import EVERYTHING, Event, EventKinds, Events, active_slots
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.near import (
    Links,
    Near,
    best_per_row,
    links,
    neighbour_pairs,
    neighbours,
)
from bridgetrack.spread import THREADS

_DAUGHTERS = 8
"""Nearest later cells of which pairs are formed for divisions and splits."""
_PAIRS, _DIVISIONS = 2, 10
"""Pairs kept per cell, the geometrically most plausible first; of divisions at least and at most.
"""
_PLAUSIBLE = 0.8
"""Further pairs are kept up to this cost above that of the best pair. On eight movies with 900
divisions none is left out, and three to nine pairs are kept."""
_SMALLEST = 0.2
"""Least area of both daughters over that of the mother; of 1,500 divisions in 13 movies none has
less than 0.23."""


def generate_hypotheses(
    evidence: Evidence, required: Events | None = None, kinds: EventKinds = EVERYTHING
) -> Events:
    """Propose the events of a movie.

    Parameters
    ----------
    evidence
        Evidence about the movie.
    required
        Events that annotations name; they are always included.
    kinds
        What can happen.

    Returns
    -------
    Events
        Sorted by event, then by the rows named; each once, and none without an active slot.
    """
    frames = range(evidence.detections.geometry.n_frames)
    proposed = events_between(evidence, frames, evidence.missed.events, kinds)
    events = proposed if required is None else proposed.with_others(required)
    covered = events.touching(active_slots(evidence.detections))
    return events if covered.all() else events.take(covered)


def events_between(
    evidence: Evidence, frames: range, rare: Events, kinds: EventKinds = EVERYTHING
) -> Events:
    """The events of a movie that name cells of some frames alone.

    Parameters
    ----------
    evidence
        Evidence about the movie.
    frames
        Successive frames.
    rare
        Skips, false detections, late divisions and annotated events, see `Missed`.
    kinds
        See `generate_hypotheses`.

    Returns
    -------
    Events
        Sorted as by `generate_hypotheses`; some may have no active slot.
    """
    direct = partial(_direct_events, evidence, _strong_overlaps(evidence))
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(direct, frames[:-1]))
    offsets = evidence.detections.offsets
    first, last = offsets[frames.start], offsets[frames.stop]
    within = (rare.sources[:, 0] >= first) & (rare.sources[:, 0] < last)
    others = rare.take(within & (rare.targets.max(axis=1) < last))
    # Kind by kind, and pair by pair: a table that is nearly in order is sorted fast.
    found = Events.join([e for kind in zip(*parts, strict=True) for e in kind] + [others]).unique()
    return found.take(~np.isin(found.event, list(kinds.absent))) if kinds.absent else found


def _strong_overlaps(evidence: Evidence) -> Links:
    """Cells and cells of the next frame that overlap much, in the order of the former."""
    source, target = np.divmod(evidence.overlap_key, max(len(evidence.detections), 1))
    area = evidence.detections.table["area"].to_numpy(dtype=np.float64)
    strong = evidence.overlap_pixels > 0.25 * np.minimum(area[source], area[target])
    return source[strong], target[strong]


def _direct_events(evidence: Evidence, overlapping: Links, t: int) -> tuple[Events, ...]:
    """The events of a frame and the next but skips and false detections, kind by kind."""
    detections, motion = evidence.detections, evidence.motion
    here, there = detections.rows(t), detections.rows(t + 1)
    start, then = here.start, there.start
    points = before, after = evidence.predicted[here], detections.position[there]
    area = detections.table["area"].to_numpy(dtype=np.float64)
    areas = area[here], area[there]
    ahead = neighbours(before, after, _DAUGHTERS, motion.reach)
    back = neighbours(after, before, _DAUGHTERS, motion.reach)
    some = slice(*np.searchsorted(overlapping[0], [here.start, here.stop]))
    i, j = links(ahead, back, (overlapping[0][some] - start, overlapping[1][some] - then))
    # Divisions and splits: one earlier cell, two later ones. Merges: the same, seen backwards.
    whole, a, b, cost, one = _triplets(points, areas, ahead, motion.diameter)
    large = np.flatnonzero(areas[1][a] + areas[1][b] >= _SMALLEST * areas[0][whole])
    divide = large[best_per_row(whole[large], cost[large], _PAIRS, _DIVISIONS, _PLAUSIBLE)]
    split = one[best_per_row(whole[one], cost[one], _PAIRS)]
    region, c, d, cost, one = _triplets(points[::-1], areas[::-1], back, motion.diameter)
    merge = one[best_per_row(region[one], cost[one], _PAIRS)]
    return (
        Events.of_kind(Event.MOVE, [i + start], [j + then]),
        Events.of_kind(Event.DIVIDE, [whole[divide] + start], [a[divide] + then, b[divide] + then]),
        Events.of_kind(Event.SPLIT, [whole[split] + start], [a[split] + then, b[split] + then]),
        Events.of_kind(Event.MERGE, [c[merge] + start, d[merge] + start], [region[merge] + then]),
        Events.of_kind(Event.APPEAR, [], [np.arange(then, there.stop)]),
        Events.of_kind(Event.DISAPPEAR, [np.arange(start, here.stop)]),
    )


def _triplets(
    points: tuple[Array, Array], areas: tuple[Array, Array], near: Near, diameter: float
) -> tuple[Index, Index, Index, Array, Index]:
    """A cell and two cells of the other frame: rows (3), cost, and which could be one cell cut.

    The cost says how little two cells look like the halves of one: their midpoint is off, or
    their sizes do not add up.
    """
    whole, a, b = neighbour_pairs(near, _DAUGHTERS)
    point = points[0].T[:, whole]
    one, two = (points[1].T[:, rows] for rows in (a, b))
    growth = (areas[1][a] + areas[1][b]) / areas[0][whole]
    middle = _length((one + two) / 2 - point) / diameter
    closest = np.minimum(_length(one - point), _length(two - point))
    size = np.abs(np.log(growth))
    gap = _length(one - two)
    # Weights set by hand: the cost only orders proposals, of which several are kept.
    cost = middle + 0.5 * closest / diameter + 0.5 * size + 0.3 * (gap / diameter)
    # Pieces of one cell lie close together and add up to about the whole.
    pieces = np.flatnonzero((gap < 1.5 * diameter) & (size < np.log(2.0)))
    return whole, a, b, np.asarray(cost), pieces


def _length(vectors: Array) -> Array:
    """Lengths of vectors, shape (ndim, n); faster than numpy's norm over so few entries."""
    return np.asarray(np.sqrt(sum(axis * axis for axis in vectors)))
