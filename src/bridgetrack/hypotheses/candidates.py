"""Pairs of cells that could belong together, cells that were missed, and specks that are no cells.

The functions for one frame pair work on the positions of two frames (predicted earlier ones,
observed later ones) and return index arrays within those frames. Skips and false detections tie
neighbouring frame pairs together, so they are proposed only where no direct event is plausible:
components must not grow through the movie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.detections.table import Detections, equivalent_diameter, median_diameter
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TINY, _SPECK, _SMALL = 0.45, 0.55, 0.65
"""Diameters over the median below which a cell may be a speck: where it is badly explained, where
its mask lies within the frame, and in any case."""
_SPECK_SHARE, _SMALL_SHARE = 0.1, 0.02
"""Of all cells, how many of the latter two are proposed at most."""


@dataclass(frozen=True)
class Reach:
    """How many candidates each event gets; the defaults suit every movie seen so far.

    Parameters
    ----------
    moves
        Nearest later cells per earlier cell.
    back
        Nearest earlier cells per later cell, so that every cell has a history.
    daughters
        Nearest later cells of which pairs are formed for divisions and splits.
    divisions, splits, merges
        Pairs kept per cell, the geometrically most plausible first.
    skip_share
        Skips proposed, as a share of all cells; the nearest are kept.
    max_gap
        Largest number of frames a skip bridges (2 = one missed frame).
    """

    moves: int = 4
    back: int = 2
    daughters: int = 6
    divisions: int = 5
    splits: int = 2
    merges: int = 2
    skip_share: float = 0.02
    max_gap: int = 3


Near = tuple[Array, Index]
"""Distances from every cell to its nearest ones of another frame, the nearest first and infinite
beyond a gate, and their rows; shapes (n, k)."""


def neighbours(points: Array, others: Array, k: int, gate: float) -> Near:
    """The k nearest others of every point."""
    k = min(k, len(others))
    if not k:
        return np.zeros((len(points), 0)), np.zeros((len(points), 0), dtype=np.int64)
    distance, neighbour = cKDTree(others).query(points, k=k, distance_upper_bound=gate)
    return distance.reshape(len(points), k), neighbour.reshape(len(points), k).astype(np.int64)


def nearest(near: Near, k: int) -> tuple[Index, Index, Array]:
    """The k nearest neighbours within the gate, as (row, neighbour, distance) triplets."""
    distance, neighbour = near[0][:, :k], near[1][:, :k]
    rows, columns = np.nonzero(np.isfinite(distance))
    return rows, neighbour[rows, columns], distance[rows, columns]


def move_pairs(
    ahead: Near, back: Near, overlapping: tuple[Index, Index], limits: Reach
) -> tuple[Index, Index]:
    """Candidate moves: near from either side, or overlapping."""
    i1, j1, _ = nearest(ahead, limits.moves)
    j2, i2, _ = nearest(back, limits.back)
    i = np.concatenate([i1, i2, overlapping[0]])
    j = np.concatenate([j1, j2, overlapping[1]])
    width = max(len(back[0]), 1)
    key = np.unique(i * width + j)
    return key // width, key % width


def neighbour_pairs(near: Near, k: int) -> tuple[Index, Index, Index]:
    """All unordered pairs among the k nearest of every point: (point, a, b), a < b."""
    distance, neighbour = near[0][:, :k], near[1][:, :k]
    one, two = np.triu_indices(distance.shape[1], 1)
    there = np.isfinite(distance)
    rows, pair = np.nonzero(there[:, one] & there[:, two])
    a, b = neighbour[rows, one[pair]], neighbour[rows, two[pair]]
    return rows, np.minimum(a, b), np.maximum(a, b)


def best_per_row(rows: Index, cost: Array, keep: int) -> Index:
    """Positions of the `keep` cheapest entries of every row, in input order."""
    order = np.lexsort((cost, rows))
    sorted_rows = rows[order]
    first = np.r_[True, sorted_rows[1:] != sorted_rows[:-1]][: len(order)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    return np.sort(order[np.arange(len(order)) - start < keep])


def _plausible(evidence: Evidence) -> tuple[Mask, Mask]:
    """Whether every cell has a plausible direct successor and predecessor, shapes (n,)."""
    reach = max(4.0 * evidence.motion.step, 0.5 * evidence.motion.diameter)
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    size = size * evidence.detections.geometry.ndim

    def similar(match: Index, residual: Array) -> Mask:
        change = np.abs(size[np.maximum(match, 0)] - size)
        return np.asarray((match >= 0) & (residual <= reach) & (change < np.log(2.0)))

    return (
        similar(evidence.match_next, evidence.residual_next),
        similar(evidence.match_previous, evidence.residual_previous),
    )


def skip_pairs(evidence: Evidence, limits: Reach) -> tuple[Index, Index]:
    """Cells lost in one frame and found again a few frames later: rows, shapes (S,).

    Only cells of similar size, and no more than a small share of all cells, the nearest first.
    Skips over frames without any cell tie nothing together, so they do not count.
    """
    detections = evidence.detections
    found = []
    for frames in detections.some_frames():
        wide = _around(detections, frames, limits.max_gap)
        start = int(detections.offsets[wide.start])
        i, j, cost, blank = _skips_from(evidence.within(wide), frames, limits)
        found.append((i + start, j + start, cost, blank))
    source, target, cost, blank = (np.concatenate(part) for part in zip(*found, strict=True))
    most = max(3, int(limits.skip_share * len(detections)))
    counted = np.flatnonzero(~blank)
    best = counted[np.argsort(cost[counted], kind="stable")[:most]]
    keep = np.append(np.flatnonzero(blank), best)
    return source[keep], target[keep]


def _around(detections: Detections, frames: range, reach: int) -> range:
    """Some frames with so many before and after them."""
    last = detections.geometry.n_frames
    return range(max(frames.start - reach, 0), min(frames.stop + reach, last))


def _skips_from(
    evidence: Evidence, frames: range, limits: Reach
) -> tuple[Index, Index, Array, Mask]:
    """Pairs of cells of similar size, lost in some frames; costs, and which skip empty frames."""
    followed, preceded = _plausible(evidence)
    detections, motion = evidence.detections, evidence.motion
    offsets, position = detections.offsets, detections.position
    n_frames = detections.geometry.n_frames
    empty = np.zeros(0, dtype=np.int64)
    found = [(empty, empty, np.zeros(0), np.zeros(0, dtype=bool))]
    for t in range(frames.start, min(frames.stop, n_frames - 2)):
        lost = offsets[t] + np.flatnonzero(~followed[offsets[t] : offsets[t + 1]])
        here = evidence.predicted[lost]
        for gap in range(2, min(limits.max_gap, n_frames - 1 - t) + 1):
            here = here + motion.pairs[t + gap - 1].drift
            rows = slice(offsets[t + gap], offsets[t + gap + 1])
            new = rows.start + np.flatnonzero(~preceded[rows])
            gate = 0.6 * motion.diameter + 3.0 * motion.step * np.sqrt(gap)
            i, j, distance = _mutual_pairs(here, position[new], float(gate))
            blank = np.full(len(i), offsets[t + 1] == offsets[t + gap])
            found.append((lost[i], new[j], distance + 0.3 * gap * motion.diameter, blank))
    source, target, cost, blank = (np.concatenate(part) for part in zip(*found, strict=True))
    size = np.log(np.maximum(equivalent_diameter(detections), 1e-9))
    change = np.abs(size[source] - size[target]) * detections.geometry.ndim
    keep = np.flatnonzero(change < np.log(2.5))
    return source[keep], target[keep], cost[keep], blank[keep]


def _mutual_pairs(here: Array, there: Array, gate: float) -> tuple[Index, Index, Array]:
    """Mutual nearest neighbours within a gate."""
    i, j, distance = nearest(neighbours(here, there, 1, gate), 1)
    back = np.full(len(there), -1, dtype=np.int64)
    k, m, _ = nearest(neighbours(there, here, 1, gate), 1)
    back[k] = m
    mutual = back[j] == i
    return i[mutual], j[mutual], distance[mutual]


def false_detections(evidence: Evidence) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so small ones are proposed even where neighbours in time explain them, but no
    more than a share of all cells, the smallest first: a tenth, as in masks that the program makes
    of phase contrast, and fewer of those that the edge of the frame may have cut, or that are
    hardly smaller than others.
    """
    detections = evidence.detections
    if not len(detections):
        return np.zeros(0, dtype=np.int64)
    usual = median_diameter(detections)
    alone, small, sizes, inner = [], [], [], []
    for frames in detections.some_frames():
        wide = _around(detections, frames, 1)
        part, start = evidence.within(wide), int(detections.offsets[wide.start])
        followed, preceded = _plausible(part)
        relative = equivalent_diameter(part.detections) / usual
        mine = np.zeros(len(relative), dtype=bool)
        offsets = part.detections.offsets
        mine[offsets[frames.start] : offsets[frames.stop]] = True
        lost = (relative < _TINY) & ~(followed & preceded)
        alone.append(start + np.flatnonzero(mine & (lost | (~followed & ~preceded))))
        little = np.flatnonzero(mine & (relative < _SMALL))
        small.append(start + little)
        sizes.append(relative[little])
        inner.append(_within(part.detections)[little] & (relative[little] < _SPECK))
    order = np.argsort(np.concatenate(sizes), kind="stable")
    smallest, inside = np.concatenate(small)[order], np.concatenate(inner)[order]
    specks = smallest[inside][: int(_SPECK_SHARE * len(detections))]
    smallest = smallest[: max(3, int(_SMALL_SHARE * len(detections)))]
    return np.union1d(np.concatenate(alone), np.union1d(smallest, specks))


def _within(detections: Detections) -> Mask:
    """Which cells have a mask that does not touch the edge of the frame, shape (n,)."""
    if not detections.has_masks or "border_distance" not in detections.table.columns:
        return np.zeros(len(detections), dtype=bool)
    return np.asarray(detections.table["border_distance"].to_numpy() > 0)
