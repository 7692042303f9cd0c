"""A simulated annotator who answers from ground truth, and plausible mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind, Slot
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.progress import Progress, Steps

NEIGHBOURS = 4


def _one(event: Event, sources: Sequence[int] = (), targets: Sequence[int] = ()) -> Events:
    return Events.of_kind(event, [np.array([i]) for i in sources], [np.array([j]) for j in targets])


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

    def __init__(self, detections: Detections, given: Events) -> None:
        self._detections = detections
        self._position, self._frame = detections.position, detections.frame
        self._trees: dict[int, cKDTree] = {}
        self._claimed = self._slots(given)

    def instead_of(self, events: Events, k: int, asked: int | None = None) -> Events | None:
        """A wrong event in place of event `k`, alone in a table; None if no free one is near.

        Where somebody is ``asked`` about a slot of it (rows of detections are fates, rows beyond
        them histories), the wrong event says something of that slot, too.
        """
        true = events.take(np.array([k]))
        taken = self._claimed - self._slots(true)
        for wrong in self._alternatives(true) if asked is None else self._answers(true, asked):
            slots = self._slots(wrong)
            if not slots & taken:
                self._claimed |= slots
                return wrong
        return None

    def _slots(self, events: Events) -> set[int]:
        slots = events.slots(len(self._detections))
        return set(slots[slots >= 0].tolist())

    def _alternatives(self, true: Events) -> Iterator[Events]:
        event, i, j = Event(true.event[0]), int(true.sources[0, 0]), int(true.targets[0, 0])
        if event in (Event.MOVE, Event.SKIP):
            near = self._near(i, 1) if event == Event.SKIP else self._near(j, 0)
            yield from (_one(Event.MOVE, [i], [k]) for k in near if k != j)
            yield _one(Event.DISAPPEAR, [i])
        elif event in (Event.DIVIDE, Event.MERGE):
            yield _one(Event.MOVE, [i], [j])
        elif event == Event.SPLIT:
            yield replace(true, event=np.full(1, Event.DIVIDE, dtype=np.int8))
        elif event == Event.APPEAR:
            yield from (_one(Event.MOVE, [k], [j]) for k in self._near(j, -1))
            yield _one(Event.FALSE, [j])
        elif event == Event.DISAPPEAR:
            yield from (_one(Event.MOVE, [i], [k]) for k in self._near(i, 1))
            yield _one(Event.FALSE, [i])
        elif self._frame[i] > 0:
            yield _one(Event.APPEAR, [], [i])
        else:
            yield _one(Event.DISAPPEAR, [i])

    def _answers(self, true: Events, asked: int) -> Iterator[Events]:
        """Alternatives that say something of the slot that is asked about, the others turned."""
        n, event = len(self._detections), Event(true.event[0])
        fates, histories = true.sources[0].tolist(), true.targets[0].tolist()
        cell = asked % n
        if event in (Event.DIVIDE, Event.MERGE):
            # of two daughters, or of two cells drawn as one, that which is asked about
            pair = (cell, histories[0]) if asked < n else (fates[0], cell)
            yield _one(Event.MOVE, pair[:1], pair[1:])
        elif event in (Event.MOVE, Event.SKIP) and asked >= n:
            near = self._near(cell, -1)
            yield from (_one(Event.MOVE, [k], [cell]) for k in near if k not in fates)
            yield _one(Event.APPEAR, [], [cell])
        elif event == Event.FALSE:
            begins = asked >= n
            yield _one(Event.APPEAR, [], [cell]) if begins else _one(Event.DISAPPEAR, [cell])
        else:
            yield from self._alternatives(true)

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
        number = min(NEIGHBOURS, rows.stop - rows.start)
        _, near = self._trees[t].query(self._position[row], k=number)
        return [rows.start + k for k in np.atleast_1d(near).tolist() if rows.start + k != row]


def with_mistakes(
    answers: AnnotationSet, events: Events, detections: Detections, wrong: float, seed: int
) -> AnnotationSet:
    """The same answers, a share of them wrong.

    They never make the set contradictory, so in crowded draws a few stay right.
    """
    given = [a.events[0].key for a in answers]
    row = {ref.key: k for k, ref in enumerate(event_refs(detections, events))}
    rows = events.take(np.array([row[key] for key in given], dtype=np.int64))
    mistakes, mood = Mistakes(detections, rows), np.random.default_rng(seed).random(len(given))
    listed = list(answers)
    for k in np.flatnonzero(mood < wrong).tolist():
        false = mistakes.instead_of(rows, k)
        if false is not None:
            listed[k] = replace(listed[k], events=(event_refs(detections, false)[0],))
    return AnnotationSet(detections.geometry, listed)


class SimulatedAnnotator:
    """Answers questions about slots from the true events of a movie.

    Parameters
    ----------
    events
        True events in rows of the detections (`bridgetrack.annotations.from_tracks.read_events`).
    detections
        The detections.
    wrong
        Rate of wrong answers: a plausible other event of the cell that is asked about, see
        `Mistakes`.
    seed
        Of wrong answers. An answer depends on the question and the seed only, not on what was
        asked before.

    Raises
    ------
    InputError
        If a rate is out of range.
    """

    def __init__(
        self,
        events: Events,
        detections: Detections,
        wrong: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= wrong <= 1:
            raise InputError(f"the rate of wrong answers must lie between 0 and 1, not {wrong}")
        self._events, self._detections = events, detections
        self._refs = event_refs(detections, events)
        self._of: dict[Slot, int] = {
            slot: k for k, ref in enumerate(self._refs) for slot in ref.slots
        }
        rng = np.random.default_rng(seed)
        self._moods = rng.random(len(events))
        self._wrong = wrong
        nothing = events.take(np.zeros(0, dtype=np.int64))
        self._mistakes = Mistakes(detections, nothing)

    def truth(self, slot: Slot) -> EventRef | None:
        """The true event of a slot; None if the truth says nothing."""
        k = self._of.get(slot)
        return None if k is None else self._refs[k]

    def _row(self, slot: Slot) -> int:
        """A slot as the detections number it: fates first, then histories."""
        what, cell = slot
        return self._detections.row_of(*cell) + len(self._detections) * (what == "history")

    def reply(self, suggestion: Suggestion) -> EventRef | None:
        """The event that is said to hold; None if the truth says nothing."""
        k = self._of.get(suggestion.slot)
        if k is None:
            return None
        if self._moods[k] < self._wrong:
            false = self._mistakes.instead_of(self._events, k, self._row(suggestion.slot))
            if false is not None:
                return event_refs(self._detections, false)[0]
        return self._refs[k]


def answer_by(
    session: ActiveSession,
    annotator: SimulatedAnnotator,
    suggestion: Suggestion,
    seconds: float = 3.0,
) -> Annotation:
    """Let a simulated annotator answer one suggestion."""
    event = annotator.reply(suggestion)
    if event is None:
        return session.answer(suggestion, kind=Kind.CANNOT_TELL, seconds=seconds)
    return session.answer(suggestion, event, seconds=seconds)


def simulate_session(
    session: ActiveSession, annotator: SimulatedAnnotator, clicks: int
) -> Steps[int]:
    """Answer up to a number of suggestions, updating the model whenever the session asks for it.

    Returns
    -------
    int
        How many were answered: fewer where nothing is left to ask.
    """
    session.adopt((yield from session.update()))
    for done in range(clicks):
        suggestion = session.next()
        if suggestion is None:
            session.adopt((yield from session.update()))
            suggestion = session.next()
            if suggestion is None:
                return done
        answer_by(session, annotator, suggestion)
        yield Progress("Answering", (done + 1) / clicks)
        if session.wants_update and done + 1 < clicks:
            session.adopt((yield from session.update()))
    session.adopt((yield from session.update()))
    return clicks


def true_accuracy(session: ActiveSession, events: Events) -> float:
    """Share of the true events, in rows of the detections, that a session's tracking holds.

    The session must have been updated.
    """
    assert session.last is not None
    column = session.scene.hypotheses.find(events)
    right = (column >= 0) & session.last.solution.chosen[np.maximum(column, 0)]
    return float(right.mean()) if len(right) else float("nan")
