"""Annotations from tracks that somebody corrected by hand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.tracks.tracks import Tracks


def _cells(tracks: Tracks) -> dict[int, CellRef]:
    nodes, axes = tracks.nodes, list(tracks.geometry.axes)
    position = nodes[axes].to_numpy(dtype=np.float64).round(2).tolist()
    columns = (nodes["id"].tolist(), nodes["frame"].tolist(), nodes["label"].tolist(), position)
    listed = zip(*columns, strict=True)
    return {int(i): CellRef(int(f), int(b), tuple(p)) for i, f, b, p in listed}


def link_events(tracks: Tracks) -> dict[tuple[object, ...], EventRef]:
    """The moves, skips, divisions, splits and merges that the links of tracks amount to, by key.

    Two links from one cell are a division unless both are marked ``split``.
    """
    cells = _cells(tracks)
    ahead, back, kind = _links(tracks.edges, cells)
    events = [_from(i, ahead, back, kind, cells) for i in sorted(ahead)]
    events += [_merged(j, back, cells) for j in sorted(back) if len(back[j]) > 1]
    return {e.key: e for e in events if e is not None}


_Ends = dict[int, list[int]]


def _links(
    edges: pd.DataFrame, cells: dict[int, CellRef]
) -> tuple[_Ends, _Ends, dict[tuple[int, int], str]]:
    ahead, back = defaultdict(list), defaultdict(list)
    kind: dict[tuple[int, int], str] = {}
    columns = (edges["source"].tolist(), edges["target"].tolist(), edges["event"].tolist())
    for s, t, event in zip(*columns, strict=True):
        i, j = int(s), int(t)
        if i not in cells or j not in cells:
            raise InputError(f"the edited tracks link {i} to {j}, one of which is not a node")
        if (i, j) in kind:
            continue
        ahead[i].append(j)
        back[j].append(i)
        kind[i, j] = str(event)
    return dict(ahead), dict(back), kind


def _from(
    i: int, ahead: _Ends, back: _Ends, kind: dict[tuple[int, int], str], cells: dict[int, CellRef]
) -> EventRef | None:
    """The event at a cell's fate; None where it is part of a merge."""
    targets = ahead[i]
    source = cells[i]
    joined = [j for j in targets if len(back[j]) > 1]
    if len(targets) > 2 or (len(targets) == 2 and joined):
        raise InputError(
            f"{source} has {len(targets)} links to later cells that are neither a division nor a "
            f"merge; a cell goes to at most two, and not when it merges"
        )
    if joined:
        return None
    if len(targets) == 2:
        split = all(kind[i, j] == Event.SPLIT.key for j in targets)
        event = Event.SPLIT if split else Event.DIVIDE
    else:
        gap = cells[targets[0]].frame - source.frame
        event = Event.MOVE if gap == 1 else Event.SKIP
    return _event(event, (source,), tuple(cells[j] for j in targets))


def _merged(j: int, back: _Ends, cells: dict[int, CellRef]) -> EventRef:
    if len(back[j]) > 2:
        raise InputError(f"{cells[j]} has {len(back[j])} links to earlier cells; at most two merge")
    return _event(Event.MERGE, tuple(cells[i] for i in back[j]), (cells[j],))


def _event(event: Event, sources: tuple[CellRef, ...], targets: tuple[CellRef, ...]) -> EventRef:
    try:
        return EventRef(event, sources, targets)
    except InputError as error:
        raise InputError(f"the links at {sources[0]} in the edited tracks: {error}") from None


def from_edited_tracks(
    original: Tracks, edited: Tracks, *, created: str | None = None
) -> AnnotationSet:
    """Annotations for every link that somebody changed.

    Parameters
    ----------
    original
        Tracks before the correction.
    edited
        Tracks after it, with the same node ids; ``nodes`` and ``edges`` count.
    created
        Time noted in the annotations.

    Returns
    -------
    AnnotationSet
        Confirmed: each link event that is new, and a false detection for each node that was
        deleted. Rejected: each link event that is gone, unless a confirmed one already says
        so, and the false detection of each node that came back without a link. A removed link
        alone does not say that its cells leave or appear. Source is ``correction``.

    Raises
    ------
    InputError
        Where the edited links are no events.
    """
    before, after = link_events(original), link_events(edited)
    old, new = _cells(original), _cells(edited)
    deleted = [EventRef(Event.FALSE, (old[i],)) for i in sorted(set(old) - set(new))]
    confirmed = [after[k] for k in after if k not in before] + deleted
    said = {slot for e in confirmed for slot in e.slots}
    rejected = [e for k, e in before.items() if k not in after and not said & set(e.slots)]
    linked = {c.cell for e in after.values() for c in e.cells}
    restored = [EventRef(Event.FALSE, (new[i],)) for i in sorted(set(new) - set(old))]
    rejected += [e for e in restored if e.sources[0].cell not in linked]
    answers = [(Kind.CONFIRM, e) for e in confirmed] + [(Kind.REJECT, e) for e in rejected]
    listed = (
        Annotation(f"e{k}", kind, (e,), created, "correction")
        for k, (kind, e) in enumerate(answers, 1)
    )
    return AnnotationSet(edited.geometry, listed)


