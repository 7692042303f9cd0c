"""Tracks that another program made, or that were corrected there, as answers about our cells."""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.annotations.anchor import Lost, anchor, event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.edited_tracks import link_events
from bridgetrack.detections.table import Detections
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Said = tuple[Kind, EventRef]
"""What an answer says of an event."""


@dataclass(frozen=True)
class TakenOver:
    """What tracks from elsewhere say of the cells of a movie.

    Parameters
    ----------
    answers
        Their events that are none of ours, confirmed, and ours that are none of theirs, rejected.
    same
        How many events both have.
    lost
        Their events that name cells which are not there.
    """

    answers: tuple[Said, ...]
    same: int
    lost: tuple[Lost, ...]


def taken_over(
    theirs: Tracks, ours: list[EventRef], detections: Detections, labels: Movie | None = None
) -> TakenOver:
    """Compare tracks from elsewhere with the present ones, and say what differs as answers.

    Cells are found by label and place, as `anchor` does. Nothing is said of cells that they do not
    link, nor that a cell leaves or appears where they have no link.

    Parameters
    ----------
    theirs
        Tracks of the same movie; ``nodes`` and ``edges`` count.
    ours
        The events that hold at present.
    detections, labels
        The cells of the movie, and their masks where there are any.

    Raises
    ------
    InputError
        Where their links are no events, or the movie has another number of axes.
    """
    listed = (
        Annotation(f"i{k}", Kind.CONFIRM, (event,), source="import")
        for k, event in enumerate(link_events(theirs).values(), 1)
    )
    found = anchor(AnnotationSet(theirs.geometry, listed), detections, labels)
    events = {e.key: e for e in event_refs(detections, found.events)}
    known = {e.key for e in ours}
    new = [e for key, e in events.items() if key not in known]
    cells = {c.cell for e in events.values() for c in e.cells}
    said = {slot for e in new for slot in e.slots}
    gone = [
        e
        for e in ours
        if e.sources
        and e.targets
        and e.key not in events
        and not said & set(e.slots)
        and all(c.cell in cells for c in e.cells)
    ]
    answers = [(Kind.CONFIRM, e) for e in new] + [(Kind.REJECT, e) for e in gone]
    return TakenOver(tuple(answers), len(events) - len(new), found.lost)
