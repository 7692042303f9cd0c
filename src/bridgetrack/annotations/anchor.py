"""The detections that annotations refer to, also after a new segmentation."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
"""Pixels beyond which a position is in no movie; keeps squares finite."""


@dataclass(frozen=True)
class Lost:
    """An annotation that names a cell which does not exist any more."""

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
    # annotations that could not be anchored, in natural order; the first missing cell of each
    lost: tuple[Lost, ...]
    rows: dict[CellRef, int]  # row of every cell that was found

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


def cell_refs(detections: Detections, rows: NDArray[np.integer]) -> list[CellRef]:
    """References to detections of some rows; positions in pixels, rounded to a hundredth."""
    # Column by column: for several columns at once pandas makes a new table, at every click.
    columns = (detections.table[axis] for axis in detections.geometry.axes)
    places = [c.to_numpy(dtype=np.float64)[rows].round(2).tolist() for c in columns]
    frames, labels = detections.frame[rows].tolist(), detections.label[rows].tolist()
    cells = zip(frames, labels, zip(*places, strict=True), strict=True)
    return [CellRef(frame, label, place) for frame, label, place in cells]


def event_refs(detections: Detections, events: Events) -> list[EventRef]:
    """References to events given in rows of detections.

    Raises an `InputError` if the cells of an event do not fit its kind.
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
    annotations: AnnotationSet, detections: Detections, labels: Movie | None = None
) -> Anchored:
    """Find the detections that annotations refer to; nothing is dropped.

    A cell is, in this order, the detection with its label at its place, the detection whose mask
    covers its position, or the one with the nearest centroid. The annotations may be made on an
    earlier segmentation; without the label movie masks are not used. Raises an `InputError` if the
    annotations are of a movie with another number of axes.
    """
    ndim = detections.geometry.ndim
    if annotations.geometry.ndim != ndim:
        raise InputError(
            f"the annotations belong to a movie with {annotations.geometry.ndim} spatial axes, "
            f"this one has {ndim}; choose the annotations of this movie"
        )
    cells = list(dict.fromkeys(c for a in annotations for c in a.cells))
    found = _locate(cells, detections, labels).tolist() if cells else []
    rows = dict(zip(cells, found, strict=True))
    listed, lost = [], []
    for a in annotations:
        problem = _problem(a, rows, detections)
        if problem is None:
            listed.append(a)
        else:
            lost.append(problem)
    named = [(k, e) for k, a in enumerate(listed) for e in a.events]
    events = Events(
        np.array([e.event for _, e in named], dtype=np.int8),
        _pairs([[rows[c] for c in e.sources] for _, e in named]),
        _pairs([[rows[c] for c in e.targets] for _, e in named]),
    )
    owner = np.array([k for k, _ in named], dtype=np.int64)
    there = {c: row for c, row in rows.items() if row >= 0}
    return Anchored(annotations, detections, tuple(listed), owner, events, tuple(lost), there)


def _pairs(rows: list[list[int]]) -> Index:
    """Up to two rows of each event, ascending, -1 if there is none, shape (E, 2)."""
    full = [[*sorted(pair), -1, -1][:2] for pair in rows]
    return np.array(full, dtype=np.int64).reshape(-1, 2)


_NO_FRAME, _NOTHING_NEAR, _AMBIGUOUS, _SHARED = -1, -2, -3, -4
"""Why a cell was not found, in place of its row."""


def _problem(
    annotation: Annotation, rows: dict[CellRef, int], detections: Detections
) -> Lost | None:
    """The first cell of an annotation that was not found, or that is also another cell of it."""
    why = {
        _NO_FRAME: f"the movie has only {detections.geometry.n_frames} frames",
        _NOTHING_NEAR: f"there is no detection within {REACH:g} cell diameters of it now",
        _AMBIGUOUS: "two detections are about equally near to it now",
        _SHARED: "it and another annotated cell are one detection now",
    }
    seen: dict[int, CellRef] = {}
    for c in annotation.cells:
        row = rows[c]
        if row >= 0 and seen.setdefault(row, c).cell != c.cell:
            row = _SHARED
        if row < 0:
            return Lost(annotation.id, c, why[row])
    return None