_NEAR = 0.5
"""Cell diameters within which a cell of another file is the same cell."""


@dataclass(frozen=True)
class Corrections:
    """What somebody changed in tracks with another program.

    Parameters
    ----------
    annotations
        The changes as answers, see `from_edited_tracks`.
    same
        Links that both have.
    unknown
        Cells of the edited tracks that the original ones do not have; nothing is said of them.
    missing
        Cells of the original tracks that the edited ones do not have.
    """

    annotations: AnnotationSet
    same: int
    unknown: int
    missing: int


def corrections(
    original: Tracks, edited: Tracks, *, deleted: bool = False, created: str | None = None
) -> Corrections:
    """As `from_edited_tracks`, for tracks that another program numbered in its own way.

    Cells are found by their places.

    Parameters
    ----------
    original
        Tracks before the correction.
    edited
        The same movie after it.
    deleted
        Whether cells that the edited tracks lack are no cells. Programs leave cells out for other
        reasons, too; so nothing is said of them and of their links otherwise.
    created
        Time noted in the annotations.

    Raises
    ------
    InputError
        Where the movies have other axes, no cell is in both, or the edited links are no events.
    """
    if original.geometry.axes != edited.geometry.axes:
        raise InputError(
            f"the edited tracks have the axes {'/'.join(edited.geometry.axes)}, the original ones "
            f"{'/'.join(original.geometry.axes)}; they must be of the same movie"
        )
    name = _found_again(original, edited)
    if not name:
        raise InputError(
            "no cell of the edited tracks lies where one of the original tracks does; are they of "
            "the same movie, and in the same pixels?"
        )
    ours = original.nodes["id"].isin(set(name.values()))
    links = edited.edges[edited.edges["source"].isin(name) & edited.edges["target"].isin(name)]
    links = links.assign(source=links["source"].map(name), target=links["target"].map(name))
    nodes = original.nodes[ours] if deleted else original.nodes
    before = original
    if not deleted:
        known = set(original.nodes.loc[ours, "id"])
        edges = original.edges
        before = replace(
            original, edges=edges[edges["source"].isin(known) & edges["target"].isin(known)]
        )
    after = replace(original, nodes=nodes, edges=links)
    found = from_edited_tracks(before, after, created=created)
    same = len(link_events(before).keys() & link_events(after).keys())
    return Corrections(found, same, len(edited.nodes) - len(name), int((~ours).sum()))


def _found_again(original: Tracks, edited: Tracks) -> dict[int, int]:
    """Ids of the edited cells, and those of the original cells in the same places."""
    axes = list(original.geometry.axes)
    area = original.nodes["area"].to_numpy(dtype=np.float64)
    power = 1.0 / len(axes)
    diameter = 2 * float(np.median(area) / np.pi) ** power if len(area) else 0.0
    reach = _NEAR * max(diameter, 2.0)
    frames = dict(iter(edited.nodes.groupby("frame")))
    found: dict[int, int] = {}
    for frame, ours in original.nodes.groupby("frame"):
        theirs = frames.get(frame)
        if theirs is None:
            continue
        away, row = cKDTree(ours[axes].to_numpy(dtype=np.float64)).query(
            theirs[axes].to_numpy(dtype=np.float64), distance_upper_bound=reach
        )
        ids, mine = theirs["id"].tolist(), ours["id"].tolist()
        taken: set[int] = set()
        for k in np.argsort(away, kind="stable").tolist():
            if np.isfinite(away[k]) and row[k] not in taken:
                taken.add(int(row[k]))
                found[int(ids[k])] = int(mine[row[k]])
    return found
