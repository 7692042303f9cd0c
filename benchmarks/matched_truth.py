"""What truly happened to detections, also to those that are merged, cut or no cells."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.arrays import Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.evaluation.scores import matching_radius
from bridgetrack.evaluation.truth import (
    COVERED,
    CellIds,
    Overlaps,
    cells_of,
    movie_overlaps,
)
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks, edge_rows

PIECE = 0.1
TOUCHED = 0.05
MAX_MISSED = 2


class Status(IntEnum):
    """What the ground truth says about a detection."""

    UNCLEAR = 0
    MATCHED = 1
    PIECE = 2
    MERGED = 3
    FALSE = 4


@dataclass(frozen=True)
class Match:
    """What detections and true cells have to do with each other."""

    # row of the one true cell that a detection is, -1 where it is none or more; shape (n,)
    node: Index
    status: NDArray[np.int8]  # see `match_detections`, shape (n,), values of `Status`
    detection: Index  # row of the one detection that a true cell is, -1 otherwise; shape (m,)
    region: Index  # row of the detection that covers this and other true cells, else -1; shape (m,)
    # the two true cells that a merged detection covers, -1 for another number; shape (n, 2)
    covered: Index
    # the two detections that a true cell is cut into, -1 for another number; shape (m, 2)
    pieces: Index
    missed: Mask  # true cells that no detection touches, shape (m,)


def match_detections(
    detections: Detections,
    labels: Movie | None,
    truth: Tracks,
    truth_labels: Movie | None,
) -> Match:
    """Match detections to true cells, by masks where both have them, else by centroids.

    By masks: a detection *covers* a true cell where it has more than half of its pixels (the
    criterion of Matula et al. 2015), and is *inside* one where that has more than half of the
    detection's pixels and this is a tenth of the true cell or more.

    - ``MATCHED``: covers exactly one true cell, inside which there is no other detection.
    - ``MERGED``: covers several.
    - ``PIECE``: inside a true cell in which there are other detections, covers no other cell,
      and all of them together cover the cell.
    - ``FALSE``: less than a twentieth of it lies in true cells.
    - ``UNCLEAR``: anything else. A true cell is *missed* where less than a twentieth of it is
      covered by anything.

    By centroids: ``MATCHED`` where detection and true cell are each other's nearest within half of
    the median distance between neighbouring true cells, ``FALSE`` where no true cell is within
    twice that.

    Parameters
    ----------
    detections, labels
        The detections and the masks they came from (None if there are none).
    truth, truth_labels
        The truth and its whole-cell masks. With small markers in their place cut cells cannot
        be told, and whatever misses the marker counts as false.

    Raises
    ------
    InputError
        If the movies differ in shape or dimension.
    """
    if labels is None or truth_labels is None:
        return _by_distance(detections, truth)
    mine = CellIds(detections.frame, detections.label, labels)
    return _by_overlap(movie_overlaps(mine, cells_of(truth, truth_labels)))


def _by_overlap(overlaps: Overlaps) -> Match:
    n, m = len(overlaps.area_a), len(overlaps.area_b)
    share_a, share_b = overlaps.share_of_a, overlaps.share_of_b
    covers = share_b > COVERED
    inside = (share_a > COVERED) & (share_b >= PIECE)
    n_covered = np.bincount(overlaps.a[covers], minlength=n)
    n_inside = np.bincount(overlaps.b[inside], minlength=m)
    # A detection that covers its cell need not be inside it; others inside make the cell cut.
    own = np.bincount(overlaps.b[covers & inside], minlength=m)
    others = n_inside - own
    match = _empty(n, m)
    merged = n_covered > 1
    match.status[merged] = Status.MERGED
    e = np.flatnonzero(covers & merged[overlaps.a])
    match.region[overlaps.b[e]] = overlaps.a[e]
    _fill_pairs(match.covered, overlaps.a[e], overlaps.b[e])

    clean = covers & (n_covered[overlaps.a] == 1) & (others[overlaps.b] == 0)
    match.node[overlaps.a[clean]] = overlaps.b[clean]
    match.detection[overlaps.b[clean]] = overlaps.a[clean]
    match.status[overlaps.a[clean]] = Status.MATCHED

    only_here = n_covered[overlaps.a] == (covers).astype(np.int64)
    together = np.bincount(overlaps.b[inside], weights=share_b[inside], minlength=m) > COVERED
    strangers = np.bincount(overlaps.b[(covers & ~inside) | (inside & ~only_here)], minlength=m)
    cut = (n_inside >= 2) & together & (strangers == 0)
    e = np.flatnonzero(inside & cut[overlaps.b])
    match.status[overlaps.a[e]] = Status.PIECE
    _fill_pairs(match.pieces, overlaps.b[e], overlaps.a[e])

    touched = np.bincount(overlaps.a, weights=share_a, minlength=n) >= TOUCHED
    seen = np.bincount(overlaps.b, weights=share_b, minlength=m) >= TOUCHED
    match.missed[:] = ~seen
    match.status[~touched & (match.status == Status.UNCLEAR)] = Status.FALSE
    return match


def _fill_pairs(pairs: Index, owner: Index, member: Index) -> None:
    """Write the two members of every owner that has exactly two, in ascending order."""
    order = np.lexsort((member, owner))
    owner, member = owner[order], member[order]
    owners, first, counts = np.unique(owner, return_index=True, return_counts=True)
    two = counts == 2
    pairs[owners[two], 0] = member[first[two]]
    pairs[owners[two], 1] = member[first[two] + 1]


def _empty(n: int, m: int) -> Match:
    return Match(
        node=np.full(n, -1, dtype=np.int64),
        status=np.full(n, Status.UNCLEAR, dtype=np.int8),
        detection=np.full(m, -1, dtype=np.int64),
        region=np.full(m, -1, dtype=np.int64),
        covered=np.full((n, 2), -1, dtype=np.int64),
        pieces=np.full((m, 2), -1, dtype=np.int64),
        missed=np.zeros(m, dtype=bool),
    )


def _by_distance(detections: Detections, truth: Tracks) -> Match:
    scale = truth.geometry.scale_array
    axes = list(truth.geometry.axes)
    here = detections.table[axes].to_numpy(dtype=np.float64) * scale
    there = truth.nodes[axes].to_numpy(dtype=np.float64) * scale
    match = _empty(len(here), len(there))
    if len(here) == 0 or len(there) == 0:
        match.missed[:] = True
        match.status[:] = Status.FALSE
        return match
    true_frame = truth.nodes["frame"].to_numpy(dtype=np.int64)
    reach = matching_radius(there, true_frame)
    # Time as one more axis, with frames farther apart than any reach.
    frames = 4 * reach + 1.0
    a = cKDTree(np.column_stack([here, detections.frame * frames]))
    b = cKDTree(np.column_stack([there, true_frame * frames]))
    distance, nearest_true = b.query(a.data, distance_upper_bound=2 * reach)
    gap, nearest_here = a.query(b.data, distance_upper_bound=2 * reach)
    i = np.flatnonzero(distance <= reach)
    i = i[nearest_here[nearest_true[i]] == i]
    match.node[i] = nearest_true[i]
    match.detection[nearest_true[i]] = i
    match.status[i] = Status.MATCHED
    match.missed[:] = ~np.isfinite(gap)
    match.status[~np.isfinite(distance)] = Status.FALSE
    return match


@dataclass(frozen=True)
class _Graph:
    """The true graph by rows; -1 where there is no such cell."""

    frame: Index
    child: Index  # only child of which this is the only parent
    later: Index  # that, where it is in the next frame
    before: Index  # the same backwards
    n_children: Index
    n_parents: Index
    src: Index
    tgt: Index


def true_events(detections: Detections, truth: Tracks, match: Match) -> Events:
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
      last frame.
    - *false*: the status is ``FALSE``.

    Whatever involves an unclear detection, three or more cells at once, a cell lost for longer,
    or a division seen too early or too late, is left out. No slot (fate or history of a
    detection) is settled twice.

    Parameters
    ----------
    detections, truth, match
        What `match_detections` was given and returned.
    """
    graph, seen = _graph(truth), match.detection
    after, before = _at(seen, graph.later), _at(seen, graph.before)
    region = np.flatnonzero(match.covered[:, 0] >= 0)
    one, two = match.covered[region].T
    cut = np.flatnonzero(match.pieces[:, 0] >= 0)
    pieces = list(match.pieces[cut].T)
    mothers, daughters = _divisions(graph)
    end = np.asarray(graph.frame == truth.geometry.n_frames - 1)
    found = [
        _known(Event.MOVE, [seen], [after]),
        _known(Event.MOVE, [region], [_still_together(graph, match, one, two)]),
        _known(Event.DIVIDE, [seen[mothers]], list(seen[daughters].T)),
        _known(Event.SPLIT, [region], [after[one], after[two]]),
        _known(Event.MERGE, [before[one], before[two]], [region]),
        _known(Event.SPLIT, [before[cut]], pieces),
        _known(Event.MERGE, pieces, [after[cut]]),
        _known(Event.SKIP, [seen], [_after_a_gap(graph, match)]),
        _known(Event.APPEAR, [], [seen[(graph.n_parents == 0) & (graph.frame > 0)]]),
        _known(Event.DISAPPEAR, [seen[(graph.n_children == 0) & ~end]], []),
        _known(Event.FALSE, [np.flatnonzero(match.status == Status.FALSE)], []),
    ]
    events = Events.join(found)
    return events.take(np.lexsort((events.targets[:, 0], events.sources[:, 0], events.event)))


