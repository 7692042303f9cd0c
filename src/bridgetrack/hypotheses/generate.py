"""Propose events for a movie, with gates and limits that the movie itself sets.

Skips and false detections tie neighbouring frame pairs together, so they are proposed only where no
direct event is plausible: components must not grow through the movie.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, equivalent_diameter, median_diameter
from bridgetrack.hypotheses.events import EVERYTHING, Event, EventKinds, Events, active_slots
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.motion import Motion, mutual_neighbours
from bridgetrack.spread import THREADS

LAST_RESORT = frozenset((Event.APPEAR, Event.DISAPPEAR))
"""Without events of these kinds there may be no choice at all."""
_TINY, _SPECK, _SMALL = 0.45, 0.55, 0.65
"""Diameters over the median below which a cell may be a speck: where it is badly explained, where
its mask lies within the frame, and in any case."""
_SPECK_SHARE, _SMALL_SHARE = 0.1, 0.02
"""Of all cells, how many of the latter two are proposed at most."""


MAX_GAP = 3
"""Largest number of frames a skip bridges (2 = one missed frame)."""
_SKIP_SHARE = 0.02
"""Skips proposed, as a share of all cells; the nearest are kept."""
LONELY, _NEARER = 2.0, 0.6
"""A skip has no rival where other cells are so many diameters away, and it is so much shorter."""
_MOVES, _BACK = 4, 2
"""Nearest later cells per earlier cell, and nearest earlier ones per later cell, so that every cell
has a history."""
_DAUGHTERS = 6
"""Nearest later cells of which pairs are formed for divisions and splits."""
_DIVISIONS, _SPLITS, _MERGES = 5, 2, 2
"""Pairs kept per cell, the geometrically most plausible first."""

_MIDDLE, _APART, _ADD_UP, _GROWN, _ALIKE = 0.2, 0.92, np.log(1.75), np.log(1.25), np.log(1.35)
"""How much late daughters look like halves: diameters between mother and midpoint, and at least
from one to the other; logarithms of the factors by which both may be smaller or larger than the
mother, and one larger than the other."""

Near = tuple[Array, Index]
"""Distances from every cell to its nearest ones of another frame, the nearest first and infinite
beyond a gate, and their rows; shapes (n, k)."""


def neighbours(points: Array, others: Array, k: int, gate: float) -> Near:
    """The k nearest others of every point."""
    k = min(k, len(others))
    if not k:
        return np.zeros((len(points), 0)), np.zeros((len(points), 0), dtype=np.int64)
    distance, neighbour = cKDTree(others).query(points, k=k, distance_upper_bound=gate)
    return distance.reshape(len(points), k), neighbour.reshape(len(points), k).astype(np.int64)


def nearest(near: Near, k: int) -> tuple[Index, Index, Array]:
    """The k nearest neighbours within the gate, as (row, neighbour, distance) triplets."""
    distance, neighbour = near[0][:, :k], near[1][:, :k]
    rows, columns = np.nonzero(np.isfinite(distance))
    return rows, neighbour[rows, columns], distance[rows, columns]


def neighbour_pairs(near: Near, k: int) -> tuple[Index, Index, Index]:
    """All unordered pairs among the k nearest of every point: (point, a, b), a < b."""
    distance, neighbour = near[0][:, :k], near[1][:, :k]
    one, two = np.triu_indices(distance.shape[1], 1)
    there = np.isfinite(distance)
    rows, pair = np.nonzero(there[:, one] & there[:, two])
    a, b = neighbour[rows, one[pair]], neighbour[rows, two[pair]]
    return rows, np.minimum(a, b), np.maximum(a, b)


def best_per_row(rows: Index, cost: Array, keep: int) -> Index:
    """Positions of the `keep` cheapest entries of every row, in input order."""
    order = np.lexsort((cost, rows))
    sorted_rows = rows[order]
    first = np.r_[True, sorted_rows[1:] != sorted_rows[:-1]][: len(order)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    return np.sort(order[np.arange(len(order)) - start < keep])


@dataclass(frozen=True)
class _Pair:
    """Two frames: positions, areas, where their rows start, and pairs that overlap much."""

    predicted: Array
    after: Array
    area_before: Array
    area_after: Array
    start: int
    next_start: int
    overlapping: tuple[Index, Index]


def generate_hypotheses(
    evidence: Evidence,
    required: Events | None = None,
    kinds: EventKinds = EVERYTHING,
) -> Events:
    """Propose the events of a movie.

    Parameters
    ----------
    evidence
        What is known of the movie.
    required
        Events that annotations name; they are always included.
    kinds
        What can happen; appearances and disappearances are proposed in any case.

    Returns
    -------
    Events
        Sorted by event, then by the rows named; each once, and none without an active slot.
    """
    rare = rare_events(evidence)
    frames = range(evidence.detections.geometry.n_frames)
    proposed = events_between(evidence, frames, rare, kinds)
    events = proposed if required is None else proposed.with_others(required)
    covered = events.touching(active_slots(evidence.detections))
    return events if covered.all() else events.take(covered)


def cell_reach(motion: Motion) -> float:
    """How far from its predicted position a cell is looked for."""
    return 2.5 * motion.diameter + 8.0 * motion.step


def rare_events(evidence: Evidence) -> Events:
    """Skips, late divisions and false detections, of which there are few in a whole movie."""
    i, j, _ = skip_pairs(evidence)
    false = Events.of_kind(Event.FALSE, [false_detections(evidence)])
    return Events.join([late_divisions(evidence), Events.of_kind(Event.SKIP, [i], [j]), false])


def events_between(
    evidence: Evidence,
    frames: range,
    rare: Events,
    kinds: EventKinds = EVERYTHING,
) -> Events:
    """The events of a movie that name cells of some frames alone.

    Parameters
    ----------
    evidence
        What is known of the movie.
    frames
        Successive frames.
    rare
        See `rare_events`.
    kinds
        See `generate_hypotheses`.

    Returns
    -------
    Events
        Sorted as by `generate_hypotheses`; some may have no active slot.
    """
    motion = evidence.motion
    gate = cell_reach(motion)

    def direct(pair: _Pair) -> list[Events]:
        return [e.unique() for e in _direct_events(pair, gate, motion.diameter)]

    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(direct, _pairs(evidence, frames)))
    offsets = evidence.detections.offsets
    first, last = offsets[frames.start], offsets[frames.stop]
    within = (rare.sources[:, 0] >= first) & (rare.sources[:, 0] < last)
    others = rare.take(within & (rare.targets.max(axis=1) < last)).unique()
    late = others.of(Event.DIVIDE)
    # Sorted pair by pair, and kind by kind: sorting all at once would take longer than the rest.
    by_kind = [Events.join(found) for found in zip(*parts, strict=True)]
    if len(late) and by_kind:
        by_kind[Event.DIVIDE] = by_kind[Event.DIVIDE].with_others(others.take(late))
        others = others.take(others.event != Event.DIVIDE)
    found = Events.join([*by_kind, others])
    if not np.isin(others.event, (Event.SKIP, Event.FALSE)).all():  # what annotations name
        found = found.unique()
    absent = kinds.absent - LAST_RESORT
    return found.take(~np.isin(found.event, list(absent))) if absent else found


def _pairs(evidence: Evidence, frames: range) -> Iterator[_Pair]:
    """Neighbouring frames with what the proposals need."""
    detections = evidence.detections
    position, offsets, n = detections.position, detections.offsets, max(len(detections), 1)
    area = detections.table["area"].to_numpy(dtype=np.float64)
    source, target = evidence.overlap_key // n, evidence.overlap_key % n
    strong = evidence.overlap_pixels > 0.25 * np.minimum(area[source], area[target])
    source, target = source[strong], target[strong]
    bounds = np.searchsorted(source, offsets)
    for t in frames[:-1]:
        a, b, c = int(offsets[t]), int(offsets[t + 1]), int(offsets[t + 2])
        part = slice(bounds[t], bounds[t + 1])
        overlapping = source[part] - a, target[part] - b
        before, after = evidence.predicted[a:b], position[b:c]
        yield _Pair(before, after, area[a:b], area[b:c], a, b, overlapping)


def _direct_events(pair: _Pair, gate: float, diameter: float) -> list[Events]:
    """The events of one frame pair but skips and false detections, kind by kind."""
    n, m, start, then = len(pair.predicted), len(pair.after), pair.start, pair.next_start
    ahead = neighbours(pair.predicted, pair.after, max(_MOVES, _DAUGHTERS), gate)
    back = neighbours(pair.after, pair.predicted, max(_BACK, _DAUGHTERS), gate)
    i, j = _move_pairs(ahead, back, pair.overlapping)
    # Divisions and splits: one earlier cell, two later ones. Merges: the same, seen backwards.
    areas = pair.area_before, pair.area_after
    whole, a, b, cost, one = _triplets((pair.predicted, pair.after), areas, ahead, diameter)
    divide = best_per_row(whole, cost, _DIVISIONS)
    split = one[best_per_row(whole[one], cost[one], _SPLITS)]
    region, c, d, cost, one = _triplets((pair.after, pair.predicted), areas[::-1], back, diameter)
    merge = one[best_per_row(region[one], cost[one], _MERGES)]
    return [
        Events.of_kind(Event.MOVE, [i + start], [j + then]),
        Events.of_kind(Event.DIVIDE, [whole[divide] + start], [a[divide] + then, b[divide] + then]),
        Events.of_kind(Event.SPLIT, [whole[split] + start], [a[split] + then, b[split] + then]),
        Events.of_kind(Event.MERGE, [c[merge] + start, d[merge] + start], [region[merge] + then]),
        Events.of_kind(Event.APPEAR, [], [np.arange(m) + then]),
        Events.of_kind(Event.DISAPPEAR, [np.arange(n) + start]),
    ]


def _move_pairs(ahead: Near, back: Near, overlapping: tuple[Index, Index]) -> tuple[Index, Index]:
    """Candidate moves: near from either side, or overlapping."""
    i1, j1, _ = nearest(ahead, _MOVES)
    j2, i2, _ = nearest(back, _BACK)
    i = np.concatenate([i1, i2, overlapping[0]])
    j = np.concatenate([j1, j2, overlapping[1]])
    width = max(len(back[0]), 1)
    key = np.unique(i * width + j)
    return key // width, key % width


def _triplets(
    points: tuple[Array, Array],
    areas: tuple[Array, Array],
    near: Near,
    diameter: float,
) -> tuple[Index, Index, Index, Array, Index]:
    """A cell and two cells of the other frame: rows (3), cost, and which could be one cell cut.

    The cost says how little two cells look like the halves of one: their midpoint is off, or
    their sizes do not add up.
    """
    whole, a, b = neighbour_pairs(near, _DAUGHTERS)
    point = points[0].T[:, whole]
    one, two = (points[1].T[:, rows] for rows in (a, b))
    growth = (areas[1][a] + areas[1][b]) / areas[0][whole]
    middle = _length((one + two) / 2 - point) / diameter
    closest = np.minimum(_length(one - point), _length(two - point))
    size = np.abs(np.log(growth))
    gap = _length(one - two)
    cost = middle + 0.5 * closest / diameter + 0.5 * size + 0.3 * (gap / diameter)
    # Pieces of one cell lie close together and add up to about the whole.
    pieces = np.flatnonzero((gap < 1.5 * diameter) & (size < np.log(2.0)))
    return whole, a, b, np.asarray(cost), pieces


def _length(vectors: Array) -> Array:
    """Lengths of vectors, shape (ndim, n); faster than numpy's norm over so few entries."""
    return np.asarray(np.sqrt(sum(axis * axis for axis in vectors)))


