"""Which question about an event is next, and which are settled."""

from __future__ import annotations

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion, still_asked
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet


def next_of(active: ActiveSession) -> Suggestion | None:
    """The first open question of the queue, or its first random one where one is owed.

    Answers given while an update was under way would else keep their share below what it should be.
    A second look at the answer just given comes before both.
    """
    have, counted = active.annotations, active.counted
    left = [s for s in active.queue if _open(have, s)]
    if left and left[0].again:
        return left[0]
    due = int((len(counted) + 1) * active.options.suggest.random_share + 1e-9)
    if sum(r.random for r in counted) < due:
        left.sort(key=lambda s: not s.random)
    return left[0] if left else None


def ask_later(active: ActiveSession, asked: Suggestion) -> bool:
    """Put a question behind the others; whether there are others."""
    others = _without(active, asked)
    if others:
        active.queue = (*others, asked)
    return bool(others)


def ask_again(active: ActiveSession, asked: Suggestion, before: Suggestion | None) -> None:
    """Put a question in front, and behind it the one that was in view."""
    rest = _without(active, asked)
    if before is not None and all(s.slot != before.slot for s in rest):
        rest = (before, *rest)
    active.queue = (asked, *rest)


def drop(active: ActiveSession, asked: Suggestion) -> None:
    """Ask a question no more."""
    active.queue = _without(active, asked)


def settled_by(have: AnnotationSet, asked: Suggestion) -> Annotation | None:
    """The annotation that answers a question; None where it is open.

    A rejection answers only the question about the very event that it rejects.
    """
    slots = set(asked.event.slots)
    for cell in dict.fromkeys(c.cell for c in asked.cells):
        for a in have.at(*cell):
            if a.kind == Kind.REJECT:
                if any(e.key == asked.event.key for e in a.events):
                    return a
            elif any(slots.intersection(e.slots) for e in a.events):
                return a
    return None


def _open(have: AnnotationSet, asked: Suggestion) -> bool:
    return still_asked(have, asked) if asked.again else settled_by(have, asked) is None


def _without(active: ActiveSession, asked: Suggestion) -> tuple[Suggestion, ...]:
    return tuple(s for s in active.queue if (s.slot, s.again) != (asked.slot, asked.again))
