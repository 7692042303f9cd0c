"""Propose events for a movie, with gates and limits that the movie itself sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.candidates import (
    Limits,
    best_per_row,
    false_detections,
    move_pairs,
    neighbour_pairs,
    skip_pairs,
)
from bridgetrack.hypotheses.events import Event, Hypotheses
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Required:
    """Events that must be among the hypotheses, because annotations name them.

    Parameters
    ----------
    event, sources, targets
        As in `Hypotheses`, shapes (R,), (R, 2) and (R, 2).
    """

    event: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    sources: Index = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    targets: Index = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


@dataclass(frozen=True)
class _Pair:
    """Two frames: positions, sizes and where their rows start."""

    predicted: Array
    after: Array
    area_before: Array
    area_after: Array
    start: int
    next_start: int
    diameter: float
    step: float
    overlapping: tuple[Index, Index]

    @property
    def gate(self) -> float:
        """How far from its predicted position a cell is looked for."""
        return 2.5 * self.diameter + 8.0 * self.step


Columns = tuple[Event, Index, Index]


def _columns(event: Event, sources: list[Index], targets: list[Index], n: int) -> Columns:
    def pad(columns: list[Index]) -> Index:
        out = np.full((n, 2), -1, dtype=np.int64)
        for k, column in enumerate(columns):
            out[:, k] = column
        return out

    return event, pad(sources), pad(targets)


def _pair_cost(
    point: Array, one: Array, two: Array, whole: Array, parts: Array, diameter: float
) -> Array:
    """How little two cells look like the halves of one: midpoint off, sizes not adding up."""
    middle = np.linalg.norm((one + two) / 2 - point, axis=1) / diameter
    near = np.minimum(np.linalg.norm(one - point, axis=1), np.linalg.norm(two - point, axis=1))
    size = np.abs(np.log(parts / whole))
    apart = np.linalg.norm(one - two, axis=1) / diameter
    return np.asarray(middle + 0.5 * near / diameter + 0.5 * size + 0.3 * apart)


def _fan_out(pair: _Pair, limits: Limits) -> list[Columns]:
    """Divisions and splits: one earlier cell, two later ones."""
    i, a, b = neighbour_pairs(pair.predicted, pair.after, limits.daughters, pair.gate)
    point, one, two = pair.predicted[i], pair.after[a], pair.after[b]
    parts = pair.area_after[a] + pair.area_after[b]
    cost = _pair_cost(point, one, two, pair.area_before[i], parts, pair.diameter)
    keep = best_per_row(i, cost, limits.divisions)
    divide = _columns(
        Event.DIVIDE,
        [i[keep] + pair.start],
        [a[keep] + pair.next_start, b[keep] + pair.next_start],
        len(keep),
    )
    together = _could_be_one(one, two, parts / pair.area_before[i], pair.diameter)
    chosen = np.flatnonzero(together)
    kept = chosen[best_per_row(i[chosen], cost[chosen], limits.splits)]
    split = _columns(
        Event.SPLIT,
        [i[kept] + pair.start],
        [a[kept] + pair.next_start, b[kept] + pair.next_start],
        len(kept),
    )
    return [divide, split]


def _could_be_one(one: Array, two: Array, growth: Array, diameter: float) -> NDArray[np.bool_]:
    """Two parts lie close together and add up to about the whole."""
    close = np.linalg.norm(one - two, axis=1) < 1.5 * diameter
    return np.asarray(close & (np.abs(np.log(growth)) < np.log(2.0)))


def _fan_in(pair: _Pair, limits: Limits) -> Columns:
    """Merges: two earlier cells, one later region."""
    j, a, b = neighbour_pairs(pair.after, pair.predicted, limits.daughters, pair.gate)
    point, one, two = pair.after[j], pair.predicted[a], pair.predicted[b]
    parts = pair.area_before[a] + pair.area_before[b]
    cost = _pair_cost(point, one, two, pair.area_after[j], parts, pair.diameter)
    chosen = np.flatnonzero(_could_be_one(one, two, parts / pair.area_after[j], pair.diameter))
    kept = chosen[best_per_row(j[chosen], cost[chosen], limits.merges)]
    return _columns(
        Event.MERGE,
        [a[kept] + pair.start, b[kept] + pair.start],
        [j[kept] + pair.next_start],
        len(kept),
    )


def _pair_columns(pair: _Pair, limits: Limits) -> list[Columns]:
    """All direct events of one frame pair."""
    i, j = move_pairs(pair.predicted, pair.after, pair.overlapping, pair.gate, limits)
    n, m = len(pair.predicted), len(pair.after)
    return [
        _columns(Event.MOVE, [i + pair.start], [j + pair.next_start], len(i)),
        *_fan_out(pair, limits),
        _fan_in(pair, limits),
        _columns(Event.APPEAR, [], [np.arange(m) + pair.next_start], m),
        _columns(Event.DISAPPEAR, [np.arange(n) + pair.start], [], n),
    ]


def _pairs(evidence: Evidence) -> Iterator[_Pair]:
    """Frame pairs with what the generators need."""
    detections, motion = evidence.detections, evidence.motion
    position = detections.position
    area = detections.table["area"].to_numpy(dtype=np.float64)
    offsets = detections.offsets
    n = len(detections)
    source, target = evidence.overlap_key // max(n, 1), evidence.overlap_key % max(n, 1)
    strong = evidence.overlap_pixels > 0.25 * np.minimum(area[source], area[target])
    source, target = source[strong], target[strong]
    bounds = np.searchsorted(source, offsets)
    for t in range(detections.geometry.n_frames - 1):
        a, b, c = int(offsets[t]), int(offsets[t + 1]), int(offsets[t + 2])
        part = slice(bounds[t], bounds[t + 1])
        yield _Pair(
            evidence.predicted[a:b],
            position[b:c],
            area[a:b],
            area[b:c],
            a,
            b,
            motion.diameter,
            motion.step,
            (source[part] - a, target[part] - b),
        )


def active_slots(evidence: Evidence) -> NDArray[np.bool_]:
    """Slots that must be covered: no fate in the last frame, no history in the first."""
    frame = evidence.detections.frame
    last = evidence.detections.geometry.n_frames - 1
    return np.concatenate([frame < last, frame > 0])


def generate_hypotheses(
    evidence: Evidence, required: Required | None = None, limits: Limits | None = None
) -> Hypotheses:
    """Propose the events of a movie.

    Parameters
    ----------
    evidence
        What is known of the movie.
    required
        Events that annotations name; they are always included.
    limits
        Numbers of candidates; the default serves every movie.

    Returns
    -------
    Hypotheses
        Sorted by event, then by the rows named.
    """
    limits = limits or Limits()
    parts: list[Columns] = []
    for pair in _pairs(evidence):
        parts += _pair_columns(pair, limits)
    i, j = skip_pairs(evidence, limits)
    parts.append(_columns(Event.SKIP, [i], [j], len(i)))
    false = false_detections(evidence)
    parts.append(_columns(Event.FALSE, [false], [], len(false)))
    if required is not None:
        for event in Event:
            rows = np.flatnonzero(required.event == event)
            parts.append((event, required.sources[rows], required.targets[rows]))
    return _collect(parts, len(evidence.detections), active_slots(evidence))


def _collect(parts: list[Columns], n: int, active: NDArray[np.bool_]) -> Hypotheses:
    """Join columns, drop repetitions and what covers no slot, and sort."""
    event = np.concatenate([np.full(len(s), e, dtype=np.int8) for e, s, _ in parts])
    sources = np.concatenate([s for _, s, _ in parts]).reshape(-1, 2)
    targets = np.concatenate([t for _, _, t in parts]).reshape(-1, 2)
    key = np.column_stack([event, sources, targets])
    order = np.lexsort(key.T[::-1])
    key = key[order]
    fresh = np.r_[True, (key[1:] != key[:-1]).any(axis=1)] if len(key) else np.zeros(0, bool)
    key = key[fresh]
    hypotheses = Hypotheses(
        key[:, 0].astype(np.int8),
        np.ascontiguousarray(key[:, 1:3]),
        np.ascontiguousarray(key[:, 3:5]),
        n,
        active,
    )
    covered = np.diff(hypotheses.incidence().indptr) > 0
    return hypotheses if covered.all() else subset(hypotheses, np.flatnonzero(covered))


def subset(hypotheses: Hypotheses, rows: Index) -> Hypotheses:
    """The hypotheses with these indices, in this order."""
    return Hypotheses(
        hypotheses.event[rows],
        hypotheses.sources[rows],
        hypotheses.targets[rows],
        hypotheses.n_detections,
        hypotheses.active,
    )