# --- skips and false detections ---------------------------------------------------------------


def _plausible(evidence: Evidence) -> tuple[Mask, Mask]:
    """Whether every cell has a plausible direct successor and predecessor, shapes (n,)."""
    reach = max(4.0 * evidence.motion.step, 0.5 * evidence.motion.diameter)
    size = np.log(np.maximum(equivalent_diameter(evidence.detections), 1e-9))
    size = size * evidence.detections.geometry.ndim

    def similar(match: Index, residual: Array) -> Mask:
        change = np.abs(size[np.maximum(match, 0)] - size)
        return np.asarray((match >= 0) & (residual <= reach) & (change < np.log(2.0)))

    return (
        similar(evidence.match_next, evidence.residual_next),
        similar(evidence.match_previous, evidence.residual_previous),
    )


def skip_pairs(evidence: Evidence) -> tuple[Index, Index, Mask]:
    """Cells lost in one frame and found again a few frames later.

    Only cells of similar size, and no more than a small share of all cells, the nearest first.
    Those do not count that tie nothing together: skips over frames without any cell, and skips
    between cells that are nearer to each other than to any other cell.

    Returns
    -------
    source, target
        Rows, shapes (S,).
    unrivalled
        Where no other explanation is nearly as near, shape (S,).
    """
    followed, preceded = _plausible(evidence)
    detections, motion = evidence.detections, evidence.motion
    offsets, position = detections.offsets, detections.position
    n_frames, reach = detections.geometry.n_frames, cell_reach(motion)
    empty = np.zeros(0, dtype=np.int64)
    found = [(empty, empty, np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))]
    room = np.full(len(detections), np.nan)  # known once a cell is a candidate
    for t in range(n_frames - 2):
        lost = offsets[t] + np.flatnonzero(~followed[offsets[t] : offsets[t + 1]])
        here = evidence.predicted[lost]
        for gap in range(2, min(MAX_GAP, n_frames - 1 - t) + 1):
            here = here + motion.pairs[t + gap - 1].drift
            rows = slice(offsets[t + gap], offsets[t + gap + 1])
            new = rows.start + np.flatnonzero(~preceded[rows])
            match, residual = mutual_neighbours(here, position[new], reach)
            k = np.flatnonzero(match >= 0)
            i, j, away = lost[k], new[match[k]], residual[k]
            alone = np.minimum(_room(evidence, i, room, 1), _room(evidence, j, room, -1))
            blank = np.full(len(k), offsets[t + 1] == offsets[t + gap])
            unrivalled = blank | (alone > LONELY * motion.diameter)
            unrivalled &= away < _NEARER * alone
            near = away <= 0.6 * motion.diameter + 3.0 * motion.step * np.sqrt(gap)
            kept = near | unrivalled
            cost = away + 0.3 * gap * motion.diameter
            found.append(tuple(x[kept] for x in (i, j, cost, blank, unrivalled)))
    source, target, cost, blank, unrivalled = map(np.concatenate, zip(*found, strict=True))
    size = np.log(np.maximum(equivalent_diameter(detections), 1e-9))
    change = np.abs(size[source] - size[target]) * detections.geometry.ndim
    similar, free = change < np.log(2.5), blank | unrivalled
    counted = np.flatnonzero(similar & ~free)
    most = max(3, int(_SKIP_SHARE * len(detections)))
    best = counted[np.argsort(cost[counted], kind="stable")[:most]]
    keep = np.append(np.flatnonzero(similar & free), best)
    return source[keep], target[keep], unrivalled[keep]


