"""Answers about one movie that exclude each other.

An event is one column of ``C y = 1`` (001, eq. 17-18), so two confirmed events that share a
slot exclude each other; a rejected event or an ambiguous answer excludes what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from bridgetrack.annotations.annotation import (
    FATE,
    HISTORY,
    NOUN,
    Annotation,
    EventKey,
    EventRef,
    Kind,
    Slot,
    cell_words,
    describe_event,
)
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.hypotheses.events import Event


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
