"""The pixels of cells, numbered by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_SMALL = 1_000_000


@dataclass(frozen=True)
class Foreground:
    """Foreground pixels of one frame: label number per pixel and coordinates.

    Parameters
    ----------
    labels
        Labels present, ascending, shape (n,).
    owner
        Index into `labels` per foreground pixel, shape (p,).
    places
        Positions in the flat frame, ascending, shape (p,).
    shape
        Shape of the frame.
    index
        Pixel coordinates per axis, each of shape (p,).
    """

    labels: Index
    owner: Index
    places: Index
    shape: tuple[int, ...]
    index: tuple[Index, ...]

    def total(self, weights: Array | None = None) -> Array:
        """Sum of the weights over every label, shape (n,)."""
        return np.bincount(self.owner, weights, minlength=len(self.labels)).astype(np.float64)

    def numbers(self) -> NDArray[np.int32]:
        """The flat frame with 1 to n in place of the labels, 0 for background."""
        flat = np.zeros(int(np.prod(self.shape)), dtype=np.int32)
        flat[self.places] = self.owner + 1
        return flat


def foreground(labels: NDArray[Any]) -> Foreground:
    """The foreground of a label image of whole numbers, none of them negative."""
    flat = np.ascontiguousarray(labels).reshape(-1)
    places = np.flatnonzero(flat != 0)
    present, owner = numbered(flat[places])
    index = tuple(np.asarray(c) for c in np.unravel_index(places, labels.shape))
    return Foreground(present, owner, places, labels.shape, index)


def numbered(values: NDArray[Any]) -> tuple[Index, Index]:
    """Distinct values, ascending, and the index of each value among them.

    As `numpy.unique` with the inverse, by a table instead of sorting where the largest value
    allows.
    """
    top = int(values.max(initial=0))
    if top > _SMALL + 4 * values.size:
        present, owner = np.unique(values, return_inverse=True)
        return present.astype(np.int64), owner.astype(np.int64)
    there = np.zeros(top + 1, dtype=bool)
    there[values] = True
    present = np.flatnonzero(there)
    rank = np.zeros(top + 1, dtype=np.int64)
    rank[present] = np.arange(len(present))
    return present.astype(np.int64), rank[values]


def count_pairs(first: Index, second: Index, n_first: int) -> tuple[Index, Index, Index]:
    """Distinct pairs of whole numbers, in order, and how often each occurs."""
    width = int(second.max(initial=0)) + 1
    key = first * width + second
    if n_first * width > _SMALL + 8 * len(key):
        pairs, count = np.unique(key, return_counts=True)
    else:
        table = np.bincount(key)
        pairs = np.flatnonzero(table)
        count = table[pairs]
    return pairs // width, pairs % width, count.astype(np.int64)
