"""What truly happened to detections, as far as the truth settles it, and how much was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections
from bridgetrack.evaluation.match import Match, Status, in_border_band
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.tracks.tracks import Tracks, edge_rows

Rows = NDArray[np.int64]


MAX_MISSED = 2


@dataclass(frozen=True)
class _Graph:
    """The true graph by rows: only children and only parents, -1 where there is none or more."""

    frame: Rows
    child: Rows
    parent: Rows
    n_children: Rows
    n_parents: Rows
    src: Rows
    tgt: Rows


def true_events(
    detections: Detections,
    truth: Tracks,
    match: Match,
    *,
    field_of_interest: float = 0.0,
    complete: bool = True,
) -> Events:
    """Events of detections that the ground truth settles.

    With M(j) the detection matched to the true cell j (`Match`), and j → k an edge of the truth
    where k is the only child and j the only parent:

    - *move*: j → k in the next frame, M(j) and M(k) exist; or one detection covers j and j', the
      next one covers their children k and k' and nothing else.
    - *divide*: j has exactly two children, both in the next frame, and all three are matched.
    - *split*: j → k, j is matched and k is cut into exactly two pieces; or one detection covers
      exactly j and j', and their children are matched apart.
    - *merge*: the reverse of either case of a split.
    - *skip*: j → ... → k over up to two cells that were missed (or that the truth does not
      draw), M(j) and M(k) exist.
    - *appear*, *disappear*: j is matched and has no parent or child, and is not in the first or
      last frame. With a field of interest, only farther than twice its width from the edge,
      because there the truth ends where a cell leaves the field.
    - *false*: the status is ``FALSE``.

    Whatever involves an unclear detection, three or more cells at once, a cell lost for longer,
    or a division seen too early or too late, is left out. No slot (fate or history of a
    detection) is settled twice.

    Parameters
    ----------
    detections, truth, match
        What `match_detections` was given and returned.
    field_of_interest
        Width in pixels of the band in which the truth leaves cells out.
    complete
        False where the truth follows only some of the cells: then nothing appears, disappears
        or is false for certain.
    """
    graph = _graph(truth)
    found = [
        *_moves(graph, match),
        *_divisions(graph, match),
        *_regions(graph, match),
        *_pieces(graph, match),
        _skips(graph, match),
    ]
    if complete:
        near = in_border_band(detections, 2 * field_of_interest, truth.geometry.shape)
        found.extend(_ends(graph, match, near, truth.geometry.n_frames))
        found.append(_rows(Event.FALSE, np.flatnonzero(match.status == Status.FALSE)))
    events = Events.join(found)
    return events.take(np.lexsort((events.targets[:, 0], events.sources[:, 0], events.event)))


def _graph(truth: Tracks) -> _Graph:
    src, tgt = edge_rows(truth.nodes, truth.edges, "the ground truth")
    n = len(truth.nodes)
    n_children, n_parents = np.bincount(src, minlength=n), np.bincount(tgt, minlength=n)
    single = (n_children[src] == 1) & (n_parents[tgt] == 1)
    child, parent = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    child[src[single]] = tgt[single]
    parent[tgt[single]] = src[single]
    frame = truth.nodes["frame"].to_numpy(dtype=np.int64)
    return _Graph(frame, child, parent, n_children, n_parents, src, tgt)


def _rows(
    event: Event,
    source: Rows | None,
    target: Rows | None = None,
    second_source: Rows | None = None,
    second_target: Rows | None = None,
) -> Events:
    """Events of one kind; of two cells on a side, the lower row comes first."""

    def side(first: Rows | None, second: Rows | None) -> list[Rows]:
        if first is None or second is None:
            return [] if first is None else [first]
        return [np.minimum(first, second), np.maximum(first, second)]

    return Events.of_kind(event, side(source, second_source), side(target, second_target))


def _next(graph: _Graph, cell: Rows) -> Rows:
    """Only child in the next frame of every cell, -1 where there is none."""
    child = np.where(cell >= 0, graph.child[cell], -1)
    adjacent = (child >= 0) & (graph.frame[child] == graph.frame[cell] + 1)
    return np.where(adjacent, child, -1)


def _at(values: Rows, index: Rows) -> Rows:
    return np.where(index >= 0, values[index], -1)


def _moves(graph: _Graph, match: Match) -> list[Events]:
    cell = np.arange(len(graph.frame))
    target = _at(match.detection, _next(graph, cell))
    both = (match.detection >= 0) & (target >= 0)
    moves = _rows(Event.MOVE, match.detection[both], target[both])
    region, first, second = _pairs(match)
    later = _at(match.region, _next(graph, first))
    same = (later >= 0) & (later == _at(match.region, _next(graph, second)))
    same &= _at(match.covered[:, 0], later) >= 0
    return [moves, _rows(Event.MOVE, region[same], later[same])]


def _pairs(match: Match) -> tuple[Rows, Rows, Rows]:
    region = np.flatnonzero(match.covered[:, 0] >= 0)
    return region, match.covered[region, 0], match.covered[region, 1]


def _divisions(graph: _Graph, match: Match) -> list[Events]:
    mothers = np.flatnonzero(graph.n_children == 2)
    order = np.lexsort((graph.tgt, graph.src))
    order = order[graph.n_children[graph.src[order]] == 2]
    daughters = graph.tgt[order].reshape(-1, 2)
    good = (graph.frame[daughters] == graph.frame[mothers][:, None] + 1).all(axis=1)
    good &= (graph.n_parents[daughters] == 1).all(axis=1)
    good &= (match.detection[daughters] >= 0).all(axis=1) & (match.detection[mothers] >= 0)
    found = match.detection[daughters[good]]
    mother = match.detection[mothers[good]]
    return [_rows(Event.DIVIDE, mother, found[:, 0], None, found[:, 1])]


def _regions(graph: _Graph, match: Match) -> list[Events]:
    region, first, second = _pairs(match)
    after = [_at(match.detection, _next(graph, c)) for c in (first, second)]
    parting = (after[0] >= 0) & (after[1] >= 0)
    before = [_at(match.detection, _previous(graph, c)) for c in (first, second)]
    joining = (before[0] >= 0) & (before[1] >= 0)
    return [
        _rows(Event.SPLIT, region[parting], after[0][parting], None, after[1][parting]),
        _rows(Event.MERGE, before[0][joining], region[joining], before[1][joining]),
    ]


def _previous(graph: _Graph, cell: Rows) -> Rows:
    parent = graph.parent[cell]
    adjacent = (parent >= 0) & (graph.frame[parent] == graph.frame[cell] - 1)
    return np.where(adjacent, parent, -1)


def _pieces(graph: _Graph, match: Match) -> list[Events]:
    cut = np.flatnonzero(match.pieces[:, 0] >= 0)
    first, second = match.pieces[cut].T
    before = _at(match.detection, _previous(graph, cut))
    after = _at(match.detection, _next(graph, cut))
    came, went = before >= 0, after >= 0
    return [
        _rows(Event.SPLIT, before[came], first[came], None, second[came]),
        _rows(Event.MERGE, first[went], after[went], second[went]),
    ]


def _skips(graph: _Graph, match: Match) -> Events:
    start = np.flatnonzero((match.detection >= 0) & (graph.child >= 0))
    here = graph.child[start]
    for _ in range(MAX_MISSED):
        lost = (here >= 0) & match.missed[here]
        here = np.where(lost, graph.child[here], here)
    end = _at(match.detection, here)
    gap = np.where(here >= 0, graph.frame[here] - graph.frame[start], 0)
    good = (end >= 0) & (gap > 1) & (gap <= MAX_MISSED + 1)
    return _rows(Event.SKIP, match.detection[start[good]], end[good])


def _ends(graph: _Graph, match: Match, near: NDArray[np.bool_], n_frames: int) -> list[Events]:
    matched = np.flatnonzero(match.detection >= 0)
    matched = matched[~near[match.detection[matched]]]
    fresh = matched[(graph.n_parents[matched] == 0) & (graph.frame[matched] > 0)]
    gone = matched[(graph.n_children[matched] == 0) & (graph.frame[matched] < n_frames - 1)]
    return [
        _rows(Event.APPEAR, None, match.detection[fresh]),
        _rows(Event.DISAPPEAR, match.detection[gone]),
    ]


@dataclass(frozen=True)
class EventScores:
    """Found events of every kind that occurs in the truth."""

    right: dict[str, int]  # how many of the true events of a kind were found, by its name
    true: dict[str, int]  # how many there are

    @property
    def share(self) -> float | None:
        """Share of the true events that were found; None where there are none."""
        total = sum(self.true.values())
        return sum(self.right.values()) / total if total else None


def score_events(tracks: Tracks, truth: Events) -> EventScores:
    """Compare chosen events with those that the truth settles (`true_events`), in the same rows.

    Unlike scores of edges this counts what a segmentation gets wrong as events of its own: a
    merge that the tracker names is right.
    """
    columns = (tracks.events[name] for name in ("event", "sources", "targets"))
    chosen = {
        (event, tuple(sorted(sources)), tuple(sorted(targets)))
        for event, sources, targets in zip(*columns, strict=True)
    }
    right: dict[str, int] = {}
    true: dict[str, int] = {}
    rows = zip(truth.event.tolist(), truth.sources.tolist(), truth.targets.tolist(), strict=True)
    for kind, sources, targets in rows:
        name = Event(kind).key
        named = (name, *(tuple(sorted(c for c in s if c >= 0)) for s in (sources, targets)))
        true[name] = true.get(name, 0) + 1
        right[name] = right.get(name, 0) + (named in chosen)
    return EventScores(right, true)
