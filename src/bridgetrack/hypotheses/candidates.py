"""Pairs of cells that could belong together, per event and frame pair.

Every function works on the positions of two frames (predicted earlier ones, observed later
ones) and returns index arrays within those frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

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
