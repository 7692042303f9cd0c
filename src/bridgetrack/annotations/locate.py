"""Finding the detection that a remembered cell is now, one frame at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.detections.size import equivalent_diameter
from bridgetrack.detections.table import Detections
from bridgetrack.movie.movie import Movie

SAME_PLACE = 0.15
"""Shift, in cell diameters, up to which a cell with the same label is the same cell."""

ROUNDING = 0.02
"""Pixels that a position may be off because it was rounded when written."""

CLEARLY_NEARER = 0.5
"""Of two cells within reach, the nearer one must be at most this times as far as the other.

Where a cell was cut in two, the ratio is that of the areas of the pieces."""

FAR = 1e9
"""Pixels beyond which a position is no place in any movie; keeps squares finite."""


class Outcome(IntEnum):
    """How a cell was found, or why not."""

    LABEL = 0
    MASK = 1
    NEAREST = 2
    NO_FRAME = 3
    NOTHING_NEAR = 4
    AMBIGUOUS = 5
    SHARED = 6


@dataclass(frozen=True)
class Remembered:
    """Cells as they were when somebody pointed at them.

    Parameters
    ----------
    frame, label
        Shape (m,).
    position
        Centroids in pixels, shape (m, ndim).
    """

    frame: NDArray[np.int64]
    label: NDArray[np.int64]
    position: NDArray[np.float64]


@dataclass(frozen=True)
class Located:
    """Rows of cells that were looked for.

    Parameters
    ----------
    row
        Row of the detection, shape (m,), -1 where none was found.
    outcome
        How, shape (m,), values of `Outcome`.
    """

    row: NDArray[np.int64]
    outcome: NDArray[np.int8]


def cell_diameters(detections: Detections) -> NDArray[np.float64]:
    """Diameter of the disc or ball with each detection's area, in ``geometry.unit``.

    Parameters
    ----------
    detections
        The table. Where the masks are not known and an area says nothing (missing, or at most
        one pixel), half the median distance between nearest neighbours stands in.

    Returns
    -------
    ndarray
        Shape (n,).
    """
    area = detections.table["area"].to_numpy(dtype=np.float64)
    known = area > (0 if detections.has_masks else 1)
    diameter = np.where(known, equivalent_diameter(detections), np.nan)
    unknown = np.isnan(diameter)
    if unknown.any():
        diameter[unknown] = _half_spacing(detections)
    return np.asarray(diameter, dtype=np.float64)


def _half_spacing(detections: Detections) -> float:
    position, offsets = detections.position, detections.offsets
    found = []
    for start, stop in pairwise(offsets.tolist()):
        if stop - start > 1:
            distance, _ = cKDTree(position[start:stop]).query(position[start:stop], k=2)
            found.append(distance[:, 1])
    if not found:
        return float(10 * detections.geometry.scale_array.max())
    return float(np.median(np.concatenate(found)) / 2)


def locate(
    cells: Remembered, detections: Detections, labels: Movie | None, reach: float
) -> Located:
    """Find the detections that m remembered cells are now.

    Parameters
    ----------
    cells
        The cells to find.
    detections
        The present detections.
    labels
        Their label movie, where there is one; frames are read only where labels do not decide.
    reach
        Largest distance to a centroid, in diameters of its cell.

    Returns
    -------
    Located
        Same label at the same place first, then the mask that covers the position, then the
        nearest centroid within reach; a second cell about as near makes it ambiguous.
    """
    position = np.clip(cells.position, -FAR, FAR)
    row = np.full(len(cells.frame), -1, dtype=np.int64)
    outcome = np.full(len(cells.frame), Outcome.NO_FRAME, dtype=np.int8)
    diameter, present = cell_diameters(detections), detections.position
    scale, offsets, own = detections.geometry.scale_array, detections.offsets, detections.label
    known = cells.frame[cells.frame < detections.geometry.n_frames]
    for t in np.unique(known).tolist():
        here = np.flatnonzero(cells.frame == t)
        rows = slice(int(offsets[t]), int(offsets[t + 1]))
        if rows.start == rows.stop:
            outcome[here] = Outcome.NOTHING_NEAR
            continue
        view = _Frame(present[rows], diameter[rows], own[rows], scale, reach)
        k, how = view.find(cells.label[here], position[here], labels, t)
        row[here] = np.where(k >= 0, k + rows.start, -1)
        outcome[here] = how
    _part_shared(row, outcome, position * scale, present, diameter * reach)
    return Located(row, outcome)


_Answer = tuple[NDArray[np.int64], NDArray[np.int8]]


@dataclass(frozen=True)
class _Frame:
    """The detections of one frame: positions, diameters and rising labels."""

    position: NDArray[np.float64]
    diameter: NDArray[np.float64]
    label: NDArray[np.int64]
    scale: NDArray[np.float64]
    reach: float

    def find(
        self, label: NDArray[np.int64], pixel: NDArray[np.float64], labels: Movie | None, t: int
    ) -> _Answer:
        """Rows within the frame, -1 where none, and how they were found; shapes (m,)."""
        point = pixel * self.scale
        distance, near = cKDTree(self.position).query(point, k=2)
        near = np.minimum(near, len(self.position) - 1).astype(np.int64)
        row, how = self._by_centroid(near, distance)
        same = self._same_label(label, point, distance[:, 0])
        if labels is not None and (same < 0).any():
            covering = self._covering(pixel, labels.channel_frame(t))
            # a mask cut in two covers the old centroid by chance: its other half is as near
            by_chance = (how == Outcome.AMBIGUOUS) & (covering[:, None] == near).any(axis=1)
            clear = (covering >= 0) & ~by_chance
            row = np.where(clear, covering, row)
            how = np.where(clear, np.int8(Outcome.MASK), how)
        row = np.where(same >= 0, same, row)
        return row, np.where(same >= 0, np.int8(Outcome.LABEL), how)

    def _same_label(
        self,
        label: NDArray[np.int64],
        point: NDArray[np.float64],
        nearest: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        k = self._row_of(label)
        away = np.linalg.norm(self.position[k] - point, axis=1)
        slack = ROUNDING * float(self.scale.max())
        good = (k >= 0) & (away <= SAME_PLACE * self.diameter[k] + slack)
        return np.where(good & (away <= nearest + slack), k, -1)

    def _row_of(self, label: NDArray[np.int64]) -> NDArray[np.int64]:
        k = np.minimum(np.searchsorted(self.label, label), len(self.label) - 1)
        return np.where(self.label[k] == label, k, -1)

    def _by_centroid(self, near: NDArray[np.int64], distance: NDArray[np.float64]) -> _Answer:
        within = distance <= self.reach * self.diameter[near]
        rivals = within[:, 1] & (distance[:, 0] > CLEARLY_NEARER * distance[:, 1])
        how = np.where(within[:, 0], np.int8(Outcome.NEAREST), np.int8(Outcome.NOTHING_NEAR))
        how = np.where(rivals, np.int8(Outcome.AMBIGUOUS), how)
        return np.where(how == Outcome.NEAREST, near[:, 0], -1), how

    def _covering(
        self, pixel: NDArray[np.float64], image: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Rows of the masks that cover positions in pixels."""
        at = np.rint(pixel).astype(np.int64)
        inside = ((at >= 0) & (at < image.shape)).all(axis=1)
        value = np.zeros(len(pixel), dtype=np.int64)
        value[inside] = image[tuple(at[inside].T)]
        return np.where(value > 0, self._row_of(value), -1)


def _part_shared(
    row: NDArray[np.int64],
    outcome: NDArray[np.int8],
    point: NDArray[np.float64],
    present: NDArray[np.float64],
    reach: NDArray[np.float64],
) -> None:
    """Unanchor cells that lay apart and are one detection now (changes row and outcome).

    The one that kept its label and place keeps its detection.
    """
    found = np.flatnonzero(row >= 0)
    found = found[np.argsort(row[found], kind="stable")]
    _, start, count = np.unique(row[found], return_index=True, return_counts=True)
    for s, c in zip(start[count > 1].tolist(), count[count > 1].tolist(), strict=True):
        group = found[s : s + c]
        r = row[group[0]]
        leader = group[np.argmin(np.linalg.norm(point[group] - present[r], axis=1))]
        apart = np.linalg.norm(point[group] - point[leader], axis=1) > reach[r]
        if apart.any():
            lost = group[apart] if outcome[leader] == Outcome.LABEL else group
            row[lost], outcome[lost] = -1, Outcome.SHARED
