"""Which detections annotations speak of, also after a new segmentation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, equivalent_diameter
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.movie import Movie

SAME_PLACE = 0.15
"""Shift, in cell diameters, up to which a cell with the same label is the same cell."""

ROUNDING = 0.02
"""Pixels that a position may be off because it was rounded when written."""

REACH = 0.5
"""Largest distance to a centroid, in diameters of the cell."""

CLEARLY_NEARER = 0.5
"""Of two cells within reach, the nearer one must be at most this times as far as the other.

Where a cell was cut in two, the ratio is that of the areas of the pieces."""

FAR = 1e9
"""Pixels beyond which a position is no place in any movie; keeps squares finite."""


@dataclass(frozen=True)
class Lost:
    """An annotation that names a cell which is not there any more."""

    id: str
    cell: CellRef  # the cell that was not found, as it was when annotated
    reason: str  # why, as a sentence without a full stop


@dataclass(frozen=True)
class Anchored:
    """Annotations whose cells are rows of a table of detections."""

    # all annotations, lost ones too; the table that the rows belong to
    annotations: AnnotationSet
    detections: Detections
    listed: tuple[Annotation, ...]  # annotations that were anchored, in natural order, A of them
    owner: Index  # index into `listed` of every event, shape (E,), rising
    events: Events  # the events, E of them; those that do not name all their cells are patterns
    # what could not be anchored, in natural order; the first missing cell of each
    lost: tuple[Lost, ...]
    rows: dict[CellRef, int]  # row of every cell that an anchored annotation names

    def take(self, rows: NDArray[np.integer]) -> Anchored:
        """Some of the anchored annotations, by rising index into `listed`."""
        place = np.full(len(self.listed), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        kept = place[self.owner] >= 0
        return replace(
            self,
            listed=tuple(self.listed[r] for r in rows.tolist()),
            owner=place[self.owner[kept]],
            events=self.events.take(kept),
        )

    def refreshed(self) -> AnnotationSet:
        """The same annotations with the labels and positions of the present detections.

        Lost ones stay as they were. Keep this set after a new segmentation, so that labels of
        two segmentations are not mixed.
        """
        refs = iter(event_refs(self.detections, self.events))
        fresh = [replace(a, events=tuple(next(refs) for _ in a.events)) for a in self.listed]
        gone = (self.annotations[i.id] for i in self.lost)
        return AnnotationSet(self.detections.geometry, (*fresh, *gone), self.annotations.last_ids)


def cell_refs(detections: Detections, rows: NDArray[np.integer]) -> list[CellRef]:
    """References to detections, by row.

    Parameters
    ----------
    detections
        The table.
    rows
        Row numbers, shape (k,).

    Returns
    -------
    list of CellRef
        With positions in pixels, rounded to a hundredth.
    """
    # Column by column: of several columns at once pandas makes a new table, at every click.
    columns = (detections.table[axis] for axis in detections.geometry.axes)
    places = [c.to_numpy(dtype=np.float64)[rows].round(2).tolist() for c in columns]
    frames, labels = detections.frame[rows].tolist(), detections.label[rows].tolist()
    cells = zip(frames, labels, zip(*places, strict=True), strict=True)
    return [CellRef(frame, label, place) for frame, label, place in cells]


def event_refs(detections: Detections, events: Events) -> list[EventRef]:
    """References to events given in rows of detections.

    Raises
    ------
    InputError
        Where the cells of an event do not fit its kind.
    """
    cells = np.concatenate([events.sources, events.targets], axis=1)
    named = np.unique(cells[cells >= 0])
    refs = dict(zip(named.tolist(), cell_refs(detections, named), strict=True))
    columns = (events.event.tolist(), events.sources.tolist(), events.targets.tolist())
    return [
        EventRef(
            Event(e),
            tuple(refs[r] for r in s if r >= 0),
            tuple(refs[r] for r in t if r >= 0),
        )
        for e, s, t in zip(*columns, strict=True)
    ]


def anchor(
    annotations: AnnotationSet,
    detections: Detections,
    labels: Movie | None = None,
) -> Anchored:
    """Find the detections that annotations speak of; nothing is dropped.

    A cell is, in this order, the detection with its label at its place, the detection whose mask
    covers its position, or the one with the nearest centroid. The annotations may be made on an
    earlier segmentation; without the label movie masks are not looked at. Raises InputError where
    the annotations are of a movie with another number of axes.
    """
    ndim = detections.geometry.ndim
    if annotations.geometry.ndim != ndim:
        raise InputError(
            f"the annotations belong to a movie with {annotations.geometry.ndim} spatial axes, "
            f"this one has {ndim}; choose the annotations of this movie"
        )
    cells = list(dict.fromkeys(c for a in annotations for c in a.cells))
    frame = np.array([c.frame for c in cells], dtype=np.int64)
    label = np.array([c.label for c in cells], dtype=np.int64)
    position = np.array([c.position for c in cells], dtype=np.float64).reshape(-1, ndim)
    row = _locate(frame, label, position, detections, labels)
    rows = {c: r for c, r in zip(cells, row.tolist(), strict=True) if r >= 0}
    why = {
        _NO_FRAME: f"the movie has only {detections.geometry.n_frames} frames",
        _NOTHING_NEAR: f"there is no detection within {REACH:g} cell diameters of it now",
        _AMBIGUOUS: "two detections are about equally near to it now",
        _SHARED: "it and another annotated cell are one detection now",
    }
    reasons = {c: why[r] for c, r in zip(cells, row.tolist(), strict=True) if r < 0}
    listed, lost = [], []
    for a in annotations:
        missing = next((c for c in a.cells if c in reasons), None)
        if missing is not None:
            lost.append(Lost(a.id, missing, reasons[missing]))
        elif (twin := _twin(a, rows)) is not None:
            reason = "it and another cell of the same annotation are one detection now"
            lost.append(Lost(a.id, twin, reason))
        else:
            listed.append(a)
    named = [(k, e) for k, a in enumerate(listed) for e in a.events]
    owner = np.array([k for k, _ in named], dtype=np.int64)
    events = Events(
        np.array([e.event for _, e in named], dtype=np.int8),
        _pairs([[rows[c] for c in e.sources] for _, e in named]),
        _pairs([[rows[c] for c in e.targets] for _, e in named]),
    )
    return Anchored(annotations, detections, tuple(listed), owner, events, tuple(lost), rows)


def _twin(annotation: Annotation, rows: dict[CellRef, int]) -> CellRef | None:
    """A cell of an annotation that is the same detection as another cell of it."""
    seen: dict[int, CellRef] = {}
    for c in annotation.cells:
        if seen.setdefault(rows[c], c).cell != c.cell:
            return c
    return None


def _pairs(rows: list[list[int]]) -> Index:
    """Up to two rows of each event, ascending, -1 where there is none, shape (E, 2)."""
    full = [[*sorted(pair), -1, -1][:2] for pair in rows]
    return np.array(full, dtype=np.int64).reshape(-1, 2)


_NO_FRAME, _NOTHING_NEAR, _AMBIGUOUS, _SHARED = -1, -2, -3, -4
"""Why a cell was not found, in place of its row."""

_Index = Index


def _locate(
    frame: _Index,
    label: _Index,
    position: Array,
    detections: Detections,
    labels: Movie | None,
) -> _Index:
    """Rows of m cells; frames of the label movie are read only where labels fail."""
    position = np.clip(position, -FAR, FAR)
    row = np.full(len(frame), _NO_FRAME, dtype=np.int64)
    by_label = np.zeros(len(frame), dtype=bool)
    diameter, present = cell_diameters(detections), detections.position
    scale, own, offsets = detections.geometry.scale_array, detections.label, detections.offsets
    for t in np.unique(frame[frame < detections.geometry.n_frames]).tolist():
        here = np.flatnonzero(frame == t)
        rows = slice(int(offsets[t]), int(offsets[t + 1]))
        if rows.start == rows.stop:
            row[here] = _NOTHING_NEAR
            continue
        view = _Frame(present[rows], diameter[rows], own[rows], scale)
        k, by_label[here] = view.find(label[here], position[here], labels, t)
        row[here] = np.where(k >= 0, k + rows.start, k)
    _part_shared(row, by_label, position * scale, present, diameter * REACH)
    return row


@dataclass(frozen=True)
class _Frame:
    """The detections of one frame: positions, diameters and rising labels."""

    position: Array
    diameter: Array
    label: _Index
    scale: Array

    def find(
        self, label: _Index, pixel: Array, labels: Movie | None, t: int
    ) -> tuple[_Index, Mask]:
        """Rows within the frame or why there is none, and which were found by label; (m,)."""
        point = pixel * self.scale
        distance, near = cKDTree(self.position).query(point, k=2)
        near = np.minimum(near, len(self.position) - 1).astype(np.int64)
        row = self._by_centroid(near, distance)
        same = self._same_label(label, point, distance[:, 0])
        if labels is not None and (same < 0).any():
            covering = self._covering(pixel, labels.channel_frame(t))
            # a mask cut in two covers the old centroid by chance: its other half is as near
            by_chance = (row == _AMBIGUOUS) & (covering[:, None] == near).any(axis=1)
            row = np.where((covering >= 0) & ~by_chance, covering, row)
        return np.where(same >= 0, same, row), same >= 0

    def _same_label(self, label: _Index, point: Array, nearest: Array) -> _Index:
        k = self._row_of(label)
        away = np.linalg.norm(self.position[k] - point, axis=1)
        slack = ROUNDING * float(self.scale.max())
        good = (k >= 0) & (away <= SAME_PLACE * self.diameter[k] + slack)
        return np.where(good & (away <= nearest + slack), k, -1)

    def _row_of(self, label: _Index) -> _Index:
        k = np.minimum(np.searchsorted(self.label, label), len(self.label) - 1)
        return np.where(self.label[k] == label, k, -1)

    def _by_centroid(self, near: _Index, distance: Array) -> _Index:
        within = distance <= REACH * self.diameter[near]
        rivals = within[:, 1] & (distance[:, 0] > CLEARLY_NEARER * distance[:, 1])
        found = np.where(within[:, 0], near[:, 0], _NOTHING_NEAR)
        return np.where(rivals, _AMBIGUOUS, found)

    def _covering(self, pixel: Array, image: NDArray[np.integer]) -> _Index:
        """Rows of the masks that cover positions in pixels."""
        at = np.rint(pixel).astype(np.int64)
        inside = ((at >= 0) & (at < image.shape)).all(axis=1)
        value = np.zeros(len(pixel), dtype=np.int64)
        value[inside] = image[tuple(at[inside].T)]
        return np.where(value > 0, self._row_of(value), -1)


def _part_shared(
    row: _Index,
    by_label: Mask,
    point: Array,
    present: Array,
    reach: Array,
) -> None:
    """Unanchor cells that lay apart and are one detection now, but for one with its own label."""
    found, count = np.unique(row[row >= 0], return_counts=True)
    for r in found[count > 1].tolist():
        group = np.flatnonzero(row == r)
        leader = group[np.argmin(np.linalg.norm(point[group] - present[r], axis=1))]
        apart = np.linalg.norm(point[group] - point[leader], axis=1) > reach[r]
        if apart.any():
            row[group[apart] if by_label[leader] else group] = _SHARED


def cell_diameters(detections: Detections) -> Array:
    """Diameter of the disc or ball with each detection's area, in ``geometry.unit``, shape (n,).

    Where the masks are not known and an area says nothing (missing, or at most one pixel), half the
    median distance between nearest neighbours stands in.
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
