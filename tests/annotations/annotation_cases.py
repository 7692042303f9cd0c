"""Small movies of discs and annotations on them, shared by the tests of annotations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.geometry import Geometry
from lineage_cases import movie_of

RADIUS = 5


def labels_of(frames, shape=(100, 100), radius=RADIUS):
    """A label movie of discs; `frames` is a list of {label: (y, x)}."""
    yy, xx = np.mgrid[: shape[0], : shape[1]]
    images = np.zeros((len(frames), *shape), dtype=np.int32)
    for image, cells in zip(images, frames, strict=True):
        for label, (y, x) in cells.items():
            image[(yy - y) ** 2 + (xx - x) ** 2 <= radius**2] = label
    return movie_of(images)


def table_of(cells, n_frames, area=78.0):
    """Detections from (frame, label, y, x) rows, without masks being drawn."""
    cells = sorted(cells)
    table = pd.DataFrame(cells, columns=["frame", "label", "y", "x"])
    table["area"] = area
    return Detections(table, Geometry(n_frames, (1000, 1000), (1.0, 1.0)))


def cell(frame, label):
    return CellRef(frame, label, (10.0 * label, 20.0))


def event(kind, sources=(), targets=(), frame=0, gap=1):
    """An event between labels of a frame and a later one."""
    return EventRef(
        kind, tuple(cell(frame, i) for i in sources), tuple(cell(frame + gap, j) for j in targets)
    )


def says(name, kind, *events, **more):
    return Annotation(name, Kind(kind), tuple(events), **more)


def step(history, remove=(), add=()):
    """The history after a step of annotations."""
    removed = tuple(history.annotations[i] for i in remove)
    return history.after("answer", AnswerChange(removed, tuple(add)))[0]


def everything_between(detections, *, false=True):
    """All events between all detections of neighbouring frames, one generous candidate set."""
    columns = []
    for t in range(detections.geometry.n_frames - 1):
        now = range(*detections.rows(t).indices(len(detections)))
        then = range(*detections.rows(t + 1).indices(len(detections)))
        columns += [(Event.MOVE, (i, -1), (j, -1)) for i in now for j in then]
        pairs = [(j, k) for j in then for k in then if j < k]
        columns += [
            (e, (i, -1), p) for e in (Event.DIVIDE, Event.SPLIT) for i in now for p in pairs
        ]
        columns += [(Event.MERGE, (i, k), (j, -1)) for i in now for k in now if i < k for j in then]
        columns += [(Event.APPEAR, (-1, -1), (j, -1)) for j in then]
        columns += [(Event.DISAPPEAR, (i, -1), (-1, -1)) for i in now]
    if false:
        columns += [(Event.FALSE, (i, -1), (-1, -1)) for i in range(len(detections))]
    return Events(
        np.array([c[0] for c in columns], dtype=np.int8),
        np.array([c[1] for c in columns], dtype=np.int64).reshape(-1, 2),
        np.array([c[2] for c in columns], dtype=np.int64).reshape(-1, 2),
    )


def ref(detections, kind, sources=(), targets=()):
    """An event between rows of detections."""
    rows = [np.array([[*r, -1, -1][:2]]) for r in (sources, targets)]
    return event_refs(detections, Events(np.array([kind]), *rows))[0]


def pattern_of(complete):
    """The pattern "any event of this kind" at the event's first cell."""
    if complete.sources:
        return EventRef(complete.event, complete.sources[:1])
    return EventRef(complete.event, (), complete.targets[:1])
