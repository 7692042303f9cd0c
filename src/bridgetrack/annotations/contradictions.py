"""Annotations that cannot all be true, and why, in plain words.

An event is one column of ``C y = 1`` (001, eq. 17-18), so two confirmed events that share a
slot exclude each other; a rejected event or an ambiguous answer excludes what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from bridgetrack.annotations.annotation import Annotation, EventKey, EventRef, Kind, Slot
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.words import FATE, HISTORY, NOUN, cell_words, describe_event
from bridgetrack.hypotheses.events import Event


@dataclass(frozen=True)
class Contradiction:
    """Annotations that exclude each other."""

    ids: tuple[str, ...]
    message: str  # what is wrong, as a sentence without a full stop


class _Book:
    """What is confirmed and rejected, by event and by slot."""

    def __init__(self, annotations: Iterable[Annotation]) -> None:
        self.at: dict[Slot, dict[EventKey, tuple[EventRef, str]]] = {}
        self.rejected: dict[EventKey, str] = {}
        for a in annotations:
            event = a.events[0]
            if a.kind == Kind.CONFIRM:
                for slot in event.slots:
                    self.at.setdefault(slot, {}).setdefault(event.key, (event, a.id))
            elif a.kind == Kind.REJECT:
                self.rejected.setdefault(event.key, a.id)

    def rejection_of(self, event: EventRef) -> str | None:
        """The annotation that rejects an event, directly or by a pattern."""
        if event.key in self.rejected:
            return self.rejected[event.key]
        patterns: list[EventKey] = [(event.event, (c.cell,), ()) for c in event.sources]
        patterns += [(event.event, (), (c.cell,)) for c in event.targets]
        return next((self.rejected[p] for p in patterns if p in self.rejected), None)

    def rival_of(self, event: EventRef) -> str | None:
        """The confirmed annotation of another event that takes one of this event's slots."""
        for slot in event.slots:
            for key, (_, name) in self.at.get(slot, {}).items():
                if key != event.key:
                    return name
        return None


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


def _confirmed_twice(book: _Book) -> list[Contradiction]:
    found: dict[tuple[str, str], Contradiction] = {}
    for slot, events in book.at.items():
        for (a, i), (b, j) in combinations(events.values(), 2):
            found.setdefault((i, j), Contradiction((i, j), _both(slot, a, b)))
    return list(found.values())


def _confirmed_and_rejected(book: _Book) -> list[Contradiction]:
    found = []
    for events in book.at.values():
        for event, i in events.values():
            j = book.rejection_of(event)
            if j is not None:
                this = ": this" if event.event == Event.FALSE else ""
                message = f"{describe_event(event)}{this} is both confirmed and rejected"
                found.append(Contradiction((i, j), message))
    return list(dict.fromkeys(found))


def _alternatives_excluded(book: _Book, annotation: Annotation) -> list[Contradiction]:
    blockers: dict[str, None] = {}
    for event in annotation.events:
        by = book.rejection_of(event) or book.rival_of(event)
        if by is None:
            return []
        blockers[by] = None
    cell = cell_words(annotation.common_slots[0][1])
    message = f"{cell}: other answers exclude every one of the {len(annotation.events)} "
    message += "alternatives given for it"
    return [Contradiction((annotation.id, *blockers), message)]


def _alternatives_disjoint(ambiguous: list[Annotation]) -> list[Contradiction]:
    by_slot: dict[Slot, list[Annotation]] = {}
    for a in ambiguous:
        for slot in a.common_slots:
            by_slot.setdefault(slot, []).append(a)
    found: dict[tuple[str, str], Contradiction] = {}
    for slot, group in by_slot.items():
        for a, b in combinations(group, 2):
            if not {e.key for e in a.events} & {e.key for e in b.events}:
                message = (
                    f"{cell_words(slot[1])}: two lists of alternatives have no event in common"
                )
                found.setdefault((a.id, b.id), Contradiction((a.id, b.id), message))
    return list(found.values())


def find_contradictions(annotations: Iterable[Annotation]) -> list[Contradiction]:
    """All pairs (and, for ambiguous answers, groups) of annotations that exclude each other.

    Answers that exclude each other only through the candidates of a third cell are left to the
    solver.
    """
    listed = list(annotations)
    book = _Book(listed)
    ambiguous = [a for a in listed if a.kind == Kind.ONE_OF]
    found = _confirmed_twice(book) + _confirmed_and_rejected(book)
    for a in ambiguous:
        found += _alternatives_excluded(book, a)
    return found + _alternatives_disjoint(ambiguous)


def conflicts_with(annotations: AnnotationSet, new: Annotation) -> list[Contradiction]:
    """Contradictions that one more annotation would bring, found in its neighbourhood only.

    An annotation with the id of `new` is taken as replaced. The time does not depend on the size
    of the set.
    """
    near = _touching(annotations, [new])
    near = _touching(annotations, [new, *(a for a in near.values() if a.kind == Kind.ONE_OF)])
    near.pop(new.id, None)
    before = {frozenset(c.ids) for c in find_contradictions(near.values())}
    after = find_contradictions([*near.values(), new])
    return [c for c in after if frozenset(c.ids) not in before]


def conflicts_of(
    annotations: AnnotationSet, new: Sequence[Annotation]
) -> dict[str, tuple[Contradiction, ...]]:
    """Annotations that more of them, free of contradictions themselves, would contradict, by id."""
    near = _touching(annotations, list(new))
    near = _touching(annotations, [*new, *(a for a in near.values() if a.kind == Kind.ONE_OF)])
    before = {frozenset(c.ids) for c in find_contradictions(near.values())}
    mine = {a.id for a in new}
    found: dict[str, tuple[Contradiction, ...]] = {}
    for c in find_contradictions([*near.values(), *new]):
        if frozenset(c.ids) not in before:
            for i in set(c.ids) - mine:
                found[i] = (*found.get(i, ()), c)
    return found


def _touching(annotations: AnnotationSet, of: list[Annotation]) -> dict[str, Annotation]:
    cells = {c.cell for a in of for c in a.cells}
    return {a.id: a for cell in sorted(cells) for a in annotations.at(*cell)}
