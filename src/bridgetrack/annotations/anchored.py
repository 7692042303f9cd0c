"""Annotations tied to the rows of a table of detections."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event

N_CELLS = np.array([N_SOURCES[e] + N_TARGETS[e] for e in Event])
"""Cells that each kind of event names."""


@dataclass(frozen=True)
class Lost:
    """An annotation that names a cell which is not there any more.

    Parameters
    ----------
    id
        The annotation.
    cell
        The cell that was not found, as it was when annotated.
    reason
        Why, as a sentence without a full stop.
    """

    id: str
    cell: CellRef
    reason: str


@dataclass(frozen=True)
class Anchored:
    """Annotations whose cells are rows of a table of detections.

    Parameters
    ----------
    annotations
        All annotations, lost ones too.
    detections
        The table that the rows belong to.
    listed
        Annotations that were anchored, in natural order, A of them.
    owner
        Index into `listed` of every event, shape (E,), rising.
    event
        Kind of every event, shape (E,), values of `Event`.
    sources, targets
        Rows of the cells, shape (E, 2), -1 where there is none, the first filled first, pairs
        sorted: the convention of `Hypotheses`.
    lost
        What could not be anchored, in natural order; the first missing cell of each.
    rows
        Row of every cell that an anchored annotation names.
    """

    annotations: AnnotationSet
    detections: Detections
    listed: tuple[Annotation, ...]
    owner: NDArray[np.int64]
    event: NDArray[np.int8]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    lost: tuple[Lost, ...]
    rows: dict[CellRef, int]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which events name all their cells (the others are patterns), shape (E,)."""
        named = (self.sources >= 0).sum(axis=1) + (self.targets >= 0).sum(axis=1)
        return np.asarray(named == N_CELLS[self.event])

    @property
    def kind(self) -> list[Kind]:
        """What each anchored annotation says, A of them."""
        return [a.kind for a in self.listed]

    def refreshed(self) -> AnnotationSet:
        """The same annotations with the labels and positions of the present detections.

        Lost ones stay as they were. Keep this set after a new segmentation, so that labels of
        two segmentations are not mixed.
        """
        found = sorted(set(self.rows.values()))
        refs = dict(zip(found, cell_refs(self.detections, np.array(found, int)), strict=True))

        def fresh(cells: tuple[CellRef, ...]) -> tuple[CellRef, ...]:
            return tuple(refs[self.rows[c]] for c in cells)

        def renewed(a: Annotation) -> Annotation:
            events = (EventRef(e.event, fresh(e.sources), fresh(e.targets)) for e in a.events)
            return replace(a, events=tuple(events))

        gone = (self.annotations[i.id] for i in self.lost)
        renewals = (renewed(a) for a in self.listed)
        return AnnotationSet(self.detections.geometry, (*renewals, *gone))


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
    table = detections.table
    axes = [table[a].to_numpy(dtype=np.float64)[rows].round(2).tolist() for a in _axes(detections)]
    frames, labels = detections.frame[rows].tolist(), detections.label[rows].tolist()
    positions = zip(*axes, strict=True)
    return [CellRef(f, b, p) for f, b, p in zip(frames, labels, positions, strict=True)]


def _axes(detections: Detections) -> tuple[str, ...]:
    return detections.geometry.axes


def event_refs(
    detections: Detections,
    event: NDArray[np.integer],
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
) -> list[EventRef]:
    """References to events given in rows of detections.

    Parameters
    ----------
    detections
        The table.
    event
        Kinds, shape (k,), values of `Event`.
    sources, targets
        Rows, shape (k, 2), -1 where there is none; as in `Hypotheses`.

    Raises
    ------
    InputError
        Where the cells of an event do not fit its kind.
    """
    cells = np.concatenate([sources, targets], axis=1)
    named = np.unique(cells[cells >= 0])
    refs = dict(zip(named.tolist(), cell_refs(detections, named), strict=True))
    rows = zip(event.tolist(), sources.tolist(), targets.tolist(), strict=True)
    return [
        EventRef(
            Event(e),
            tuple(refs[r] for r in s if r >= 0),
            tuple(refs[r] for r in t if r >= 0),
        )
        for e, s, t in rows
    ]