def _locate(cells: list[CellRef], detections: Detections, labels: Movie | None) -> Index:
    """Rows of cells, or why there is none; masks are read only if labels fail, shape (m,)."""
    scale = detections.geometry.scale_array
    frame = np.array([c.frame for c in cells], dtype=np.int64)
    pixel = np.clip(np.array([c.position for c in cells], dtype=np.float64), -FAR, FAR)
    place, rounding = pixel * scale, ROUNDING * float(scale.max())
    if not len(detections):
        return np.where(frame < detections.geometry.n_frames, _NOTHING_NEAR, _NO_FRAME)
    named = np.array([detections.find(*c.cell) for c in cells], dtype=np.int64)
    away = np.linalg.norm(detections.position[named] - place, axis=1)
    away[named < 0] = np.inf
    # If a cell is at its old place up to rounding, nothing can be nearer by more than that.
    row = np.where(away <= rounding, named, _NO_FRAME)
    diameter, by_label = cell_diameters(detections), row >= 0
    rest = np.flatnonzero((row < 0) & (frame < detections.geometry.n_frames))
    if len(rest):
        distance, near = _two_nearest(detections, frame[rest], place[rest])
        own, off = named[rest], away[rest]
        good = (off <= SAME_PLACE * diameter[own] + rounding) & (off <= distance[:, 0] + rounding)
        row[rest] = np.where(good, own, _by_centroid(distance, near, diameter))
        by_label[rest] = good
        if labels is not None and not good.all():
            unsure, near = rest[~good], near[~good]
            covering = _covering(detections, frame[unsure], pixel[unsure], labels)
            # of a mask cut in two, one half covers the old centroid by chance: the other is as near
            chance = (row[unsure] == _AMBIGUOUS) & (covering[:, None] == near).any(axis=1)
            row[unsure] = np.where((covering >= 0) & ~chance, covering, row[unsure])
    _part_shared(row, by_label, place, detections.position, diameter * REACH)
    return row


def _two_nearest(detections: Detections, frame: Index, place: Array) -> tuple[Array, Index]:
    """Distances and rows of the two detections nearest to places in frames, shapes (m, 2).

    Other frames are taken to be so far away that only detections of the same one are near.
    """
    rows = np.flatnonzero(np.isin(detections.frame, frame))
    if not len(rows):
        return np.full((len(frame), 2), np.inf), np.zeros((len(frame), 2), dtype=np.int64)
    beyond = 1e6 * FAR * float(detections.geometry.scale_array.max())
    there = np.column_stack([detections.frame[rows] * beyond, detections.position[rows]])
    distance, near = cKDTree(there).query(np.column_stack([frame * beyond, place]), k=2)
    return distance, rows[np.minimum(near, len(rows) - 1)]


def _by_centroid(distance: Array, near: Index, diameter: Array) -> Index:
    """The nearest detection within reach, unless another one is about as near."""
    within = distance <= REACH * diameter[near]
    rivals = within[:, 1] & (distance[:, 0] > CLEARLY_NEARER * distance[:, 1])
    return np.where(rivals, _AMBIGUOUS, np.where(within[:, 0], near[:, 0], _NOTHING_NEAR))


def _covering(detections: Detections, frame: Index, pixel: Array, labels: Movie) -> Index:
    """Rows of the masks that cover pixels of frames, -1 if there is none, shape (m,)."""
    found = np.full(len(frame), -1, dtype=np.int64)
    for t in np.unique(frame).tolist():
        image = labels.channel_frame(t)
        for k in np.flatnonzero(frame == t).tolist():
            at = tuple(np.rint(pixel[k]).astype(np.int64).tolist())
            inside = all(0 <= a < n for a, n in zip(at, image.shape, strict=True))
            label = int(image[at]) if inside else 0
            found[k] = detections.find(t, label) if label > 0 else -1
    return found


def _part_shared(row: Index, by_label: Mask, place: Array, present: Array, reach: Array) -> None:
    """Unanchor cells that lay apart and are one detection now, except one with its own label."""
    found, count = np.unique(row[row >= 0], return_counts=True)
    for r in found[count > 1].tolist():
        group = np.flatnonzero(row == r)
        leader = group[np.argmin(np.linalg.norm(place[group] - present[r], axis=1))]
        apart = np.linalg.norm(place[group] - place[leader], axis=1) > reach[r]
        if apart.any():
            row[group[apart] if by_label[leader] else group] = _SHARED


def cell_diameters(detections: Detections) -> Array:
    """Diameter of the disc or ball with each detection's area, in ``geometry.unit``, shape (n,).

    If an area is missing or, without masks, at most one pixel, half the median distance between
    nearest neighbours is used instead.
    """
    area = detections.table["area"].to_numpy(dtype=np.float64)
    known = area > (0 if detections.has_masks else 1)
    diameter = np.where(known, equivalent_diameter(detections), np.nan)
    if not known.all():
        nearest = _two_nearest(detections, detections.frame, detections.position)[0][:, 1]
        nearest = nearest[nearest < FAR]  # a cell alone in its frame has no neighbour
        wide = 10 * float(detections.geometry.scale_array.max())
        diameter[~known] = np.median(nearest) / 2 if len(nearest) else wide
    return diameter
