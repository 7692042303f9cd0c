"""Plausible wrong answers of a simulated annotator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.annotations.truth import EventRows
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event

_NEIGHBOURS = 4
_Row = tuple[Event, tuple[int, int], tuple[int, int]]


def _move(i: int, j: int) -> _Row:
    return Event.MOVE, (i, -1), (j, -1)


def _slots(row: _Row, n: int) -> set[int]:
    event, sources, targets = row
    slots = {i for i in sources if i >= 0} | {n + j for j in targets if j >= 0}
    return slots | ({n + sources[0]} if event == Event.FALSE else set())


class Mistakes:
    """Turns true events into wrong ones that a person might give.

    A move goes to another neighbour, a division or merge becomes a move, a split a division,
    an appearance or disappearance a move from or to a neighbour or a false detection, a false
    detection an appearance or disappearance.

    Parameters
    ----------
    detections
        The detections.
    given
        All events that will be answered; a mistake never claims a slot of one of them, so that
        the answers can all be true together.
    """

    def __init__(self, detections: Detections, given: EventRows) -> None:
        self._n = len(detections)
        self._detections = detections
        self._position = detections.position
        self._frame = detections.frame
        self._trees: dict[int, cKDTree] = {}
        self._claimed: set[int] = set()
        for row in _rows(given):
            self._claimed |= _slots(row, self._n)

    def instead_of(self, events: EventRows, k: int) -> _Row | None:
        """A wrong event in place of event `k`; None where no free one is near."""
        true = next(_rows(events.take(np.array([k]))))
        own = _slots(true, self._n)
        for row in self._alternatives(true):
            slots = _slots(row, self._n)
            if not slots & (self._claimed - own):
                self._claimed |= slots
                return row
        return None

    def _alternatives(self, true: _Row) -> Iterator[_Row]:
        event, (i, _), (j, _) = true
        if event in (Event.MOVE, Event.SKIP):
            near = self._near(i, 1) if event == Event.SKIP else self._near(j, 0)
            yield from (_move(i, k) for k in near if k != j)
            yield Event.DISAPPEAR, (i, -1), (-1, -1)
        elif event in (Event.DIVIDE, Event.MERGE):
            yield _move(i, j)
        elif event == Event.SPLIT:
            yield Event.DIVIDE, true[1], true[2]
        elif event == Event.APPEAR:
            yield from (_move(k, j) for k in self._near(j, -1))
            yield Event.FALSE, (j, -1), (-1, -1)
        elif event == Event.DISAPPEAR:
            yield from (_move(i, k) for k in self._near(i, 1))
            yield Event.FALSE, (i, -1), (-1, -1)
        elif self._frame[i] > 0:
            yield Event.APPEAR, (-1, -1), (i, -1)
        else:
            yield Event.DISAPPEAR, (i, -1), (-1, -1)

    def _near(self, row: int, step: int) -> list[int]:
        """Detections nearest to a cell, `step` frames after its own, itself left aside."""
        t = int(self._frame[row]) + step
        if not 0 <= t < self._detections.geometry.n_frames:
            return []
        rows = self._detections.rows(t)
        if rows.start == rows.stop:
            return []
        if t not in self._trees:
            self._trees[t] = cKDTree(self._position[rows])
        number = min(_NEIGHBOURS, rows.stop - rows.start)
        _, near = self._trees[t].query(self._position[row], k=number)
        return [rows.start + k for k in np.atleast_1d(near).tolist() if rows.start + k != row]


def _rows(events: EventRows) -> Iterator[_Row]:
    listed = zip(
        events.event.tolist(), events.sources.tolist(), events.targets.tolist(), strict=True
    )
    for e, s, t in listed:
        yield Event(e), (s[0], s[1]), (t[0], t[1])
