"""The input of features: measures of cells that are comparable between movies, and events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.near import rank_within

STEPS = 3
"""Frames before and after an event that are examined: as many as windows of a movie overlap by."""


@dataclass(frozen=True)
class Held:
    """The cell of a neighbouring frame in which each cell lies."""

    cell: Index  # its row, -1 where there is none, shape (n,)
    share: Array  # share of the cell that lies in it, 0 where there is none, shape (n,)

    @classmethod
    def of(cls, inner: Index, outer: Index, share: Array, n: int) -> Held:
        """Make it from the share of one cell that lies in another, for some pairs of n cells."""
        mostly = share > 0.5
        cell, most = np.full(n, -1, dtype=np.int64), np.zeros(n)
        cell[inner[mostly]], most[inner[mostly]] = outer[mostly], share[mostly]
        return cls(cell, np.minimum(most, 1.0))

    @cached_property
    def second(self) -> Array:
        """Share of the second of the cells that lie in each cell; 0 with fewer, shape (n,)."""
        out = np.zeros(len(self.cell))
        second = (rank_within(self.cell, -self.share) == 1) & (self.cell >= 0)
        out[self.cell[second]] = self.share[second]
        return out


@dataclass(frozen=True)
class Chains:
    """Which cells of the frames before and after contain each cell, or are contained in it.

    If one cell is segmented as two, these are one again some frames later; if two cells are
    segmented as one, they were two some frames before. Daughters stay two, and a mother was one: so
    the frames around an event tell a wrong mask from a division. A cell *lies in* one of a
    neighbouring frame that covers more than half of it after the expected shift; at most one does.
    """

    before: Held  # cells of the frame before in which cells lie
    after: Held  # and of the frame after

    @classmethod
    def none(cls, n: int) -> Chains:
        """For n cells without any such information."""
        nothing = np.zeros(0, dtype=np.int64)
        held = Held.of(nothing, nothing, np.zeros(0), n)
        return cls(held, held)

    @classmethod
    def of(cls, evidence: Evidence) -> Chains:
        """From the overlaps of neighbouring frames."""
        n = len(evidence.detections)
        area = evidence.detections.table["area"].to_numpy(dtype=np.float64)
        i, j = np.divmod(evidence.overlap_key, max(n, 1))
        pixels = evidence.overlap_pixels
        return cls(Held.of(j, i, pixels / area[j], n), Held.of(i, j, pixels / area[i], n))

    def one_again(self, a: Index, b: Index, *, after: bool) -> Array:
        """The smaller of the shares that a later (earlier) cell covers of two cells.

        Shape (h,); 0 if no cell covers both within `STEPS` frames.
        """
        held, out = self.after if after else self.before, np.zeros(len(a))
        for _ in range(STEPS):
            one, two = held.cell[a], held.cell[b]
            there = (one >= 0) & (two >= 0) & (a >= 0) & (b >= 0)
            share = np.minimum(held.share[a], held.share[b])
            out = np.where(there & (one == two), np.maximum(out, share), out)
            on = there & (one != two)
            a, b = np.where(on, one, -1), np.where(on, two, -1)
        return out

    def two_again(self, whole: Index, *, after: bool) -> Array:
        """The smaller of the shares that a cell covers of two later (earlier) cells.

        Shape (h,); 0 if it covers no two within `STEPS` frames.
        """
        held, inner = (self.after, self.before) if after else (self.before, self.after)
        second, out = inner.second, np.zeros(len(whole))
        for _ in range(STEPS):
            out = np.where(whole >= 0, np.maximum(out, second[whole]), out)
            whole = np.where(whole >= 0, held.cell[whole], -1)
        return out


@dataclass(frozen=True)
class Overlaps:
    """Overlaps of cells with those of the neighbouring frames, after the expected shift."""

    expected: float  # overlap (IoU) that nine in ten pairs of best matches exceed; 0: unknown
    ahead: Array  # largest and second largest share of every cell in one later cell, shape (2, n)
    back: Array  # the same of earlier cells

    @classmethod
    def of(cls, evidence: Evidence, area: Array, *, alternatives: bool) -> Overlaps:
        """From the overlaps of neighbouring frames; `alternatives` overlap by themselves."""
        n, pixels = len(area), evidence.overlap_pixels
        i, j = np.divmod(evidence.overlap_key, max(n, 1))
        ahead, back = _two_largest(i, pixels / area[i], n), _two_largest(j, pixels / area[j], n)
        union = area[i] + area[j] - pixels
        iou = pixels / union
        most = (iou == _two_largest(i, iou, n)[0][i]) & (iou == _two_largest(j, iou, n)[0][j])
        known = most.any() and not alternatives
        return cls(float(np.quantile(iou[most], 0.1)) if known else 0.0, ahead, back)


def _two_largest(group: Index, value: Array, n: int) -> Array:
    """The largest and the second largest value of every group, 0 where there is none, (2, n)."""
    rank, out = rank_within(group, -value), np.zeros((2, n))
    for k in range(2):
        out[k, group[rank == k]] = value[rank == k]
    return out


@dataclass(frozen=True)
class CellMeasures:
    """Per-cell measures of shape (n,), dimensionless; 0 without the image or masks they need."""

    size: Array  # natural logarithm of the area
    relative_size: Array  # logarithm of the area over the movie's median area, within [-3, 3]
    # mean intensity in robust standard deviations above the median of its frame, within [-4, 4]
    brightness: Array
    level: Array  # asinh of the mean intensity over the movie's median intensity
    contrast: Array  # standard deviation over mean of the pixels, within [0, 3]
    elongation: Array  # 1 - minor/major axis
    roundness: Array  # as in `Detections`, also the next
    touching: Array
    axis: Array  # unit vector of the major axis, shape (n, ndim)
    border: Array  # exp(-distance to the frame's edge / cell diameter), 1 at the edge
    orphan: Array  # 1 where no cell of the previous frame is a mutual nearest neighbour in reach
    childless: Array  # the same of the next frame
    overlaps: Overlaps  # overlaps with cells before and after; none without masks
    chains: Chains  # cells before and after that contain each cell; none without masks
    # whether a cell some frames before (after) is by far nearer than any other and may be the
    # same cell, or its mother or daughter
    returns: Array
    goes_on: Array


def _column(table: pd.DataFrame, name: str) -> Array:
    if name in table.columns:
        return np.nan_to_num(table[name].to_numpy(dtype=np.float64))
    return np.zeros(len(table))


def _intensity(detections: Detections) -> tuple[Array, Array, Array]:
    """Brightness, level and contrast, averaged over the channels."""
    table, n = detections.table, len(detections)
    brightness, level, contrast = np.zeros(n), np.zeros(n), np.zeros(n)
    for k in range(len(detections.channels) if n else 0):
        mean, std = _column(table, f"mean_{k}"), _column(table, f"std_{k}")
        median = pd.Series(mean).groupby(detections.frame).transform("median").to_numpy()
        deviation, size = mean - median, np.abs(mean)
        # if most cells are equally bright, rounding errors must not count as differences
        least = 1e-6 * float(size.max()) + 1e-12
        spread = max(1.4826 * float(np.median(np.abs(deviation))), least)
        reference = max(float(np.median(size)), 1e-12)
        brightness += np.clip(deviation / spread, -4, 4)
        level += np.arcsinh(2.0 * mean / reference)
        contrast += np.clip(std / np.maximum(size, 0.1 * reference), 0, 3)
    channels = max(len(detections.channels), 1)
    return brightness / channels, level / channels, contrast / channels


def describe_cells(evidence: Evidence, *, alternatives: bool = False) -> CellMeasures:
    """Compute the measures of all cells; `alternatives` have no chains, and are not seen again."""
    detections = evidence.detections
    table, geometry = detections.table, detections.geometry
    size = np.log(np.maximum(table["area"].to_numpy(dtype=np.float64), 1e-9))
    brightness, level, contrast = _intensity(detections)
    masks = detections.has_masks and "major" in table.columns
    major, minor = _column(table, "major"), _column(table, "minor")
    axis = np.stack([_column(table, f"axis_{a}") for a in geometry.axes], axis=1)
    border = np.zeros(len(table))
    if "border_distance" in table.columns:
        distance = table["border_distance"].to_numpy(dtype=np.float64)
        border = np.exp(-np.maximum(distance, 0) / evidence.motion.diameter)
    reach = max(evidence.motion.diameter, 4 * evidence.motion.step)
    nobody = np.zeros(len(table))
    return CellMeasures(
        size=size,
        relative_size=np.clip(size - (np.median(size) if len(size) else 0.0), -3, 3),
        brightness=brightness,
        level=level,
        contrast=contrast,
        elongation=1.0 - minor / np.maximum(major, 1e-12) if masks else np.zeros(len(table)),
        roundness=_column(table, "roundness"),
        touching=_column(table, "touching"),
        axis=axis,
        border=np.nan_to_num(border),
        orphan=(evidence.residual_previous > reach).astype(np.float64),
        childless=(evidence.residual_next > reach).astype(np.float64),
        overlaps=Overlaps.of(evidence, np.exp(size), alternatives=alternatives),
        chains=Chains.none(len(detections)) if alternatives else Chains.of(evidence),
        returns=nobody if alternatives else evidence.missed.returns.astype(np.float64),
        goes_on=nobody if alternatives else evidence.missed.goes_on.astype(np.float64),
    )


@dataclass(frozen=True)
class EventView:
    """Hypotheses of one event with the rows of the cells they name, shapes (h,), -1 for none."""

    evidence: Evidence
    cells: CellMeasures
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

    @property
    def first(self) -> Index:
        """Row of the first cell that every event names, shape (h,)."""
        return self.target if len(self.source) and self.source[0] < 0 else self.source

    @property
    def fans_out(self) -> bool:
        """Whether one earlier cell corresponds to two later ones, rather than two to one."""
        return bool((self.other_target >= 0).any())

    @property
    def whole(self) -> Index:
        """Row of the one cell that corresponds to two."""
        return self.source if self.fans_out else self.target

    @property
    def two(self) -> tuple[Index, Index]:
        """Rows of the daughters, pieces or joined cells."""
        if self.fans_out:
            return self.target, self.other_target
        return self.source, self.other_source

    @property
    def links(self) -> tuple[tuple[Index, Index], tuple[Index, Index]]:
        """(source, target) of the links between one cell and two."""
        if self.fans_out:
            return (self.source, self.target), (self.source, self.other_target)
        return (self.source, self.target), (self.other_source, self.target)

    def apart(self, i: Index, j: Index) -> Array:
        """Distance between cells as they are seen, in diameters, at most 5."""
        shift = self.position[j] - self.position[i]
        return np.minimum(np.linalg.norm(shift, axis=1) / self.diameter, 5.0)

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

    def lead(self, source: Index, target: Index, *, forward: bool) -> Array:
        """Overlap as a share of the source (else the target), minus the largest with another cell.

        From -1 to 1.
        """
        cell = source if forward else target
        share = self.evidence.overlap(source, target) / self.area[cell]
        largest, second = self.cells.overlaps.ahead if forward else self.cells.overlaps.back
        return share - np.where(share >= largest[cell], second[cell], largest[cell])

    @property
    def trust(self) -> float:
        """Reliability of overlaps in this movie: the overlap expected of its links."""
        return self.cells.overlaps.expected

    def change(self, values: Array, limit: float = 3.0) -> Array:
        """Target minus source of a per-cell measure, within +-limit, shape (h,)."""
        return np.clip(values[self.target] - values[self.source], -limit, limit)
