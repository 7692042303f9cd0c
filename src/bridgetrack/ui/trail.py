"""Questions answered, in order, so that undo can ask them again."""

from __future__ import annotations

from collections.abc import Iterable

from bridgetrack.active.records import Record
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet


class Trail:
    """What was answered, and by which annotation."""

    def __init__(self, have: AnnotationSet | None = None, records: Iterable[Record] = ()) -> None:
        self._steps: list[tuple[Suggestion, Annotation]] = []
        self._noted: dict[str, Annotation] = {}
        if have is not None:
            self._noted = {r.id: have[r.id] for r in records if r.id in have}

    def add(self, suggestion: Suggestion, annotation: Annotation) -> None:
        """A question was answered."""
        self._steps.append((suggestion, annotation))
        self._noted[annotation.id] = annotation

    def taken_back(self, have: AnnotationSet) -> Suggestion | None:
        """The question whose answer is gone since, the latest; None where all are there."""
        back = None
        while self._steps and not _holds(have, self._steps[-1][1]):
            back, _ = self._steps.pop()
        return back

    def true_records(self, have: AnnotationSet, records: Iterable[Record]) -> tuple[Record, ...]:
        """Records without those whose id another answer was given after an undo."""
        return tuple(r for r in records if r.id not in have or self._noted.get(r.id) == have[r.id])


def _holds(have: AnnotationSet, annotation: Annotation) -> bool:
    return annotation.id in have and have[annotation.id] == annotation


def settled_by(have: AnnotationSet, suggestion: Suggestion) -> Annotation | None:
    """The annotation that answers a question; None where it is open.

    A rejection answers only the question about the very event that it rejects.
    """
    slots = set(suggestion.event.slots)
    for cell in dict.fromkeys(c.cell for c in suggestion.cells):
        for a in have.at(*cell):
            if a.kind == Kind.REJECT:
                if any(e.key == suggestion.event.key for e in a.events):
                    return a
            elif any(slots.intersection(e.slots) for e in a.events):
                return a
    return None
