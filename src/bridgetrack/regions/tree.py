"""Merge trees: the hills of a landscape, joined pair by pair at the highest pass between them.

Every node of the tree is a set of whole hills. Leaves are ordered depth first, so that the pixels
of a node stand in a row and thousands of nested nodes share one array.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.segmentation.cells import passes, stable_order

Image = NDArray[np.float32]


@dataclass(frozen=True)
class MergeTree:
    """Nodes of nested hills; the first are the hills themselves."""

    # number of the hill at every pixel, 1 to the number of hills, 0 outside; a frame
    hills: NDArray[np.int32]
    pixels: Index  # places in the flat frame, those of each node in a row, shape (P,)
    # where the pixels of a node begin and end, shape (n,)
    start: Index
    stop: Index
    peak: Array  # highest point of a node, shape (n,)
    # level, from above, at which it appears: its own pass, or a hill's peak, shape (n,)
    birth: Array
    # level at which it joins another; where it never does, its lowest level, shape (n,)
    death: Array
    parent: Index  # node that it becomes a part of, -1 where it never does, shape (n,)
    passes: tuple[Index, Index, Array]  # those between the hills, see `passes`

    @property
    def summits(self) -> Array:
        """Highest point of every hill by its number; lower than all for 0, shape (hills + 1,)."""
        n = (len(self.peak) + int((self.parent < 0).sum())) // 2
        return np.append(-np.inf, self.peak[:n])

    @property
    def area(self) -> Index:
        """Pixels of every node, shape (n,)."""
        return self.stop - self.start


def hills(height: Image, mask: Mask) -> tuple[NDArray[np.int32], int]:
    """Every pixel of the mask with the summit that steepest ascent leads to.

    Of equal heights the later pixel counts as higher, so that each ascent ends; a plateau may
    get several summits, which join at no depth.

    Returns
    -------
    labels, count
        Numbers 1 to n of the hills, 0 outside the mask, shape of the frame; and n.
    """
    padded = np.pad(height, 1, constant_values=-np.inf)
    inside = np.pad(mask, 1)
    flat, places = padded.ravel(), np.flatnonzero(inside)
    flat = np.where(inside.ravel(), flat, -np.inf).astype(np.float32)
    steps = np.array([int(s / flat.itemsize) for s in padded.strides])
    best, top = flat[places], places.copy()
    for offset in product((-1, 0, 1), repeat=height.ndim):
        if not any(offset) or (height.ndim == 3 and np.abs(offset).sum() > 1):
            continue
        there = places + int(np.dot(offset, steps))
        value = flat[there]
        higher = (value > best) | ((value == best) & (there > top))
        best[higher], top[higher] = value[higher], there[higher]
    rank = np.zeros(flat.size, dtype=np.int64)
    rank[places] = np.arange(len(places))
    up = rank[top]
    while True:
        further = up[up]
        if np.array_equal(further, up):
            break
        up = further
    summit = np.flatnonzero(up == np.arange(len(up)))
    number = np.zeros(len(up), dtype=np.int32)
    number[summit] = np.arange(1, len(summit) + 1)
    labels = np.zeros(mask.shape, dtype=np.int32)
    labels[mask] = number[up]
    return labels, len(summit)


def merge_tree(height: Image, mask: Mask) -> MergeTree:
    """The tree of the hills of `height` within `mask`."""
    labels, n = hills(height, mask)
    inside = np.flatnonzero(labels)
    owner, level = labels.ravel()[inside] - 1, height.ravel()[inside].astype(np.float64)
    peak = np.full(n, -np.inf)
    np.maximum.at(peak, owner, level)
    floor = np.full(n, np.inf)
    np.minimum.at(floor, owner, level)
    between = passes(labels, height)
    first, second, saddle = _joins(*between, n)
    parent, leaves, birth = _join(n, first, second, saddle, peak)
    rank = _depth_first(parent, leaves, n)
    order = stable_order(rank[:n][owner])
    counts = np.zeros(n, dtype=np.int64)
    counts[rank[:n]] = np.bincount(owner, minlength=n)
    ends = np.concatenate([[0], np.cumsum(counts)])
    high, low = peak[np.argsort(rank[:n])], floor[np.argsort(rank[:n])]
    start, stop = ends[rank], ends[rank + leaves]
    bounds = np.stack([rank, rank + leaves], axis=1).ravel()
    top = np.maximum.reduceat(np.append(high, -np.inf), bounds)[::2] if n else peak
    bottom = np.minimum.reduceat(np.append(low, np.inf), bounds)[::2] if n else peak
    death = np.where(parent >= 0, birth[parent], bottom) if n else peak
    return MergeTree(labels, inside[order], start, stop, top, birth, death, parent, between)


def _joins(first: Index, second: Index, saddle: Array, n: int) -> tuple[Index, Index, Array]:
    """The passes that join hills not yet joined by higher ones, the highest first."""
    cost = float(saddle.max(initial=0.0)) - saddle + 1.0
    graph = sp.coo_matrix((cost, (first - 1, second - 1)), (n, n))
    kept: Any = minimum_spanning_tree(graph.tocsr()).tocoo()
    level = float(saddle.max(initial=0.0)) + 1.0 - kept.data
    order = np.argsort(-level, kind="stable")
    return kept.row[order].astype(np.int64), kept.col[order].astype(np.int64), level[order]


def _join(
    n: int, first: Index, second: Index, saddle: Array, peak: Array
) -> tuple[Index, Index, Array]:
    """Parent, number of hills and birth of every node; node n + k is made by join k."""
    parent = [-1] * (n + len(first))
    leaves = [1] * n
    root = list(range(n + len(first)))
    for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        ends = [_root(root, a), _root(root, b)]
        new = n + k
        for node in ends:
            parent[node] = root[node] = new
        leaves.append(leaves[ends[0]] + leaves[ends[1]])
    return (
        np.array(parent, dtype=np.int64),
        np.array(leaves, dtype=np.int64),
        np.concatenate([peak, saddle]),
    )


def _root(root: list[int], node: int) -> int:
    """The outermost node that `node` is part of so far; shortens the way there."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def _depth_first(parent: Index, leaves: Index, n: int) -> Index:
    """First leaf of every node when leaves are counted depth first."""
    rank = [0] * len(parent)
    free = 0  # the next place among the roots
    filled = [0] * len(parent)
    up, size = parent.tolist(), leaves.tolist()
    for node in range(len(up) - 1, -1, -1):
        above = up[node]
        if above < 0:
            rank[node] = free
            free += size[node]
        else:
            rank[node] = rank[above] + filled[above]
            filled[above] += size[node]
    return np.array(rank, dtype=np.int64)


