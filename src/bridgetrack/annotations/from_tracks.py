"""Answers from tracks: from corrected ones of other programs, or drawn from the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridgetrack.annotations.anchor import Lost, anchor, event_refs
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind, cell_words
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, plural, warn
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks, edge_events, edge_rows, events_from_edges

Answer = tuple[Kind, EventRef]
"""An answer about one event."""


@dataclass(frozen=True)
class ImportedTracks:
    """Answers from tracks of another program."""

    # their events that are none of ours, confirmed, and ours that are none of theirs, rejected
    answers: tuple[Answer, ...]
    same: int  # how many events both have
    lost: tuple[Lost, ...]  # their events that name cells which are not there


def compare_tracks(
    theirs: Tracks, ours: list[EventRef], detections: Detections, labels: Movie | None = None
) -> ImportedTracks:
    """Compare tracks of another program with the present events; the differences are answers.

    Only ``nodes`` and ``edges`` of their tracks are used. Cells are found by label and place, as
    `anchor` does. There are no answers about cells that they do not link, nor that a cell leaves or
    appears where they have no link. Raises an `InputError` if their links are no events, or the
    movie has another number of axes.
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
    """The moves, skips, divisions, splits and merges given by the links of tracks.

    Two links from one cell are a division unless both are marked ``split``. Raises an `InputError`
    if links are no events, or name cells that do not exist.
    """
    nodes, links = tracks.nodes, tracks.edges.drop_duplicates(["source", "target"])
    src, tgt = edge_rows(nodes, links, "the imported tracks")
    kind, cut = edge_events(nodes, src, tgt), (links["event"] == Event.SPLIT.key).to_numpy()
    kind[np.bincount(src[cut], minlength=len(nodes))[src] > 1] = Event.SPLIT.key
    events = events_from_edges(nodes, links.assign(event=kind), src, tgt, tracks.geometry.n_frames)
    later, earlier = np.bincount(src)[src], np.bincount(tgt)[tgt]
    wrong = (later > 2) | (earlier > 2) | ((later > 1) & (earlier > 1))
    if wrong.any():
        e = np.flatnonzero(wrong)[0]
        named = nodes[["frame", "label"]].to_numpy()
        one, other = (cell_words(tuple(named[row[e]])) for row in (src, tgt))
        raise InputError(
            f"the imported tracks link {one} to {later[e]} later and {other} to {earlier[e]} "
            "earlier cells; a cell goes to at most two, and not when it merges, and at most two "
            "cells merge"
        )
    linked = events["sources"].map(len).gt(0) & events["targets"].map(len).gt(0)
    return table_events(tracks, events[linked])


def table_events(tracks: Tracks, table: pd.DataFrame) -> list[EventRef]:
    """References to events of tracks, given as some rows of a table such as `Tracks.events`.

    Raises an `InputError` if the cells of an event do not fit its kind.
    """
    nodes = tracks.nodes
    named = [i for side in ("sources", "targets") for ids in table[side] for i in ids]
    nodes = nodes.loc[nodes["id"].isin(named), ["id", "frame", "label", *tracks.geometry.axes]]
    rows = zip(*(nodes[name].tolist() for name in nodes), strict=True)
    cells = {i: CellRef(t, k, tuple(map(float, place))) for i, t, k, *place in rows}
    found = []
    for key, *ids in table[["event", "sources", "targets"]].itertuples(index=False):
        sources, targets = (tuple(cells[i] for i in side) for side in ids)
        try:
            found.append(EventRef(Event.from_key(key), sources, targets))
        except InputError as error:
            raise InputError(f"the links at {(*sources, *targets)[0]}: {error}") from None
    return found


# ---------------------------------------------------------------------- drawn from a truth


def read_events(events: Events, detections: Detections) -> Events:
    """True events that a tracker has to find, as `bridgetrack.true_events` returns them.

    Appearances in the first and disappearances in the last frame are left out. Raises an
    `InputError` if they name other detections than these.
    """
    named = np.concatenate([events.sources, events.targets], axis=1)
    if len(events) and not -1 <= named.min() <= named.max() < len(detections):
        raise InputError(f"the events name other detections than the {len(detections)} there are")
    frame, last = detections.frame, detections.geometry.n_frames - 1
    start = (events.event == Event.APPEAR) & (frame[events.targets[:, 0]] == 0)
    end = (events.event == Event.DISAPPEAR) & (frame[events.sources[:, 0]] == last)
    return events.take(~(start | end))


SHARES = {Event.MOVE: 0.6, Event.DIVIDE: 0.2}
"""Shares of a count (design section 8); the other kinds share the rest."""


def draw_annotations(
    events: Events,
    detections: Detections,
    *,
    count: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
) -> AnnotationSet:
    """Draw answers from ground truth, rare kinds more often.

    Parameters
    ----------
    events
        True events, as `bridgetrack.true_events` returns them.
    detections
        The detections that their rows belong to.
    count, fraction
        How many events, or which share of them, to annotate; one of the two. More than there are
        takes all. By count, 60 % are moves, 20 % divisions, and 20 % the other kinds that occur, in
        turns; if a kind has too few, others are added. By fraction, it is the share of each kind,
        but at least one of each.
    seed
        Two draws with the same arguments are the same. A larger fraction contains the draw of
        a smaller one.

    Returns
    -------
    AnnotationSet
        Annotations with the ids ``s1``, ``s2``, ... in the order of drawing, without times.

    Raises
    ------
    InputError
        If the numbers are not valid, or there is no event to draw.

    Warns
    -----
    BridgetrackWarning
        If there are fewer events than `count`.
    """
    if (count is None) == (fraction is None):
        raise InputError("give either a count or a fraction of the events to draw")
    if count is not None and count < 1:
        raise InputError(f"the count of events to draw is {count}, it must be 1 or more")
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"the fraction of events to draw is {fraction}, it must be in (0, 1]")
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    rows = read_events(events, detections)
    if len(rows) == 0:
        raise InputError("the ground truth holds no event that could be annotated")
    if count is not None and len(rows) < count:
        warn(f"only {plural(len(rows), 'event')} can be annotated, not {count}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    kind = rows.event[order]
    place = pd.Series(kind).groupby(kind).cumcount().to_numpy(copy=True)
    if count is None:
        available = np.bincount(kind, minlength=len(Event))
        quota = np.maximum(np.floor((fraction or 0.0) * available + 0.5), 1)
        taken = np.flatnonzero(place < quota[kind])
    else:
        group = np.where(np.isin(kind, list(SHARES)), kind, len(Event))
        turn = np.lexsort((place, group))  # the kinds of the last group take turns
        place[turn] = pd.Series(group[turn]).groupby(group[turn]).cumcount()
        share = np.array([*(SHARES.get(e, 0.0) for e in Event), 1 - sum(SHARES.values())])
        share[np.setdiff1d(np.arange(len(share)), group)] = 0.0
        quota = np.rint(count * share / share.sum())
        taken = np.sort(np.argsort(place >= quota[group], kind="stable")[:count])
    refs = event_refs(detections, rows.take(order[taken]))
    listed = (
        Annotation(f"s{k}", Kind.CONFIRM, (ref,), source="simulated")
        for k, ref in enumerate(refs, 1)
    )
    return AnnotationSet(detections.geometry, listed)
