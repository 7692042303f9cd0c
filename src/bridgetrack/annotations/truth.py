"""Confirmed annotations from a table of true events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.anchored import event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event

_COLUMNS = ("source0", "source1", "target0", "target1")


@dataclass(frozen=True)
class EventRows:
    """Events in rows of detections.

    Parameters
    ----------
    event
        Kinds, shape (k,), values of `Event`.
    sources, targets
        Rows, shape (k, 2), -1 where there is none, the first filled first, pairs sorted.
    """

    event: NDArray[np.int8]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.event)

    def take(self, rows: NDArray[np.integer]) -> EventRows:
        """Some of the events."""
        return EventRows(self.event[rows], self.sources[rows], self.targets[rows])

    def refs(self, detections: Detections) -> list[EventRef]:
        """The events as references to cells."""
        return event_refs(detections, self.event, self.sources, self.targets)


class TrueEvents(Protocol):
    """Events as arrays, as `bridgetrack.evaluation.true_events` gives them."""

    @property
    def event(self) -> NDArray[np.int8]:
        """Kinds, shape (k,)."""

    @property
    def sources(self) -> NDArray[np.int64]:
        """Rows, shape (k, 2)."""

    @property
    def targets(self) -> NDArray[np.int64]:
        """Rows, shape (k, 2)."""


def read_events(events: pd.DataFrame | TrueEvents, detections: Detections) -> EventRows:
    """Check a table of events and keep those that are a question for the tracker.

    Parameters
    ----------
    events
        What `bridgetrack.evaluation.true_events` returns, or a table with the columns
        ``event`` (name or number of an `Event`), ``source0``, ``source1``, ``target0``,
        ``target1`` (rows of `detections`, -1 where there is none).
    detections
        The detections that the rows belong to.

    Returns
    -------
    EventRows
        Without appearances in the first and disappearances in the last frame.

    Raises
    ------
    InputError
        Where a column is missing, a row is out of range or the cells do not fit the event.
    """
    kind, cells = _arrays(events)
    beyond = np.flatnonzero(((cells < -1) | (cells >= len(detections))).any(axis=1))
    if len(beyond):
        raise InputError(
            f"row {beyond[0]} of the table of events names detections {cells[beyond[0]].tolist()}, "
            f"but there are {len(detections)}"
        )
    rows = EventRows(kind, _packed(cells[:, :2]), _packed(cells[:, 2:]))
    _check_numbers(rows)
    return rows.take(np.flatnonzero(_is_question(rows, detections)))


def _arrays(
    events: pd.DataFrame | TrueEvents,
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Kinds, shape (k,), and cells, shape (k, 4)."""
    if not isinstance(events, pd.DataFrame):
        cells = np.concatenate([events.sources, events.targets], axis=1)
        return events.event.astype(np.int8), cells.astype(np.int64)
    missing = [c for c in ("event", *_COLUMNS) if c not in events.columns]
    if missing:
        raise InputError(f"the table of events lacks the columns {missing}")
    return _kinds(events["event"]), events[list(_COLUMNS)].to_numpy(dtype=np.int64)


def _kinds(column: pd.Series) -> NDArray[np.int8]:
    names = {e.key: int(e) for e in Event} | {int(e): int(e) for e in Event}
    found = [names.get(v) if isinstance(v, str) else names.get(int(v)) for v in column]
    if None in found:
        k = found.index(None)
        raise InputError(f"row {k} of the table of events has the unknown event {column.iloc[k]!r}")
    return np.array(found, dtype=np.int8)


def _packed(pair: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs sorted with -1 last."""
    none = np.iinfo(np.int64).max
    ordered = np.sort(np.where(pair < 0, none, pair), axis=1)
    return np.where(ordered == none, -1, ordered)


def _check_numbers(rows: EventRows) -> None:
    for cells, wanted, side in (
        (rows.sources, N_SOURCES, "sources"),
        (rows.targets, N_TARGETS, "targets"),
    ):
        number = np.array([wanted[e] for e in Event])[rows.event]
        wrong = np.flatnonzero((cells >= 0).sum(axis=1) != number)
        if len(wrong):
            k = int(wrong[0])
            raise InputError(
                f"a {Event(rows.event[k]).key} in the table of events has {number[k]} {side}, "
                f"not {int((cells[k] >= 0).sum())}"
            )


def _is_question(rows: EventRows, detections: Detections) -> NDArray[np.bool_]:
    frame, last = detections.frame, detections.geometry.n_frames - 1
    start = (rows.event == Event.APPEAR) & (frame[rows.targets[:, 0]] == 0)
    end = (rows.event == Event.DISAPPEAR) & (frame[rows.sources[:, 0]] == last)
    return np.asarray(~(start | end))


def from_truth(
    events: pd.DataFrame | TrueEvents, detections: Detections, *, source: str = "import"
) -> AnnotationSet:
    """Every true event as a confirmed annotation, e.g. a whole CTC ground truth.

    Parameters
    ----------
    events
        True events, see `read_events`.
    detections
        The detections that its rows belong to.
    source
        Source noted in the annotations.

    Returns
    -------
    AnnotationSet
        With the ids ``t1``, ``t2``, ... in the table's order and no times.

    Raises
    ------
    InputError
        Where the table is not valid.
    """
    refs = read_events(events, detections).refs(detections)
    listed = (
        Annotation(f"t{k}", Kind.CONFIRM, (ref,), source=source) for k, ref in enumerate(refs, 1)
    )
    return AnnotationSet(detections.geometry, listed)