def late_divisions(evidence: Evidence) -> Events:
    """Divisions of which a daughter, or both, are not drawn in the first frame.

    Only where nothing else explains the late daughters, and where two cells look much like halves
    of the mother: on either side of it, of about the same size, which add up to it.
    """
    followed, preceded = _plausible(evidence)
    detections, motion = evidence.detections, evidence.motion
    position, area = detections.position, detections.table["area"].to_numpy(dtype=np.float64)
    reach, found = 1.5 * motion.diameter, [Events.join([])]
    for t in range(detections.geometry.n_frames - 2):
        mothers, there = detections.rows(t), detections.rows(t + 2)
        new = there.start + np.flatnonzero(~preceded[there])
        if not len(new) or mothers.start == mothers.stop:
            continue
        expected = evidence.predicted[mothers] + motion.pairs[t + 1].drift
        lost = np.flatnonzero(~followed[mothers])
        both, c, d = neighbour_pairs(neighbours(expected[lost], position[new], 4, reach), 4)
        b, one, _ = nearest(neighbours(position[new], expected, 4, reach), 4)
        mother = np.append(lost[both], one) + mothers.start
        first = np.append(new[c], evidence.match_next[one + mothers.start])
        second = np.append(new[d], new[b])
        seen = first >= 0
        mother, first, second = mother[seen], first[seen], second[seen]
        middle = (position[first] + position[second]) / 2
        off = np.linalg.norm(middle - expected[mother - mothers.start], axis=1)
        # Or the daughter that is seen first may be the mother.
        after = evidence.match_next[first]
        usual = (position[after] + position[second]) / 2 - evidence.predicted[first]
        rival = np.where(after < 0, np.inf, np.linalg.norm(usual, axis=1))
        rival[detections.frame[first] == t + 2] = np.inf
        grown = np.log((area[first] + area[second]) / area[mother])
        good = (off < _MIDDLE * motion.diameter) & (off < 0.5 * rival)
        good &= (rival > _MIDDLE * motion.diameter) & (grown > -_ADD_UP) & (grown < _GROWN)
        apart = np.linalg.norm(position[first] - position[second], axis=1)
        good &= apart > _APART * motion.diameter
        good &= np.abs(np.log(area[first] / area[second])) < _ALIKE
        rows = np.sort(np.stack([first[good], second[good]]), axis=0)
        found.append(Events.of_kind(Event.DIVIDE, [mother[good]], [*rows]))
    return Events.join(found).unique()


