"""The columnar table of detections of one movie, and the length scales of its cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry

_SHOWN = 12
FARTHEST = 1e12
"""Pixels beyond which a position or an area is a mistake."""
_FRAMES, _FRAMES_PER_CELL = 10_000, 10
"""Most frames of a table without masks: this many, and this many more for each cell."""


@dataclass(frozen=True)
class Detections:
    """Every detection of a movie, one row each.

    Parameters
    ----------
    table
        Sorted by ``frame`` then ``label`` with a plain RangeIndex; the row number is the
        detection's index everywhere else. Always there: ``frame``, ``label`` (int64), the
        position in pixels (``z`` in 3D, ``y``, ``x``), ``area`` (pixels or voxels). There where
        masks are known: ``major``, ``minor`` (full axis lengths of the ellipse with the same
        second moments, in ``geometry.unit``), ``axis_z``/``axis_y``/``axis_x`` (unit vector of
        the major axis), ``roundness`` (0-1), ``touching`` (share of the outline that touches
        other labels, 0-1). Always there where the frame shape is known: ``border_distance`` (in
        ``geometry.unit``, from the mask's bounding box, or the centroid, to the frame's edge).
        There where an image is known, per channel k: ``mean_k``, ``std_k``, ``sum_k``
        (background-subtracted intensity).
    geometry
        Extent, scale and units of the movie.
    channels
        Names of the measured channels; empty for movies without an image.
    has_masks
        Whether the detections came from label images.

    Raises
    ------
    InputError
        Where a column is missing, rows are out of order or occur twice, a frame lies outside
        the movie, or a position or area is not a usable number.
    """

    table: pd.DataFrame
    geometry: Geometry
    channels: tuple[str, ...] = ()
    has_masks: bool = True

    def __post_init__(self) -> None:
        needed = ["frame", "label", *self.geometry.axes, "area"]
        missing = [c for c in needed if c not in self.table.columns]
        if missing:
            raise InputError(
                f"the table of detections lacks the columns {missing}; it needs {needed}"
            )
        self._check_numbers()
        self._check_order()

    def _check_numbers(self) -> None:
        most = _FRAMES + _FRAMES_PER_CELL * len(self.table)
        if self.geometry.n_frames > most and not self.has_masks:
            raise InputError(
                f"{self.geometry.n_frames:,} frames are too many for a table of "
                f"{len(self.table):,} cells; look for a frame number that is wrong"
            )
        for name in (*self.geometry.axes, "area"):
            values = self.table[name].to_numpy(dtype=np.float64)
            wild = ~(np.abs(values) <= FARTHEST)
            bad = np.flatnonzero(wild | ((values <= 0) & (name == "area")))
            if len(bad):
                raise InputError(
                    f"{name} is {values[bad[0]]:g} {self._named(int(bad[0]))} of the table of "
                    f"detections; positions must be numbers of pixels, at most {FARTHEST:g}, and "
                    "areas above 0"
                )

    def _check_order(self) -> None:
        outside = np.flatnonzero((self.frame < 0) | (self.frame >= self.geometry.n_frames))
        if len(outside):
            raise InputError(
                f"there is a detection {self._named(int(outside[0]))}, but the movie has frames "
                f"0 to {self.geometry.n_frames - 1}"
            )
        step, higher = np.diff(self.frame), np.diff(self.label)
        wrong = np.flatnonzero((step < 0) | ((step == 0) & (higher <= 0)))
        if len(wrong):
            raise InputError(
                "detections must be sorted by frame, then label, each named once; this fails "
                f"{self._named(int(wrong[0]) + 1)}"
            )

    def _named(self, row: int) -> str:
        return f"in frame {self.frame[row]} at label {self.label[row]}"

    def __len__(self) -> int:
        return len(self.table)

    # Read thousands of times, also at every click; hence kept, and read-only.

    @cached_property
    def frame(self) -> Index:
        """Frame of every detection, shape (n,)."""
        return _fixed(self.table["frame"].to_numpy(dtype=np.int64))

    @cached_property
    def label(self) -> Index:
        """Label of every detection in its frame, shape (n,)."""
        return _fixed(self.table["label"].to_numpy(dtype=np.int64))

    @cached_property
    def position(self) -> Array:
        """Centroids in ``geometry.unit``, shape (n, ndim)."""
        pixels = self.table[list(self.geometry.axes)].to_numpy(dtype=np.float64)
        return _fixed(pixels * self.geometry.scale_array)

    @cached_property
    def offsets(self) -> Index:
        """First row of every frame and the total at the end, shape (n_frames + 1,)."""
        starts = np.searchsorted(self.frame, np.arange(self.geometry.n_frames + 1))
        return _fixed(starts.astype(np.int64))

    def rows(self, t: int) -> slice:
        """Rows of frame `t`."""
        offsets = self.offsets
        return slice(int(offsets[t]), int(offsets[t + 1]))

    def row_of(self, frame: int, label: int) -> int:
        """Row of the detection with this identity.

        Raises
        ------
        InputError
            Where there is no such detection; the message lists some that there are.
        """
        row = self.find(frame, label)
        if row < 0:
            raise InputError(
                f"there is no cell with label {label} in frame {frame}; {self._there(frame)}"
            )
        return row

    def within(self, movie: Geometry) -> Detections:
        """The same cells with the extent of a movie, if their own is unknown.

        Raises an `InputError` where there are cells after its last frame.
        """
        here = self.geometry
        alike = (here.ndim, here.unit) == (movie.ndim, movie.unit)
        if here.shape is not None or movie.shape is None or not alike:
            return self
        geometry = replace(here, n_frames=movie.n_frames, shape=movie.shape)
        table = self.table.assign(border_distance=border_distance(self.table, geometry))
        return replace(self, table=table, geometry=geometry)

    def find(self, frame: int, label: int) -> int:
        """Row of the detection with this identity, -1 where there is none."""
        if not 0 <= frame < self.geometry.n_frames:
            return -1
        rows = self.rows(frame)
        k = rows.start + int(np.searchsorted(self.label[rows], label))
        return k if k < rows.stop and self.label[k] == label else -1

    def _there(self, frame: int) -> str:
        """Some labels of a frame for messages, or the frames where there is no such frame."""
        n = self.geometry.n_frames
        if not 0 <= frame < n:
            return f"the movie has the frames 0 to {n - 1}"
        labels = self.label[self.rows(frame)]
        if not len(labels):
            return "that frame has no cells"
        shown = ", ".join(str(k) for k in labels[:_SHOWN].tolist())
        more = f" and {len(labels) - _SHOWN} more, up to {labels[-1]}"
        return f"its labels are {shown}{more if len(labels) > _SHOWN else ''}"


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The numbers as an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def equivalent_diameter(detections: Detections) -> Array:
    """Diameter of the disc or ball with a cell's area, in the movie's unit, shape (n,)."""
    geometry = detections.geometry
    area = detections.table["area"].to_numpy(dtype=np.float64) * float(np.prod(geometry.scale))
    if geometry.ndim == 2:
        return np.asarray(2.0 * np.sqrt(area / np.pi))
    return np.asarray(np.cbrt(6.0 * area / np.pi))


def content(radius: Array, ndim: int) -> Array:
    """Area of discs, or volume of balls."""
    return np.asarray(np.pi * radius**2 if ndim == 2 else 4 / 3 * np.pi * radius**3)


def border_distance(table: pd.DataFrame, geometry: Geometry) -> Array:
    """Distance of centroids to the edge of the frame, whose shape is known, in the unit, (n,)."""
    pixels = table[list(geometry.axes)].to_numpy(dtype=np.float64)
    far_edge = np.asarray(geometry.shape, dtype=np.float64) - 1 - pixels
    gaps = np.minimum(pixels, far_edge) * geometry.scale_array
    return np.asarray(np.maximum(gaps.min(axis=1), 0.0))


def cell_diameter(detections: Detections) -> float:
    """Median equivalent diameter of the movie, in its unit; positive."""
    diameter = equivalent_diameter(detections)
    return max(float(np.median(diameter)), 1e-6) if len(diameter) else 1.0


def detections_at(
    frame: Index,
    position: Array,
    geometry: Geometry,
    label: NDArray[Any] | None = None,
    area: Array | None = None,
) -> Detections:
    """Cells without masks, in any order.

    Parameters
    ----------
    frame, position
        Where they are: shapes (n,) and (n, ndim), in pixels.
    geometry
        Extent and scale of the movie.
    label
        Their identities, shape (n,); those that have none (below 1, or NaN), or one that is taken
        in their frame, get new numbers.
    area
        In pixels, shape (n,); 1 where it is not known.
    """
    known = np.zeros(len(frame)) if label is None else np.nan_to_num(label)
    table = pd.DataFrame({"frame": frame, "label": known.astype(np.int64)})
    missing = ((table["label"] < 1) | table.duplicated()).to_numpy()
    free = 1 + int(table["label"][~missing].max()) if not missing.all() else 1
    table.loc[missing, "label"] = free + np.arange(int(missing.sum()))
    table[list(geometry.axes)] = position
    sizes = np.ones(len(frame)) if area is None else np.asarray(area, dtype=np.float64)
    table["area"] = np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)
    table = table.sort_values(["frame", "label"], kind="stable", ignore_index=True)
    if geometry.shape is not None:
        table["border_distance"] = border_distance(table, geometry)
    return Detections(table, geometry, has_masks=False)
