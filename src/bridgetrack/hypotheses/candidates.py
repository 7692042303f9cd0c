"""Pairs of cells that could belong together, per event and frame pair.

Every function works on the positions of two frames (predicted earlier ones, observed later
ones) and returns index arrays within those frames.

Skips over missed detections, and false detections.

Both tie neighbouring frame pairs together, so they are proposed only where no direct event is
plausible (design: components must not grow through the movie).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.detections.table import equivalent_diameter
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
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


def nearest(points: Array, tree_points: Array, k: int, gate: float) -> tuple[Index, Index, Array]:
    """The k nearest neighbours within a gate, as (row, neighbour, distance) triplets."""
    if not len(points) or not len(tree_points):
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, np.zeros(0)
    k = min(k, len(tree_points))
    distance, neighbour = cKDTree(tree_points).query(points, k=k, distance_upper_bound=gate)
    distance = distance.reshape(len(points), k)
    neighbour = neighbour.reshape(len(points), k)
    rows, columns = np.nonzero(np.isfinite(distance))
    return (
        rows.astype(np.int64),
        neighbour[rows, columns].astype(np.int64),
        distance[rows, columns],
    )


def move_pairs(
    predicted: Array, after: Array, overlapping: tuple[Index, Index], gate: float, limits: Limits
) -> tuple[Index, Index]:
    """Candidate moves: near from either side, or overlapping."""
    i1, j1, _ = nearest(predicted, after, limits.moves, gate)
    j2, i2, _ = nearest(after, predicted, limits.back, gate)
    i = np.concatenate([i1, i2, overlapping[0]])
    j = np.concatenate([j1, j2, overlapping[1]])
    width = max(len(after), 1)
    key = np.unique(i * width + j)
    return key // width, key % width


def neighbour_pairs(
    points: Array, others: Array, k: int, gate: float
) -> tuple[Index, Index, Index]:
    """All unordered pairs among the k nearest `others` of every point: (point, a, b), a < b."""
    if not len(points) or len(others) < 2:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    k = min(k, len(others))
    distance, neighbour = cKDTree(others).query(points, k=k, distance_upper_bound=gate)
    one, two = np.triu_indices(k, 1)
    good = np.isfinite(distance[:, one]) & np.isfinite(distance[:, two])
    rows, pair = np.nonzero(good)
    a = neighbour[rows, one[pair]]
    b = neighbour[rows, two[pair]]
    low, high = np.minimum(a, b), np.maximum(a, b)
    return rows.astype(np.int64), low.astype(np.int64), high.astype(np.int64)


def best_per_row(rows: Index, cost: Array, keep: int) -> Index:
    """Positions of the `keep` cheapest entries of every row, in input order."""
    order = np.lexsort((cost, rows))
    sorted_rows = rows[order]
    first = np.r_[True, sorted_rows[1:] != sorted_rows[:-1]] if len(order) else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - start
    return np.sort(order[rank < keep])


_TINY, _SMALL = 0.45, 0.65
"""Diameters over the median below which a cell may be a speck: where it is badly explained,
and in any case."""
_SMALL_SHARE = 0.02
_Found = tuple[Index, Index, Array, NDArray[np.bool_]]


def _plausible(evidence: Evidence) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether every cell has a plausible direct successor and predecessor, shapes (n,)."""
    reach = max(4.0 * evidence.motion.step, 0.5 * evidence.motion.diameter)
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    size = size * evidence.detections.geometry.ndim

    def similar(match: Index, residual: Array) -> NDArray[np.bool_]:
        change = np.abs(size[np.maximum(match, 0)] - size)
        return np.asarray((match >= 0) & (residual <= reach) & (change < np.log(2.0)))

    return (
        similar(evidence.match_next, evidence.residual_next),
        similar(evidence.match_previous, evidence.residual_previous),
    )


def skip_pairs(evidence: Evidence, limits: Limits) -> tuple[Index, Index]:
    """Cells lost in one frame and found again a few frames later.

    Returns
    -------
    source, target
        Rows, shapes (S,).
    """
    followed, preceded = _plausible(evidence)
    detections, motion = evidence.detections, evidence.motion
    offsets, position = detections.offsets, detections.position
    drift = [pair.drift for pair in motion.pairs]
    found: list[_Found] = []
    for t in range(detections.geometry.n_frames - 2):
        lost = offsets[t] + np.flatnonzero(~followed[offsets[t] : offsets[t + 1]])
        here = evidence.predicted[lost]
        for gap in range(2, min(limits.max_gap, detections.geometry.n_frames - 1 - t) + 1):
            here = here + drift[t + gap - 1]
            rows = slice(offsets[t + gap], offsets[t + gap + 1])
            new = rows.start + np.flatnonzero(~preceded[rows])
            gate = 0.6 * motion.diameter + 3.0 * motion.step * np.sqrt(gap)
            i, j, distance = _mutual_pairs(here, position[new], float(gate))
            blank = np.full(len(i), offsets[t + 1] == offsets[t + gap])
            found.append((lost[i], new[j], distance + 0.3 * gap * motion.diameter, blank))
    return _best_skips(evidence, found, limits)


def _mutual_pairs(here: Array, there: Array, gate: float) -> tuple[Index, Index, Array]:
    """Mutual nearest neighbours within a gate."""
    i, j, distance = nearest(here, there, 1, gate)
    back = np.full(len(there), -1, dtype=np.int64)
    k, m, _ = nearest(there, here, 1, gate)
    back[k] = m
    mutual = back[j] == i
    return i[mutual], j[mutual], distance[mutual]


def _best_skips(evidence: Evidence, found: list[_Found], limits: Limits) -> tuple[Index, Index]:
    """Skips between cells of similar size, no more than a small share of all cells.

    Skips over frames without any cell tie nothing together, so they do not count.
    """
    if not found:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty
    source, target = (np.concatenate([f[k] for f in found]) for k in (0, 1))
    cost = np.concatenate([f[2] for f in found])
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    change = np.abs(size[source] - size[target]) * evidence.detections.geometry.ndim
    keep = np.flatnonzero(change < np.log(2.5))
    most = max(3, int(limits.skip_share * len(evidence.detections)))
    blank = np.concatenate([f[3] for f in found])[keep]
    best = keep[~blank][np.argsort(cost[keep[~blank]], kind="stable")[:most]]
    keep = np.append(keep[blank], best)
    return source[keep], target[keep]


def false_detections(evidence: Evidence) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so the smallest are proposed even where neighbours in time explain them, but
    no more than a small share of all cells.
    """
    followed, preceded = _plausible(evidence)
    alone = ~followed & ~preceded
    diameter = equivalent_diameter(evidence.detections)
    if not len(diameter):
        return np.zeros(0, dtype=np.int64)
    relative = diameter / np.median(diameter)
    small = np.flatnonzero(relative < _SMALL)
    smallest = small[np.argsort(relative[small], kind="stable")]
    smallest = smallest[: max(3, int(_SMALL_SHARE * len(diameter)))]
    alone[smallest] = True
    alone[(relative < _TINY) & ~(followed & preceded)] = True
    return np.flatnonzero(alone)
