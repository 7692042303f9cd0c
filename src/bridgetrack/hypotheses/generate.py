"""Propose events for a movie, with gates and limits that the movie itself sets."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.hypotheses.events import EVERYTHING, Event, EventKinds, Events, active_slots
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.near import Near, best_per_row, links, neighbour_pairs, neighbours
from bridgetrack.spread import THREADS

LAST_RESORT = frozenset((Event.APPEAR, Event.DISAPPEAR))
"""Without events of these kinds there may be no choice at all."""
_DAUGHTERS = 8
"""Nearest later cells of which pairs are formed for divisions and splits."""
_PAIRS, _DIVISIONS = 2, 10
"""Pairs kept per cell, the geometrically most plausible first; of divisions at least and at most.
"""
_PLAUSIBLE = 0.8
"""Cost above that of the best pair up to which further ones are kept. On eight movies with 900
divisions none is left out, and three to nine pairs are kept."""


@dataclass(frozen=True)
class _Pair:
    """Two frames: positions, areas, where their rows start, and pairs that overlap much."""

    predicted: Array
    after: Array
    area_before: Array
    area_after: Array
    start: int
    next_start: int
    overlapping: tuple[Index, Index]


def generate_hypotheses(
    evidence: Evidence, required: Events | None = None, kinds: EventKinds = EVERYTHING
) -> Events:
    """Propose the events of a movie.

    Parameters
    ----------
    evidence
        What is known of the movie.
    required
        Events that annotations name; they are always included.
    kinds
        What can happen; appearances and disappearances are proposed in any case.

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
        What is known of the movie.
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
    motion = evidence.motion
    gate = motion.reach

    def direct(pair: _Pair) -> list[Events]:
        return [e.unique() for e in _direct_events(pair, gate, motion.diameter)]

    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(direct, _pairs(evidence, frames)))
    offsets = evidence.detections.offsets
    first, last = offsets[frames.start], offsets[frames.stop]
    within = (rare.sources[:, 0] >= first) & (rare.sources[:, 0] < last)
    others = rare.take(within & (rare.targets.max(axis=1) < last)).unique()
    late = others.of(Event.DIVIDE)
    # Sorted pair by pair, and kind by kind: sorting all at once would take longer than the rest.
    by_kind = [Events.join(found) for found in zip(*parts, strict=True)]
    if len(late) and by_kind:
        by_kind[Event.DIVIDE] = by_kind[Event.DIVIDE].with_others(others.take(late))
        others = others.take(others.event != Event.DIVIDE)
    found = Events.join([*by_kind, others])
    if not np.isin(others.event, (Event.SKIP, Event.FALSE)).all():  # what annotations name
        found = found.unique()
    absent = kinds.absent - LAST_RESORT
    return found.take(~np.isin(found.event, list(absent))) if absent else found


def _pairs(evidence: Evidence, frames: range) -> Iterator[_Pair]:
    """Neighbouring frames with what the proposals need."""
    detections = evidence.detections
    position, offsets, n = detections.position, detections.offsets, max(len(detections), 1)
    area = detections.table["area"].to_numpy(dtype=np.float64)
    source, target = evidence.overlap_key // n, evidence.overlap_key % n
    strong = evidence.overlap_pixels > 0.25 * np.minimum(area[source], area[target])
    source, target = source[strong], target[strong]
    bounds = np.searchsorted(source, offsets)
    for t in frames[:-1]:
        a, b, c = int(offsets[t]), int(offsets[t + 1]), int(offsets[t + 2])
        part = slice(bounds[t], bounds[t + 1])
        overlapping = source[part] - a, target[part] - b
        before, after = evidence.predicted[a:b], position[b:c]
        yield _Pair(before, after, area[a:b], area[b:c], a, b, overlapping)


def _direct_events(pair: _Pair, gate: float, diameter: float) -> list[Events]:
    """The events of one frame pair but skips and false detections, kind by kind."""
    n, m, start, then = len(pair.predicted), len(pair.after), pair.start, pair.next_start
    ahead = neighbours(pair.predicted, pair.after, _DAUGHTERS, gate)
    back = neighbours(pair.after, pair.predicted, _DAUGHTERS, gate)
    i, j = links(ahead, back, pair.overlapping)
    # Divisions and splits: one earlier cell, two later ones. Merges: the same, seen backwards.
    areas = pair.area_before, pair.area_after
    whole, a, b, cost, one = _triplets((pair.predicted, pair.after), areas, ahead, diameter)
    divide = best_per_row(whole, cost, _PAIRS, _DIVISIONS, _PLAUSIBLE)
    split = one[best_per_row(whole[one], cost[one], _PAIRS)]
    region, c, d, cost, one = _triplets((pair.after, pair.predicted), areas[::-1], back, diameter)
    merge = one[best_per_row(region[one], cost[one], _PAIRS)]
    return [
        Events.of_kind(Event.MOVE, [i + start], [j + then]),
        Events.of_kind(Event.DIVIDE, [whole[divide] + start], [a[divide] + then, b[divide] + then]),
        Events.of_kind(Event.SPLIT, [whole[split] + start], [a[split] + then, b[split] + then]),
        Events.of_kind(Event.MERGE, [c[merge] + start, d[merge] + start], [region[merge] + then]),
        Events.of_kind(Event.APPEAR, [], [np.arange(m) + then]),
        Events.of_kind(Event.DISAPPEAR, [np.arange(n) + start]),
    ]


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
    cost = middle + 0.5 * closest / diameter + 0.5 * size + 0.3 * (gap / diameter)
    # Pieces of one cell lie close together and add up to about the whole.
    pieces = np.flatnonzero((gap < 1.5 * diameter) & (size < np.log(2.0)))
    return whole, a, b, np.asarray(cost), pieces


def _length(vectors: Array) -> Array:
    """Lengths of vectors, shape (ndim, n); faster than numpy's norm over so few entries."""
    return np.asarray(np.sqrt(sum(axis * axis for axis in vectors)))
