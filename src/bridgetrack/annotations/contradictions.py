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


def find_contradictions(annotations: Iterable[Annotation]) -> list[Contradiction]:
    """All pairs (and, for ambiguous answers, groups) of annotations that exclude each other.

    Answers that exclude each other only through the candidates of a third cell are left to the
    solver.
    """
    listed = list(annotations)
    rejected = _first_of(listed, Kind.REJECT)
    confirmed = _first_of(listed, Kind.CONFIRM)
    ambiguous = [a for a in listed if a.kind == Kind.ONE_OF]
    taken: dict[Slot, list[Annotation]] = {}
    for a in confirmed.values():
        for slot in a.events[0].slots:
            taken.setdefault(slot, []).append(a)

    def rejection(event: EventRef) -> list[str]:
        """Ids of annotations that reject an event, directly or by a pattern."""
        keys: list[EventKey] = [event.key]
        keys += [(event.event, (c.cell,), ()) for c in event.sources]
        keys += [(event.event, (), (c.cell,)) for c in event.targets]
        return [rejected[k].id for k in keys if k in rejected]

    def rivals(event: EventRef) -> list[str]:
        """Ids of annotations that confirm another event at one of its slots."""
        others = (a for slot in event.slots for a in taken.get(slot, ()))
        return [a.id for a in others if a.events[0].key != event.key]

    found = _disjoint(list(confirmed.values()))
    for a in confirmed.values():
        if by := rejection(a.events[0]):
            message = f"{describe_event(a.events[0])}: this is both confirmed and rejected"
            found.append(Contradiction((a.id, by[0]), message))
    for a in ambiguous:
        by = [name for e in a.events for name in [*rejection(e), *rivals(e)][:1]]
        if len(by) == len(a.events):
            message = (
                f"{cell_words(a.common_slots[0][1])}: other answers exclude every one of the "
                f"{len(a.events)} alternatives given for it"
            )
            found.append(Contradiction((a.id, *dict.fromkeys(by)), message))
    return found + _disjoint(ambiguous)


def _first_of(listed: list[Annotation], kind: Kind) -> dict[EventKey, Annotation]:
    """The first of the annotations of a kind about each event."""
    found: dict[EventKey, Annotation] = {}
    for a in listed:
        if a.kind == kind:
            found.setdefault(a.events[0].key, a)
    return found


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
                found.setdefault((a.id, b.id), Contradiction((a.id, b.id), _both(slot, a, b)))
    return list(found.values())


def _both(slot: Slot, one: Annotation, other: Annotation) -> str:
    """Why two annotations cannot both hold at a slot."""
    verbs = FATE if slot[0] == "fate" else HISTORY
    cell, first, second = cell_words(slot[1]), one.events[0], other.events[0]
    if one.kind == Kind.ONE_OF:
        return f"{cell}: two lists of alternatives have no event in common"
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
    """Contradictions that new annotations would cause, found in their neighbourhood only.

    Annotations with the ids of new ones count as replaced. The time does not depend on the size of
    the set.
    """
    added = {a.id: a for a in new}
    near = _touching(annotations, added.values())
    alternatives = (a for a in near.values() if a.kind == Kind.ONE_OF)
    near = _touching(annotations, [*added.values(), *alternatives])
    there = [a for a in near.values() if a.id not in added]
    found = find_contradictions([*there, *added.values()])
    return [c for c in found if any(i in added for i in c.ids)]


def _touching(annotations: AnnotationSet, of: Iterable[Annotation]) -> dict[str, Annotation]:
    cells = {c.cell for a in of for c in a.cells}
    return {a.id: a for cell in sorted(cells) for a in annotations.at(*cell)}
