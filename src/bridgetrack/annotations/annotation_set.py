"""All answers about one movie: the set, the steps that led to it, and answers that contradict.

An event is one column of ``C y = 1`` (001, eq. 17-18), so two confirmed events that share a
slot exclude each other; a rejected event or an ambiguous answer excludes what it leaves out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from bridgetrack.annotations.annotation import (
    FATE,
    HISTORY,
    NOUN,
    Annotation,
    Cell,
    EventKey,
    EventRef,
    Kind,
    Slot,
    cell_words,
    describe_event,
)
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

_NUMBER = re.compile(r"\d{1,18}$")


def natural_key(annotation_id: str) -> tuple[str, int, str]:
    """Order of ids in which ``a2`` comes before ``a10``."""
    number = _NUMBER.search(annotation_id)
    if number is None:
        return annotation_id, -1, annotation_id
    return annotation_id[: number.start()], int(number[0]), annotation_id


class AnnotationSet:
    """Annotations of one movie; every change gives a new set.

    Parameters
    ----------
    geometry
        Extent and scale of the movie annotated.
    annotations
        The annotations; ids must differ. Iteration is in the natural order of ids, whatever
        the order of adding.
    last_ids
        Highest number given with each prefix of ids, where an annotation of that id is gone. No
        id is given twice, for what was noted elsewhere of one must not speak of another.

    Raises
    ------
    InputError
        Where an id is there twice or an annotation does not fit the movie.
    """

    def __init__(
        self,
        geometry: Geometry,
        annotations: Iterable[Annotation] = (),
        last_ids: Mapping[str, int] | None = None,
    ) -> None:
        self._geometry = geometry
        self._items: dict[str, Annotation] = {}
        self._cells: dict[Cell, tuple[str, ...]] = {}
        self._last_ids = dict(last_ids or {})
        self._insert(annotations)

    def _insert(self, annotations: Iterable[Annotation]) -> None:
        for a in annotations:
            if a.id in self._items:
                raise InputError(f"there are two annotations with the id {a.id!r}")
            self._check(a)
            self._items[a.id] = a
            prefix, number, _ = natural_key(a.id)
            self._last_ids[prefix] = max(number, self._last_ids.get(prefix, number))
            for cell in {c.cell for c in a.cells}:
                self._cells[cell] = (*self._cells.get(cell, ()), a.id)

    def _check(self, annotation: Annotation) -> None:
        for c in annotation.cells:
            if c.frame >= self._geometry.n_frames:
                raise InputError(
                    f"annotation {annotation.id}: {c} lies beyond the movie's "
                    f"{self._geometry.n_frames} frames"
                )
            if len(c.position) != self._geometry.ndim:
                raise InputError(
                    f"annotation {annotation.id}: the position of {c} has {len(c.position)} "
                    f"numbers in a movie with {self._geometry.ndim} spatial axes"
                )

    @property
    def geometry(self) -> Geometry:
        """Extent and scale of the movie annotated."""
        return self._geometry

    @property
    def last_ids(self) -> Mapping[str, int]:
        """Highest number ever given with each prefix of ids; does not count for equality."""
        return self._last_ids

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self._ordered)

    def __contains__(self, annotation_id: object) -> bool:
        return annotation_id in self._items

    def __getitem__(self, annotation_id: str) -> Annotation:
        try:
            return self._items[annotation_id]
        except KeyError:
            raise InputError(f"there is no annotation with the id {annotation_id!r}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AnnotationSet):
            return NotImplemented
        return self._geometry == other._geometry and self._items == other._items

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AnnotationSet({len(self)} annotations)"

    @cached_property
    def _ordered(self) -> tuple[Annotation, ...]:
        return tuple(self._items[i] for i in sorted(self._items, key=natural_key))

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnnotationSet:
        """A set without the annotations of some ids and with others.

        Raises
        ------
        InputError
            Where an id to remove is not there, or an added one is there already.
        """
        new = AnnotationSet(self._geometry)
        new._items = dict(self._items)
        new._cells = dict(self._cells)
        new._last_ids = dict(self._last_ids)
        for i in remove:
            new._drop(i)
        new._insert(add)
        return new

    def _drop(self, annotation_id: str) -> None:
        gone = self[annotation_id]
        del self._items[annotation_id]
        for cell in {c.cell for c in gone.cells}:
            self._cells[cell] = tuple(i for i in self._cells[cell] if i != annotation_id)

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """A set with more annotations."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """A set with fewer annotations."""
        return self.edit(remove=ids)

    def at(self, frame: int, label: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell."""
        return tuple(self._items[i] for i in self._cells.get((frame, label), ()))

    def in_frame(self, frame: int) -> tuple[Annotation, ...]:
        """Annotations that name a cell of a frame."""
        return tuple(a for a in self if any(c.frame == frame for c in a.cells))

    def counts(self, kind: Kind = Kind.CONFIRM) -> Mapping[Event, int]:
        """How many annotations of one kind there are per event; zero where there are none.

        A ``one_of`` counts for each kind of event among its alternatives.
        """
        found = Counter(
            e for a in self._items.values() if a.kind == kind for e in {r.event for r in a.events}
        )
        return {e: found[e] for e in Event}

    def given(self, annotation_id: str) -> bool:
        """Whether an id is or may once have been that of an annotation."""
        prefix, number, _ = natural_key(annotation_id)
        return annotation_id in self._items or number <= self._last_ids.get(prefix, number - 1)

    def next_id(self) -> str:
        """An id that was never given and is later than all others like it."""
        return f"a{1 + self._last_ids.get('a', 0)}"


