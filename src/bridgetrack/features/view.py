"""The hypotheses of one event, as feature functions see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.cells import Cells
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """Hypotheses of one event with the cells they name.

    Parameters
    ----------
    evidence, cells
        The movie.
    source, other_source, target, other_target
        Rows named, shapes (h,); -1 where the event has none.
    """

    evidence: Evidence
    cells: Cells
    source: Index
    other_source: Index
    target: Index
    other_target: Index

    @property
    def diameter(self) -> float:
        """Median cell diameter, in the movie's unit."""
        return self.evidence.motion.diameter

    @property
    def step(self) -> float:
        """Median residual motion, in the movie's unit."""
        return self.evidence.motion.step

    @cached_property
    def position(self) -> Array:
        """Observed positions of all cells, shape (n, ndim)."""
        return self.evidence.detections.position

    @cached_property
    def area(self) -> Array:
        """Areas of all cells in pixels, shape (n,)."""
        return np.exp(self.cells.size)

    def off(self, source: Index, target: Index) -> Array:
        """Predicted to observed position, in cell diameters, shape (h, ndim)."""
        shift = self.position[target] - self.evidence.predicted[source]
        return np.asarray(shift / self.diameter)

    def distance(self, source: Index, target: Index) -> Array:
        """Length of `off`, at most 5."""
        return np.minimum(np.linalg.norm(self.off(source, target), axis=1), 5.0)

    @cached_property
    def offset(self) -> Array:
        """`distance` between source and target, shape (h,)."""
        return self.distance(self.source, self.target)

    def shared(self, source: Index, target: Index) -> Array:
        """Overlap after shift over the smaller area, 0 to 1."""
        least = np.minimum(self.area[source], self.area[target])
        return np.minimum(self.evidence.overlap(source, target) / least, 1.0)

    def change(self, values: Array, limit: float = 3.0) -> Array:
        """Target minus source of a per-cell measure, within +-limit, shape (h,)."""
        return np.clip(values[self.target] - values[self.source], -limit, limit)


def rank_within(group: Index, value: Array) -> Array:
    """Rank of every entry among those of its group, 0 for the smallest, shape (h,)."""
    order = np.lexsort((value, group))
    grouped = group[order]
    rank = np.zeros(len(group))
    if len(order):
        first = np.r_[True, grouped[1:] != grouped[:-1]]
        start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        rank[order] = np.arange(len(order)) - start
    return rank


def best_other(group: Index, value: Array, default: float) -> Array:
    """Smallest value among the other entries of the group, or `default`, shape (h,)."""
    order = np.lexsort((value, group))
    grouped, sorted_value = group[order], value[order]
    out = np.full(len(group), default)
    if not len(order):
        return out
    first = np.r_[True, grouped[1:] != grouped[:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    has_second = np.zeros(len(order), dtype=bool)
    has_second[:-1] = ~first[1:]
    second = np.where(
        has_second[start], sorted_value[np.minimum(start + 1, len(order) - 1)], default
    )
    out[order] = np.where(first, second, sorted_value[start])
    return np.minimum(out, default)
