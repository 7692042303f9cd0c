"""Answers of a simulated annotator, drawn from a table of true events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event, Events


def read_events(events: Events, detections: Detections) -> Events:
    """True events that are a question for the tracker.

    Parameters
    ----------
    events
        What `bridgetrack.evaluation.true_events` returns.
    detections
        The detections that their rows belong to.

    Returns
    -------
    Events
        Without appearances in the first and disappearances in the last frame.

    Raises
    ------
    InputError
        Where they name detections that are not there.
    """
    named = np.concatenate([events.sources, events.targets], axis=1)
    if len(events) and not -1 <= named.min() <= named.max() < len(detections):
        raise InputError(f"the events name other detections than the {len(detections)} there are")
    frame, last = detections.frame, detections.geometry.n_frames - 1
    start = (events.event == Event.APPEAR) & (frame[events.targets[:, 0]] == 0)
    end = (events.event == Event.DISAPPEAR) & (frame[events.sources[:, 0]] == last)
    return events.take(~(start | end))


_NEIGHBOURS = 4


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
        """A wrong event in place of event `k`, alone in a table; None where no free one is near.

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
        number = min(_NEIGHBOURS, rows.stop - rows.start)
        _, near = self._trees[t].query(self._position[row], k=number)
        return [rows.start + k for k in np.atleast_1d(near).tolist() if rows.start + k != row]


SHARES = {Event.MOVE: 0.6, Event.DIVIDE: 0.2}
"""Shares of a stratified count (design section 8); the other kinds share what is left."""


def _shares(kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    rest = [k for k in kinds.tolist() if Event(k) not in SHARES]
    left = (1 - sum(SHARES.values())) / max(len(rest), 1)
    return np.array([SHARES.get(Event(k), left) for k in kinds.tolist()])


def allot(count: int, available: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the events available of each kind, (len(Event),), a stratified draw takes.

    60 % moves, 20 % divisions, and 20 % in equal parts of the other kinds that occur. What a kind
    lacks goes to the others in the same proportion; the remainders go first to the largest
    fractional parts, ties to the rarer kind.
    """
    wanted = np.zeros(len(available))
    left = float(min(count, available.sum()))
    kinds = np.flatnonzero(available > 0)
    while left > 1e-9:
        free = kinds[wanted[kinds] < available[kinds]]
        share = _shares(kinds)[np.isin(kinds, free)]
        wanted[free] = np.minimum(wanted[free] + left * share / share.sum(), available[free])
        left = min(count, available.sum()) - wanted.sum()
    whole = np.floor(wanted + 1e-6)
    spare = int(min(count, available.sum()) - whole.sum())
    order = np.lexsort((available, -np.round(wanted - whole, 6)))
    order = order[whole[order] < available[order]]
    whole[order[:spare]] += 1
    return whole.astype(np.int64)


def _allot_fraction(fraction: float, available: NDArray[np.int64]) -> NDArray[np.int64]:
    """At least one of each kind that occurs, otherwise the fraction of each kind."""
    rounded = np.floor(fraction * available + 0.5).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(rounded, 1), available))


def check_rates(wrong: float, cannot_tell: float) -> None:
    """Check the rates of wrong and of undecided answers.

    Raises
    ------
    InputError
        Where they are negative or add up to more than 1.
    """
    if not (wrong >= 0 and cannot_tell >= 0 and wrong + cannot_tell <= 1):
        raise InputError(
            f"the rates of wrong ({wrong}) and of cannot-tell ({cannot_tell}) answers must be 0 "
            f"or more and add up to 1 at most"
        )


def draw_annotations(
    events: Events,
    detections: Detections,
    *,
    count: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    wrong: float = 0.0,
) -> AnnotationSet:
    """Draw a simulated annotator's answers from ground truth, rare kinds more often.

    Parameters
    ----------
    events
        True events, as `bridgetrack.true_events` returns them.
    detections
        The detections that their rows belong to.
    count, fraction
        How many events, or which share of them, to annotate; one of the two. More than there
        are takes all. By count, 60 % are moves, 20 % divisions, and 20 % the other kinds that
        occur; by fraction, it is the share of each kind, but at least one of each.
    seed
        Two draws with the same arguments are the same. A larger fraction contains the draw of
        a smaller one.
    wrong
        Rate of wrong answers (`bridgetrack.annotations.truth.Mistakes`); they never make
        the set contradictory, so in crowded draws a few stay right.

    Returns
    -------
    AnnotationSet
        With the ids ``s1``, ``s2``, ... in the order of drawing, without times.

    Raises
    ------
    InputError
        Where the numbers are not valid, or there is no event to draw.
    """
    if (count is None) == (fraction is None):
        raise InputError("give either a count or a fraction of the events to draw")
    if count is not None and count < 1:
        raise InputError(f"the count of events to draw is {count}, it must be 1 or more")
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"the fraction of events to draw is {fraction}, it must be in (0, 1]")
    check_rates(wrong, 0.0)
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    rows = read_events(events, detections)
    if len(rows) == 0:
        raise InputError("the ground truth holds no event that could be annotated")
    rng = np.random.default_rng(seed)
    order, mood = rng.permutation(len(rows)), rng.random(len(rows))
    available = np.bincount(rows.event, minlength=len(Event)).astype(np.int64)
    quota = allot(count, available) if count else _allot_fraction(fraction or 0.0, available)
    kind = rows.event[order]
    place = np.zeros(len(order), dtype=np.int64)
    for e in Event:
        place[kind == e] = np.arange(available[e])
    chosen = order[place < quota[kind]]
    slips = np.flatnonzero(mood[chosen] < wrong)
    refs = event_refs(detections, _mistaken(rows.take(chosen), slips, detections))
    listed = (
        Annotation(f"s{k}", Kind.CONFIRM, (ref,), source="simulated")
        for k, ref in enumerate(refs, 1)
    )
    return AnnotationSet(detections.geometry, listed)


def _mistaken(rows: Events, slips: NDArray[np.int64], detections: Detections) -> Events:
    """The events with wrong ones in place of some, where there are any."""
    mistakes = Mistakes(detections, rows)
    event, sources, targets = rows.event.copy(), rows.sources.copy(), rows.targets.copy()
    for k in slips.tolist():
        wrong = mistakes.instead_of(rows, k)
        if wrong is not None:
            event[k], sources[k], targets[k] = wrong.event[0], wrong.sources[0], wrong.targets[0]
    return Events(event, sources, targets)