def _graph(truth: Tracks) -> _Graph:
    src, tgt = edge_rows(truth.nodes, truth.edges, "the ground truth")
    n = len(truth.nodes)
    n_children, n_parents = np.bincount(src, minlength=n), np.bincount(tgt, minlength=n)
    single = (n_children[src] == 1) & (n_parents[tgt] == 1)
    frame = truth.nodes["frame"].to_numpy(dtype=np.int64)
    child, later, before = (np.full(n, -1, dtype=np.int64) for _ in range(3))
    child[src[single]] = tgt[single]
    near = single & (frame[tgt] == frame[src] + 1)
    later[src[near]], before[tgt[near]] = tgt[near], src[near]
    return _Graph(frame, child, later, before, n_children, n_parents, src, tgt)


def _known(event: Event, sources: list[Index], targets: list[Index]) -> Events:
    """Events all of whose cells are known; of two on a side, the lower row comes first."""
    known = np.all([cells >= 0 for cells in (*sources, *targets)], axis=0)
    sides = ([cells[known] for cells in side] for side in (sources, targets))
    return Events.of_kind(event, *(list(np.sort(side, axis=0)) for side in sides))


def _at(values: Index, index: Index) -> Index:
    return np.where(index >= 0, values[index], -1)


def _still_together(graph: _Graph, match: Match, one: Index, two: Index) -> Index:
    """The detection that covers the next of both cells and nothing else, -1 where none does."""
    later = _at(match.region, graph.later[one])
    same = later == _at(match.region, graph.later[two])
    return np.where(same & (_at(match.covered[:, 0], later) >= 0), later, -1)


def _divisions(graph: _Graph) -> tuple[Index, Index]:
    """Cells with exactly two children, of which they are the only parent, in the next frame."""
    mothers = np.flatnonzero(graph.n_children == 2)
    order = np.lexsort((graph.tgt, graph.src))
    daughters = graph.tgt[order[graph.n_children[graph.src[order]] == 2]].reshape(-1, 2)
    good = (graph.frame[daughters] == graph.frame[mothers][:, None] + 1).all(axis=1)
    good &= (graph.n_parents[daughters] == 1).all(axis=1)
    return mothers[good], daughters[good]


def _after_a_gap(graph: _Graph, match: Match) -> Index:
    """The detection of what every true cell becomes after frames in which it is not seen."""
    here = graph.child
    for _ in range(MAX_MISSED):
        lost = (here >= 0) & match.missed[here]
        here = np.where(lost, graph.child[here], here)
    gap = graph.frame[here] - graph.frame
    good = (here >= 0) & (gap > 1) & (gap <= MAX_MISSED + 1)
    return np.where(good, _at(match.detection, here), -1)
