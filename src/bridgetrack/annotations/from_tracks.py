"""Tracks that another program made or corrected, as answers about the cells of a movie."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from bridgetrack.annotations.anchor import Lost, anchor, event_refs
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Answer = tuple[Kind, EventRef]
"""What is said of one event."""


@dataclass(frozen=True)
class ImportedTracks:
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

    answers: tuple[Answer, ...]
    same: int
    lost: tuple[Lost, ...]


def compare_tracks(
    theirs: Tracks, ours: list[EventRef], detections: Detections, labels: Movie | None = None
) -> ImportedTracks:
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
        for k, event in enumerate(link_events(theirs), 1)
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
    return ImportedTracks(tuple(answers), len(events) - len(new), found.lost)


def link_events(tracks: Tracks) -> list[EventRef]:
    """The moves, skips, divisions, splits and merges that the links of tracks amount to.

    Two links from one cell are a division unless both are marked ``split``.

    Raises
    ------
    InputError
        Where links are no events, or name cells that are not there.
    """
    cells = _cells(tracks)
    kind: dict[tuple[int, int], str] = {}
    ahead, back = defaultdict(list), defaultdict(list)
    columns = (tracks.edges[name].tolist() for name in ("source", "target", "event"))
    for i, j, event in zip(*columns, strict=True):
        if i not in cells or j not in cells:
            raise InputError(f"the imported tracks link {i} to {j}, one of which is not a node")
        if (i, j) not in kind:
            kind[i, j] = event
            ahead[i].append(j)
            back[j].append(i)
    merged = {j for j, sources in back.items() if len(sources) > 1}
    found = []
    for i, targets in sorted(ahead.items()):
        if len(targets) > 2 or (len(targets) == 2 and merged.intersection(targets)):
            raise InputError(
                f"{cells[i]} has {len(targets)} links to later cells that are neither a division "
                "nor a merge; a cell goes to at most two, and not when it merges"
            )
        if len(targets) == 2:
            split = all(kind[i, j] == Event.SPLIT.key for j in targets)
            found.append(_event(Event.SPLIT if split else Event.DIVIDE, [i], targets, cells))
        elif targets[0] not in merged:
            gap = cells[targets[0]].frame - cells[i].frame
            found.append(_event(Event.MOVE if gap == 1 else Event.SKIP, [i], targets, cells))
    for j in sorted(merged):
        if len(back[j]) > 2:
            raise InputError(
                f"{cells[j]} has {len(back[j])} links to earlier cells; at most two merge"
            )
        found.append(_event(Event.MERGE, back[j], [j], cells))
    return found


def _cells(tracks: Tracks) -> dict[int, CellRef]:
    nodes, axes = tracks.nodes, list(tracks.geometry.axes)
    places = nodes[axes].to_numpy(dtype=float).round(2).tolist()
    columns = (nodes[name].tolist() for name in ("id", "frame", "label"))
    listed = zip(*columns, places, strict=True)
    return {int(i): CellRef(int(t), int(label), tuple(p)) for i, t, label, p in listed}


def _event(
    event: Event, sources: list[int], targets: list[int], cells: dict[int, CellRef]
) -> EventRef:
    try:
        return EventRef(event, tuple(cells[i] for i in sources), tuple(cells[j] for j in targets))
    except InputError as error:
        raise InputError(
            f"the links at {cells[sources[0]]} in the imported tracks: {error}"
        ) from None
