"""The cells of one frame of labels as runs of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index


@dataclass(frozen=True)
class Foreground:
    """Cells of one frame as runs: pixels of one label side by side along the last axis.

    A run takes the place of about ten pixels, and its sums are known without looking at them.
    Candidates for cells are given by runs, too, one candidate after the other; these may overlap.

    Parameters
    ----------
    labels
        Labels present, ascending, shape (n,).
    owner
        Index into `labels` of every run, shape (r,).
    start, stop
        Where every run begins in the flat frame, ascending, and the place after its last pixel,
        shape (r,).
    shape
        Shape of the frame.
    """

    labels: Index
    owner: Index
    start: Index
    stop: Index
    shape: tuple[int, ...]

    @cached_property
    def length(self) -> Index:
        """Pixels of every run, shape (r,)."""
        return self.stop - self.start

    @cached_property
    def index(self) -> tuple[Index, ...]:
        """Coordinates of the first pixel of every run per axis, each of shape (r,)."""
        return tuple(np.asarray(c) for c in np.unravel_index(self.start, self.shape))

    @property
    def middle(self) -> tuple[Array, ...]:
        """Coordinates of the middle of every run per axis, each of shape (r,)."""
        *others, last = (c.astype(np.float64) for c in self.index)
        return (*others, last + (self.length - 1) / 2)

    def total(self, weights: NDArray[Any]) -> Array:
        """Sum of the weights of runs over every label, shape (n,)."""
        return np.bincount(self.owner, weights, minlength=len(self.labels)).astype(np.float64)

    def area(self) -> Array:
        """Pixels of every label, shape (n,)."""
        return self.total(self.length)

    def centroid(self) -> Array:
        """Centre of every label in pixels, shape (n, ndim)."""
        sums = [self.total(c * self.length) for c in self.middle]
        return np.stack(sums, axis=1) / self.area()[:, None]

    def pixels(self) -> tuple[Index, Index]:
        """Index into `labels` and place in the flat frame of every pixel, shapes (p,)."""
        return np.repeat(self.owner, self.length), ranges(self.start, self.length)

    def met_by(self, start: Index, stop: Index) -> tuple[Index, Index, Index]:
        """Which other runs, given by their places (q,), share pixels with which of these.

        Returns
        -------
        other, own, pixels
            Index of the other run and of the own one, and how many pixels both have, (p,).
        """
        other, own = meeting_runs(start, stop, self.start, self.stop)
        shared = np.minimum(stop[other], self.stop[own]) - np.maximum(start[other], self.start[own])
        return other, own, shared


def meeting_runs(
    start: Index, stop: Index, others_start: Index, others_stop: Index
) -> tuple[Index, Index]:
    """Pairs of a run and one of some others that share a pixel, by their numbers, shapes (p,).

    Runs go from their first place to that after their last one; the others are ascending and
    disjoint.
    """
    first = np.searchsorted(others_stop, start, side="right")
    count = np.maximum(np.searchsorted(others_start, stop) - first, 0)
    return np.repeat(np.arange(len(start)), count), ranges(first, count)


def ranges(first: Index, size: Index) -> Index:
    """``first[k], first[k] + 1, ...``, `size[k]` of them, one after another."""
    starts = np.cumsum(size) - size
    return np.arange(int(size.sum())) + np.repeat(first - starts, size)


def foreground(labels: NDArray[Any]) -> Foreground:
    """The foreground of a label image of whole numbers, none of them negative."""
    flat = np.ascontiguousarray(labels).reshape(-1)
    begins = np.ones(flat.size, dtype=bool)
    np.not_equal(flat[1:], flat[:-1], out=begins[1:])
    begins[:: max(labels.shape[-1], 1)] = True  # a run ends with its row
    start = np.flatnonzero(begins)
    stop = np.append(start[1:], flat.size)
    inside = np.flatnonzero(flat[start])
    start, stop = start[inside], stop[inside]
    present, owner = numbered(flat[start])
    return Foreground(present, owner, start, stop, labels.shape)


def numbered(values: NDArray[Any]) -> tuple[Index, Index]:
    """Distinct values, ascending, and the index of each value among them."""
    owner, present = pd.factorize(values, sort=True)  # faster than `numpy.unique`
    return present.astype(np.int64), owner.astype(np.int64)


def shifted_overlap(
    before: Foreground, after: Foreground, shift: Array
) -> tuple[Index, Index, Index]:
    """Count the pixels that shifted cells of one frame share with cells of the next.

    Parameters
    ----------
    before, after
        The cells of two frames of the same shape.
    shift
        Shift of every cell of `before` in pixels, shape (n, ndim); rounded to whole pixels.

    Returns
    -------
    i, j, pixels
        Index into the labels of `before` and of `after`, and shared pixels, for every pair that
        shares any, in order; shapes (p,).
    """
    whole = np.rint(shift).astype(np.int64)[before.owner]
    *across, width = after.shape
    inside = np.ones(len(whole), dtype=bool)
    row = np.zeros(len(whole), dtype=np.int64)
    for k, size in enumerate(across):
        moved = before.index[k] + whole[:, k]
        inside &= (moved >= 0) & (moved < size)
        row = row * size + moved
    first = before.index[-1] + whole[:, -1]
    left, right = np.maximum(first, 0), np.minimum(first + before.length, width)
    inside &= left < right
    runs = np.flatnonzero(inside)
    start = row[runs] * width
    run, own, shared = after.met_by(start + left[runs], start + right[runs])
    return count_pairs(before.owner[runs[run]], after.owner[own], shared)


def count_pairs(
    first: Index, second: Index, weights: Index | None = None
) -> tuple[Index, Index, Index]:
    """Distinct pairs of whole numbers, in order, and how often each occurs or their weights."""
    width = int(second.max(initial=0)) + 1
    pairs, place = numbered(first * width + second)
    count = np.bincount(place, weights, len(pairs))
    return pairs // width, pairs % width, count.astype(np.int64)
