"""Which cell lies under a point, by its mask or by its centroid."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.errors import InputError
from bridgetrack.movie import Movie

_KEPT = 4
"""Frames and outlines that are kept."""


class CellFinder:
    """Finds cells by their masks; frames looked at last are kept in memory."""

    def __init__(self, labels: Movie, detections: Detections) -> None:
        self._labels = labels
        self._detections = detections
        self._read = lru_cache(maxsize=_KEPT)(labels.channel_frame)
        self._traced = lru_cache(maxsize=_KEPT)(self._trace)

    def frame(self, t: int) -> NDArray[np.integer]:
        """Labels of a frame, shape ([Z,] Y, X)."""
        return self._read(t)

    def row_at(self, t: int, point: tuple[float, ...]) -> int:
        """Row of the cell at a point in pixels of frame `t`, -1 where there is none."""
        if not 0 <= t < self._labels.n_frames:
            return -1
        pixels = self.frame(t)
        at = tuple(round(p) for p in point)
        if not all(0 <= a < n for a, n in zip(at, pixels.shape, strict=True)):
            return -1
        label = int(pixels[at])
        try:
            return self._detections.row_of(t, label) if label else -1
        except InputError:
            return -1

    def ref(self, row: int) -> CellRef:
        """A reference to a cell by its row."""
        return cell_refs(self._detections, np.array([row]))[0]

    def outline(self, row: int) -> NDArray[np.float64]:
        """Pixels along a cell's border, shape (k, ndim); in 3D those of its middle slice."""
        return self._traced(row)

    def _trace(self, row: int) -> NDArray[np.float64]:
        t, label = int(self._detections.frame[row]), int(self._detections.label[row])
        inside = self.frame(t) == label
        where = np.argwhere(inside)
        if not len(where):
            return np.zeros((0, inside.ndim))
        low = np.maximum(where.min(axis=0) - 1, 0)
        box = inside[tuple(slice(a, b + 2) for a, b in zip(low, where.max(axis=0), strict=True))]
        return np.argwhere(_border(box)).astype(np.float64) + low


def _border(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels of a mask that have a neighbour in the plane outside of it."""
    padded = np.pad(mask, 1)
    inner = padded.copy()
    for axis in (-2, -1):
        for shift in (-1, 1):
            inner &= np.roll(padded, shift, axis)
    core = tuple(slice(1, -1) for _ in mask.shape)
    return np.asarray(mask & ~inner[core])


class PointFinder:
    """As `CellFinder`, for cells that are known by their centroids alone: each is a disc."""

    def __init__(self, detections: Detections) -> None:
        self._detections = detections
        scale = np.array(detections.geometry.scale)
        self._stretch = scale / scale[-2:].mean()
        self._radius = shown_diameter(detections) / 2
        self._place = detections.table[list(detections.geometry.axes)].to_numpy(dtype=np.float64)

    def row_at(self, t: int, point: tuple[float, ...]) -> int:
        """Row of the cell nearest to a point in pixels of frame `t`, -1 where none is near."""
        if not 0 <= t < self._detections.geometry.n_frames:
            return -1
        rows = np.arange(len(self._detections))[self._detections.rows(t)]
        if not len(rows):
            return -1
        away = np.linalg.norm((self._place[rows] - np.asarray(point)) * self._stretch, axis=1)
        best = int(np.argmin(away))
        return int(rows[best]) if away[best] <= self._radius else -1

    def ref(self, row: int) -> CellRef:
        """A reference to a cell by its row."""
        return cell_refs(self._detections, np.array([row]))[0]

    def outline(self, row: int) -> NDArray[np.float64]:
        """Points along the disc of a cell, shape (k, ndim)."""
        angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
        ring = np.repeat(self._place[row][None], len(angle), axis=0)
        ring[:, -2] += self._radius * np.sin(angle)
        ring[:, -1] += self._radius * np.cos(angle)
        return ring


def shown_diameter(detections: Detections) -> float:
    """Diameter in pixels to draw cells at; half the usual distance where a table knows no sizes."""
    geometry = detections.geometry
    if not len(detections):
        return 10.0
    diameter = cell_diameter(detections) / float(np.mean(geometry.scale[-2:]))
    if detections.has_masks or diameter > 2:
        return diameter
    crowded = int(np.bincount(detections.frame).argmax())
    place = detections.position[detections.rows(crowded)]
    if len(place) < 2:
        return 10.0
    near = cKDTree(place).query(place, k=2)[0][:, 1]
    return max(float(np.median(near)) / float(np.mean(geometry.scale[-2:])) / 2, 6.0)
