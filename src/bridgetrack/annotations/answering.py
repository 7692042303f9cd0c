"""What an answer changes: the annotation it makes, and those it takes the place of."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bridgetrack.annotations.annotation import Annotation, EventRef, Kind, now
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.contradictions import conflicts_with


def answer_to(
    have: AnnotationSet,
    kind: Kind,
    events: Iterable[EventRef],
    source: str,
    seconds: float | None = None,
    instead_of: Collection[str] = (),
) -> tuple[Annotation, list[str]]:
    """The annotation of an answer, and the ids of those that it replaces.

    Parameters
    ----------
    have
        The present annotations.
    kind, events, source, seconds
        Of the answer.
    instead_of
        Ids that it replaces besides those that contradict it.

    Returns
    -------
    Annotation, list of str
        Where the same was said before, that annotation, which is in `have` already.
    """
    new = Annotation(have.next_id(), kind, tuple(events), now(), source, seconds)
    said = [e.key for e in new.events]
    for a in have.at(*new.events[0].cells[0].cell):
        if a.kind == kind and [e.key for e in a.events] == said:
            return a, []
    gone = {i for c in conflicts_with(have, new) for i in c.ids} - {new.id}
    return new, sorted(gone | {i for i in instead_of if i in have})