def _room(evidence: Evidence, rows: Index, known: Array, step: int) -> Array:
    """Distance from cells of a frame to the nearest other one there and beside it, shape of rows.

    Beside it is the next frame for step 1, the previous one for -1; `known` keeps what was found.
    """
    missing = rows[np.isnan(known[rows])]
    if len(missing):
        detections, position = evidence.detections, evidence.detections.position
        points, others = position, evidence.predicted
        if step > 0:
            points, others = others, points
        t = int(detections.frame[missing[0]])
        (own, _), (beside, _) = (
            neighbours(position[missing], position[detections.rows(t)], 2, np.inf),
            neighbours(points[missing], others[detections.rows(t + step)], 1, np.inf),
        )
        known[missing] = np.concatenate([own[:, 1:], beside], axis=1).min(axis=1, initial=np.inf)
    return known[rows]


def false_detections(evidence: Evidence) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so small ones are proposed even where neighbours in time explain them, but no
    more than a share of all cells, the smallest first: a tenth, as in masks that the program makes
    of phase contrast, and fewer of those that the edge of the frame may have cut, or that are
    hardly smaller than others.
    """
    detections = evidence.detections
    if not len(detections):
        return np.zeros(0, dtype=np.int64)
    followed, preceded = _plausible(evidence)
    relative = equivalent_diameter(detections) / median_diameter(detections)
    lost = (relative < _TINY) & ~(followed & preceded)
    alone = np.flatnonzero(lost | (~followed & ~preceded))
    small = np.flatnonzero(relative < _SMALL)
    small = small[np.argsort(relative[small], kind="stable")]
    specks = small[_within(detections)[small] & (relative[small] < _SPECK)]
    specks = specks[: int(_SPECK_SHARE * len(detections))]
    smallest = small[: max(3, int(_SMALL_SHARE * len(detections)))]
    return np.union1d(alone, np.union1d(smallest, specks))


def _within(detections: Detections) -> Mask:
    """Which cells have a mask that does not touch the edge of the frame, shape (n,)."""
    if not detections.has_masks or "border_distance" not in detections.table.columns:
        return np.zeros(len(detections), dtype=bool)
    return np.asarray(detections.table["border_distance"].to_numpy() > 0)
