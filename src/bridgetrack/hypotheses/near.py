"""Nearest cells of another frame, and the best entries of groups."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index

Near = tuple[Array, Index]
"""Distances from every cell to its nearest ones of another frame, the nearest first and infinite
beyond a gate, and their rows; shapes (n, k)."""
Links = tuple[Index, Index]
"""Rows of earlier and of later cells."""
_NONE = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
_MOVES, _BACK = 4, 2
"""Nearest later cells per earlier cell, and nearest earlier ones per later cell, so that every cell
has a history."""


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


def links(ahead: Near, back: Near, also: Links = _NONE) -> Links:
    """Candidate moves: pairs that are near from either side, and some others."""
    i, j, _ = nearest(ahead, _MOVES)
    later, earlier, _ = nearest(back, _BACK)
    width = max(len(back[0]), 1)
    pairs = (i, j), (earlier, later), also
    return np.divmod(np.unique(np.concatenate([a * width + b for a, b in pairs])), width)


def neighbour_pairs(near: Near, k: int) -> tuple[Index, Index, Index]:
    """All unordered pairs among the k nearest of every point: (point, a, b), a < b."""
    rows, neighbour, _ = nearest(near, k)
    return pairs_within(rows, neighbour)


def pairs_within(rows: Index, values: Index) -> tuple[Index, Index, Index]:
    """All unordered pairs a < b of the values of every row; rows must ascend."""
    after = np.searchsorted(rows, rows, side="right") - np.arange(len(rows)) - 1
    one = np.repeat(np.arange(len(rows)), after)
    two = np.arange(len(one)) - np.repeat(np.cumsum(after) - after, after) + one + 1
    a, b = values[one], values[two]
    return rows[one], np.minimum(a, b), np.maximum(a, b)


def mutual_neighbours(predicted: Array, after: Array, gate: float) -> tuple[Index, Array]:
    """Mutual nearest neighbours within a gate: index or -1, and distance or NaN."""
    n = len(predicted)
    match = np.full(n, -1, dtype=np.int64)
    residual = np.full(n, np.nan)
    if not n or not len(after):
        return match, residual
    distance, forward = cKDTree(after).query(predicted)
    _, backward = cKDTree(predicted).query(after)
    ok = (backward[forward] == np.arange(n)) & (distance <= gate)
    match[ok] = forward[ok]
    residual[ok] = distance[ok]
    return match, residual


def sorted_groups(group: Index, value: Array) -> tuple[Index, Index]:
    """Order by group, then value, and where in it the group of every entry starts."""
    order = np.lexsort((value, group))
    grouped = group[order]
    first = np.r_[True, grouped[1:] != grouped[:-1]][: len(order)]
    return order, np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))


def rank_within(group: Index, value: Array) -> Array:
    """Rank of every entry among those of its group, 0 for the smallest, shape (h,)."""
    order, start = sorted_groups(group, value)
    rank = np.zeros(len(group))
    rank[order] = np.arange(len(order)) - start
    return rank


def best_per_row(rows: Index, cost: Array, keep: int, most: int = 0, above: float = 0.0) -> Index:
    """Positions of the `keep` cheapest entries of every row, in input order.

    Up to `most` are kept if they cost less than `above` more than the cheapest.
    """
    order, start = sorted_groups(rows, cost)
    rank = np.arange(len(order)) - start
    near = cost[order] - cost[order[start]] < above
    return np.sort(order[(rank < keep) | (near & (rank < most))])


def best_other(group: Index, value: Array, default: float) -> Array:
    """Smallest value among the other entries of the group, or `default`, shape (h,)."""
    order, start = sorted_groups(group, value)
    ordered = np.append(value[order], default)
    place = np.arange(len(order))
    # For the best of a group, the best other is the second, if there is one.
    alone = np.append(start[1:], -1)[start] != start
    second = np.where(alone, default, ordered[start + 1])
    out = np.full(len(group), default)
    out[order] = np.where(place == start, second, ordered[start])
    return np.minimum(out, default)