LIMIT = 500
"""Steps that can be undone; older ones are forgotten."""


@dataclass(frozen=True)
class AnswerChange:
    """One step: annotations that went and annotations that came."""

    # removed, added: the annotations in full, so that the step can be taken back
    removed: tuple[Annotation, ...] = ()
    added: tuple[Annotation, ...] = ()

    @property
    def inverse(self) -> AnswerChange:
        """The step back."""
        return AnswerChange(self.added, self.removed)

    def apply(self, annotations: AnnotationSet) -> AnnotationSet:
        """The set after this step."""
        return annotations.edit([a.id for a in self.removed], self.added)


@dataclass(frozen=True)
class AnswerHistory:
    """A set of annotations and the way to it.

    Parameters
    ----------
    annotations
        The present set.
    past
        Steps that led here, the latest last.
    future
        Steps that were undone, the next to redo last.
    """

    annotations: AnnotationSet
    past: tuple[AnswerChange, ...] = ()
    future: tuple[AnswerChange, ...] = ()

    def record(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnswerHistory:
        """The history after a new step; what was undone before can no longer be redone.

        Raises
        ------
        InputError
            Where the step does not fit the set.
        """
        change = AnswerChange(tuple(self.annotations[i] for i in remove), tuple(add))
        past = (*self.past, change)[-LIMIT:]
        return AnswerHistory(change.apply(self.annotations), past)

    def undo(self) -> AnswerHistory:
        """One step back; the same history where there is nothing to undo."""
        if not self.past:
            return self
        change = self.past[-1]
        present = change.inverse.apply(self.annotations)
        return AnswerHistory(present, self.past[:-1], (*self.future, change))

    def redo(self) -> AnswerHistory:
        """One undone step forth; the same history where there is nothing to redo."""
        if not self.future:
            return self
        change = self.future[-1]
        present = change.apply(self.annotations)
        return AnswerHistory(present, (*self.past, change), self.future[:-1])


# ---------------------------------------------------------------------- contradictions


@dataclass(frozen=True)
class Contradiction:
    """Annotations that exclude each other."""

    ids: tuple[str, ...]
    message: str  # what is wrong, as a sentence without a full stop


class _Said:
    """What is confirmed and rejected, by event and by slot."""

    def __init__(self, annotations: Iterable[Annotation]) -> None:
        self.confirmed: dict[Slot, dict[EventKey, str]] = {}
        self.rejected: dict[EventKey, str] = {}
        for a in annotations:
            event = a.events[0]
            if a.kind == Kind.CONFIRM:
                for slot in event.slots:
                    self.confirmed.setdefault(slot, {}).setdefault(event.key, a.id)
            elif a.kind == Kind.REJECT:
                self.rejected.setdefault(event.key, a.id)

    def rejection_of(self, event: EventRef) -> str | None:
        """The annotation that rejects an event, directly or by a pattern."""
        patterns: list[EventKey] = [(event.event, (c.cell,), ()) for c in event.sources]
        patterns += [(event.event, (), (c.cell,)) for c in event.targets]
        return next((self.rejected[k] for k in [event.key, *patterns] if k in self.rejected), None)

    def rival_of(self, event: EventRef) -> str | None:
        """The confirmed annotation of another event that takes one of this event's slots."""
        rivals = (i for s in event.slots for i in self.confirmed.get(s, {}).items())
        return next((name for key, name in rivals if key != event.key), None)


def find_contradictions(annotations: Iterable[Annotation]) -> list[Contradiction]:
    """All pairs (and, for ambiguous answers, groups) of annotations that exclude each other.

    Answers that exclude each other only through the candidates of a third cell are left to the
    solver.
    """
    listed = list(annotations)
    said = _Said(listed)
    ambiguous = [a for a in listed if a.kind == Kind.ONE_OF]
    first = {key: i for events in said.confirmed.values() for key, i in events.items()}
    confirmed = [a for a in listed if first.get(a.events[0].key) == a.id]
    found = _disjoint(confirmed)
    for a in confirmed:
        event, by = a.events[0], said.rejection_of(a.events[0])
        if by is not None:
            message = f"{describe_event(event)}: this is both confirmed and rejected"
            found.append(Contradiction((a.id, by), message))
    for a in ambiguous:
        blockers = [said.rejection_of(e) or said.rival_of(e) for e in a.events]
        if None not in blockers:
            message = (
                f"{cell_words(a.common_slots[0][1])}: other answers exclude every one of the "
                f"{len(a.events)} alternatives given for it"
            )
            names = (a.id, *dict.fromkeys(b for b in blockers if b is not None))
            found.append(Contradiction(names, message))
    return found + _disjoint(ambiguous)


def _disjoint(annotations: list[Annotation]) -> list[Contradiction]:
    """Pairs, all confirmed or all ambiguous, that have no event in common at a slot of both."""
    at: dict[Slot, list[Annotation]] = {}
    for a in annotations:
        for slot in a.common_slots:
            at.setdefault(slot, []).append(a)
    found: dict[tuple[str, str], Contradiction] = {}
    for slot, group in at.items():
        for a, b in combinations(group, 2):
            if not {e.key for e in a.events} & {e.key for e in b.events}:
                message = _both(slot, a.events[0], b.events[0])
                if a.kind == Kind.ONE_OF:
                    message = f"{cell_words(slot[1])}: two lists of alternatives have no event in"
                    message += " common"
                found.setdefault((a.id, b.id), Contradiction((a.id, b.id), message))
    return list(found.values())


def _both(slot: Slot, first: EventRef, second: EventRef) -> str:
    """Why two events cannot both cover a slot."""
    verbs = FATE if slot[0] == "fate" else HISTORY
    cell = cell_words(slot[1])
    if first.event != second.event:
        a, b = sorted((first, second), key=lambda e: e.event)
        return f"{cell} both {verbs[a.event]} and {verbs[b.event]}"
    role = "source" if slot[0] == "fate" else "target"
    nouns = NOUN[Event.MOVE if first.event == Event.SKIP else first.event][1]
    return (
        f"{cell} is the {role} of two {nouns}: {describe_event(first)}, and "
        f"{describe_event(second)}"
    )


def conflicts_with(annotations: AnnotationSet, new: Iterable[Annotation]) -> list[Contradiction]:
    """Contradictions that more annotations would bring, found in their neighbourhood only.

    Annotations with the ids of new ones are taken as replaced. The time does not depend on the
    size of the set.
    """
    added = list(new)
    near = _touching(annotations, added)
    near = _touching(annotations, [*added, *(a for a in near.values() if a.kind == Kind.ONE_OF)])
    for a in added:
        near.pop(a.id, None)
    before = {frozenset(c.ids) for c in find_contradictions(near.values())}
    after = find_contradictions([*near.values(), *added])
    return [c for c in after if frozenset(c.ids) not in before]


def _touching(annotations: AnnotationSet, of: list[Annotation]) -> dict[str, Annotation]:
    cells = {c.cell for a in of for c in a.cells}
    return {a.id: a for cell in sorted(cells) for a in annotations.at(*cell)}