def distinct(tree: MergeTree, least: float, most: float, near: float) -> tuple[Index, Array]:
    """Nodes of a possible size that differ enough from the next larger one that is kept.

    Parameters
    ----------
    tree
        The tree.
    least, most
        Limits of the area, in pixels.
    near
        A node with more than this share of the area of the next larger one is left out.

    Returns
    -------
    nodes, persistence
        Numbers, ascending, and the share of the levels below its peak over which each stays
        nearly the same.
    """
    area, up = tree.area.tolist(), tree.parent.tolist()
    birth = tree.birth.tolist()
    holder = [-1] * len(area)  # the kept node that a node is, or is a part of
    kept, born = [], list(birth)
    for node in range(len(area) - 1, -1, -1):
        above = holder[up[node]] if up[node] >= 0 else -1
        holder[node] = above
        if not least <= area[node] <= most:
            continue
        if above >= 0 and area[node] > near * area[above]:
            born[above] = max(born[above], birth[node])
        else:
            kept.append(node)
            holder[node] = node
    nodes = np.array(kept[::-1], dtype=np.int64)
    height = np.maximum(tree.peak[nodes], 1e-12)
    lasting = (np.array(born)[nodes] - tree.death[nodes]) / height
    return nodes, np.clip(lasting, 0.0, 1.0)
