"""Tying annotations to the detections of a movie, also after a new segmentation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchored import Anchored, Lost
from bridgetrack.annotations.annotation import Annotation, CellRef
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.locate import Located, Outcome, Remembered, locate
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie


def anchor(
    annotations: AnnotationSet,
    detections: Detections,
    labels: Movie | None = None,
    *,
    reach: float = 0.5,
) -> Anchored:
    """Find the detections that annotations speak of.

    A cell is, in this order, the detection with its label at its place, the detection whose
    mask covers its position, or the one with the nearest centroid.

    Parameters
    ----------
    annotations
        Annotations of this movie, made on this or on an earlier segmentation.
    detections
        The present detections.
    labels
        The label movie that they came from; without it masks are not looked at.
    reach
        Largest distance to a centroid, in diameters of the cell.

    Returns
    -------
    Anchored
        What could be anchored, and what not with the reason; nothing is dropped.

    Raises
    ------
    InputError
        Where the annotations are of a movie with another number of axes.
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
    located = locate(Remembered(frame, label, position), detections, labels, reach)
    rows = {c: r for c, r in zip(cells, located.row.tolist(), strict=True) if r >= 0}
    listed, lost = _sort_out(annotations, rows, _reasons(cells, located, detections, reach))
    return _anchored(annotations, detections, listed, lost, rows)


def _reasons(
    cells: list[CellRef], located: Located, detections: Detections, reach: float
) -> dict[CellRef, str]:
    words = {
        Outcome.NO_FRAME: f"the movie has only {detections.geometry.n_frames} frames",
        Outcome.NOTHING_NEAR: f"there is no detection within {reach:g} cell diameters of it now",
        Outcome.AMBIGUOUS: "two detections are about equally near to it now",
        Outcome.SHARED: "it and another annotated cell are one detection now",
    }
    gone = np.flatnonzero(located.row < 0).tolist()
    return {cells[k]: words[Outcome(int(located.outcome[k]))] for k in gone}


def _sort_out(
    annotations: AnnotationSet, rows: dict[CellRef, int], reasons: dict[CellRef, str]
) -> tuple[list[Annotation], list[Lost]]:
    listed, lost = [], []
    for a in annotations:
        missing = next((c for c in a.cells if c in reasons), None)
        if missing is not None:
            lost.append(Lost(a.id, missing, reasons[missing]))
            continue
        twin = _twin(a, rows)
        if twin is not None:
            reason = "it and another cell of the same annotation are one detection now"
            lost.append(Lost(a.id, twin, reason))
        else:
            listed.append(a)
    return listed, lost


def _twin(annotation: Annotation, rows: dict[CellRef, int]) -> CellRef | None:
    """A cell of an annotation that is the same detection as another cell of it."""
    seen: dict[int, CellRef] = {}
    for c in annotation.cells:
        if seen.setdefault(rows[c], c).cell != c.cell:
            return c
    return None


def _anchored(
    annotations: AnnotationSet,
    detections: Detections,
    listed: list[Annotation],
    lost: list[Lost],
    rows: dict[CellRef, int],
) -> Anchored:
    events = [(k, e) for k, a in enumerate(listed) for e in a.events]

    def pairs(cells: list[tuple[CellRef, ...]]) -> NDArray[np.int64]:
        # large stands for "none" while sorting, so that the first entry is filled first
        none = len(detections)
        full = [[rows[c] for c in pair] + [none] * (2 - len(pair)) for pair in cells]
        table = np.sort(np.array(full, dtype=np.int64).reshape(-1, 2), axis=1)
        return np.where(table == none, -1, table)

    return Anchored(
        annotations=annotations,
        detections=detections,
        listed=tuple(listed),
        owner=np.array([k for k, _ in events], dtype=np.int64),
        event=np.array([e.event for _, e in events], dtype=np.int8),
        sources=pairs([e.sources for _, e in events]),
        targets=pairs([e.targets for _, e in events]),
        lost=tuple(lost),
        rows=rows,
    )
