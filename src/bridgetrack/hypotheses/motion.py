"""Motion in a movie: global drift, local flow, and the scale of the residual motion.

Between two frames a shift common to all cells is found by voting, then refined around every
cell by the median motion of its neighbours. Everything after this works on *predicted*
positions, so that a drifting stage or a growing colony does no harm.

In narrow channels, as in a mother machine, no cell overtakes another. Cells that grow push all
those beyond them, so that a cell far from the closed end moves by more than its length and is
nearest to the former place of another. Their order tells them apart, and their sizes, which add up
if a cell divides.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.hypotheses.near import mutual_neighbours
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.spread import THREADS

_NEIGHBOURS = 8
_ROUNDS = 4
_CLEAR, _UNIQUE = 0.2, 2.0
"""A shift must be ahead of the second-best one by this share of its votes plus this many standard
deviations."""
MAX_GAP = 3
"""Largest number of frames from a cell to where it is seen again (2 = one missed frame)."""
_DARK = 0.2
"""A dark frame has at most this share of the cells of the lit ones before and after it."""
_AT_ONCE = 8
"""Pairs of frames between two reports of progress, at which the work can be cancelled."""


@dataclass(frozen=True)
class PairMotion:
    """Motion from one frame to the next that is lit, in the movie's unit."""

    drift: Array  # shift common to the frame, shape (ndim,)
    flow: Array  # predicted shift of every cell, drift included, shape (n, ndim)
    match: Index  # mutual nearest neighbour after the flow in the later frame, or -1, shape (n,)
    residual: Array  # distance between predicted and matched position, NaN where unmatched


@dataclass(frozen=True)
class Motion:
    """Motion of a movie and its scales, in the movie's unit."""

    pairs: tuple[PairMotion, ...]  # one entry per frame t, from t to ``following[t]``
    following: Index  # the next frame that is lit, see `lit_frames`, shape (T,)
    diameter: float  # median cell diameter
    step: float  # median residual motion of matched cells, never below 2 % of the diameter
    discs: float = 1.0  # diameter over that of a disc of a cell's area; not 1 for unknown areas

    @property
    def reach(self) -> float:
        """How far from its predicted position a cell is looked for."""
        return 2.5 * self.diameter + 8.0 * self.step

    @property
    def previous(self) -> Index:
        """The frame whose cells are expected in every frame, shape (T,); -1 before the first."""
        frames = np.arange(len(self.following))
        out = frames - 1
        np.minimum.at(out, self.following[:-1], frames[:-1])
        return out

    @property
    def travelled(self) -> Array:
        """Shift common to each frame since the first one, shape (T, ndim).

        Motion during dark frames is distributed evenly.
        """
        previous, ndim = self.previous, len(self.pairs[0].drift) if self.pairs else 1
        steps = np.zeros((len(previous), ndim))
        for t, (pair, lit) in enumerate(zip(self.pairs, self.following.tolist(), strict=False)):
            if previous[lit] == t:
                steps[t + 1 : lit + 1] = pair.drift / (lit - t)
        return np.cumsum(steps, axis=0)


def lit_frames(detections: Detections) -> Index:
    """The frame with which every frame is compared, the next one or that after the dark, (T,).

    In a dark frame nearly all cells are missing that are there before and after it, e.g. because
    the lamp failed; up to two may follow each other.
    """
    count = np.diff(detections.offsets)
    following = np.arange(1, len(count) + 1)
    for gap in range(2, MAX_GAP + 1):
        for t in range(len(count) - gap):
            lit = min(count[t], count[t + gap])
            if lit and max(count[t + 1 : t + gap]) <= _DARK * lit:
                following[t] = t + gap
    return following


def _voted_drift(before: Array, after: Array, reach: float, tolerance: float) -> Array:
    """Shift that most pairs of cells agree on, shape (ndim,); zero unless it is the only one.

    In a regular array a shift by a row has nearly as many votes as the true one, and of few cells
    some agree by chance: the second-best shift must have fewer votes by more than chance.
    """
    ndim = before.shape[1]
    zero = np.zeros(ndim)
    if len(before) < 5 or len(after) < 5:
        return zero
    k = min(8, len(after))
    distance, neighbour = cKDTree(after).query(before, k=k, distance_upper_bound=reach)
    inside = np.isfinite(distance)
    rows = np.nonzero(inside)[0]
    shifts = after[neighbour[inside]] - before[rows]
    if len(shifts) < 5:
        return zero
    tree = cKDTree(shifts)
    none = tree.query_ball_point(zero, tolerance, return_length=True)
    sample = shifts[:: max(1, len(shifts) // 1500)]
    votes = tree.query_ball_point(sample, tolerance, return_length=True)
    best = int(votes.max(initial=0))
    if best < 1.25 * none + 3:
        return zero
    agreeing = tree.query_ball_point(sample[int(np.argmax(votes))], tolerance)
    drift = np.median(shifts[agreeing], axis=0)
    elsewhere = np.linalg.norm(sample - drift, axis=1) > 2 * tolerance
    second = int(votes[elsewhere].max(initial=0))
    chance = np.sqrt(best * max(1 - best / min(len(before), len(after)), 0))
    clear = best - second > _CLEAR * best + _UNIQUE * chance
    return np.asarray(drift) if clear else zero


def _local_flow(before: Array, after: Array, match: Index, drift: Array) -> Array:
    """Median shift of the nearest matched neighbours, shrunk to the drift where they disagree."""
    flow = np.broadcast_to(drift, before.shape).copy()
    matched = np.flatnonzero(match >= 0)
    k = min(_NEIGHBOURS + 1, len(matched))
    if k < 5:
        return flow
    shift = after[match[matched]] - before[matched]
    _, neighbour = cKDTree(before[matched]).query(before, k=k)
    own = matched[neighbour] == np.arange(len(before))[:, None]
    around = np.where(own[:, :, None], np.nan, shift[neighbour])
    local = np.nanmedian(around, axis=1)
    spread = np.nanmedian(np.abs(around - local[:, None]), axis=1)
    noise = (1.5 * spread) ** 2 / (k - 1)
    signal = (local - drift) ** 2
    weight = np.clip(1.0 - 2.0 * noise.sum(axis=1) / np.maximum(signal.sum(axis=1), 1e-12), 0, 1)
    return np.asarray(drift + weight[:, None] * (local - drift))


def pair_motion(
    before: Array, after: Array, diameter: float, spacing: float, flow: Array | None = None
) -> PairMotion:
    """Estimate the motion between two frames.

    Parameters
    ----------
    before, after
        Positions in the movie's unit, shapes (n, ndim) and (m, ndim).
    diameter, spacing
        Typical cell diameter and distance to the nearest neighbour.
    flow
        Shift of every cell where it is known, shape (n, ndim).
    """
    reach = 4.0 * max(diameter, spacing)
    if flow is not None:
        match, residual = mutual_neighbours(before + flow, after, reach)
        return PairMotion(np.zeros(before.shape[1]), flow, match, residual)
    drift = _voted_drift(before, after, reach, 0.35 * min(diameter, spacing))
    flow = np.broadcast_to(drift, before.shape).copy()
    match, residual = mutual_neighbours(before + flow, after, reach)
    for _ in range(_ROUNDS):
        flow = _local_flow(before, after, match, drift)
        again, residual = mutual_neighbours(before + flow, after, reach)
        if (again == match).all():
            break
        match = again
    return PairMotion(drift, flow, match, residual)


def _spacing(detections: Detections, position: Array, diameter: float) -> float:
    """Median distance to the nearest neighbour over all frames."""
    frames = [(a, b) for a, b in pairwise(detections.offsets.tolist()) if b - a > 1]
    if not frames:
        return 4.0 * diameter

    def nearest(points: Array) -> Array:
        return np.asarray(cKDTree(points).query(points, k=2)[0][:, 1])

    return max(float(np.median(np.concatenate([nearest(position[a:b]) for a, b in frames]))), 1e-6)


def estimate_motion(detections: Detections) -> Motion:
    """Estimate the motion of a whole movie at once, see `motion_steps`."""
    return run(motion_steps(detections))


def motion_steps(detections: Detections) -> Steps[Motion]:
    """Estimate the motion of a whole movie, frame pair by frame pair."""
    position = detections.position
    diameter = cell_diameter(detections)
    spacing, discs = _spacing(detections, position, diameter), 1.0
    area = detections.table["area"]
    if not detections.has_masks and not (len(area) and area.max() > area.min()):
        diameter, discs = 0.7 * spacing, 0.7 * spacing / diameter
    rows, following = Rows.of(detections), lit_frames(detections)

    def pair(t: int) -> PairMotion:
        before, after = (position[detections.rows(k)] for k in (t, following[t]))
        known = None if rows is None else rows.shifts(t, int(following[t]))
        return pair_motion(before, after, diameter, spacing, known)

    with ThreadPoolExecutor(THREADS) as pool:  # search trees are queried in parallel
        pairs: list[PairMotion] = []
        last = detections.geometry.n_frames - 1
        for t in range(0, last, _AT_ONCE):
            pairs += pool.map(pair, range(t, min(t + _AT_ONCE, last)))
            yield Progress("Comparing frames", 0.0)
    residual = np.concatenate([np.zeros(0), *(p.residual for p in pairs)])
    finite = residual[np.isfinite(residual)]
    step = float(np.median(finite)) if len(finite) else 0.1 * diameter
    step = max(step, 0.02 * diameter)
    return Motion(tuple(pairs), following, diameter, step, discs)


# --- rows of cells in narrow channels ---------------------------------------------------------

_LEAST = 3
"""Cells that a row has, on average over the frames that hold any."""
_TOUCHING = 1.1
"""Cells of a row lie at most so many of their lengths apart."""
_SPREAD, _UNEVEN = 0.12, 0.3
"""Standard deviations of the logarithm of growth, and of the daughters' ratio."""
_DIVIDES, _WORST, _LEAVES, _NEW = 0.7, 2.5, 0.4, 3.0
"""Costs of a division, of a size (at most), of leaving at either end, and of any other loss."""
_SHIFT = 0.15
"""Cost of a shift by a cell's length: rows do not move without a reason."""


@dataclass(frozen=True)
class Rows:
    """The cells of a movie, all of which lie in narrow rows."""

    detections: Detections
    row: Index  # in which row every cell lies, shape (n,)
    axis: int  # along which rows run

    @classmethod
    def of(cls, detections: Detections) -> Rows | None:
        """The rows of a movie; None unless all its cells lie in rows and nearly touch."""
        table = detections.table
        if detections.geometry.ndim != 2 or "major" not in table.columns or len(table) < _LEAST:
            return None
        position, diameter = detections.position, cell_diameter(detections)
        length = table["major"].to_numpy(dtype=np.float64)
        for axis in (0, 1):
            across = position[:, 1 - axis]
            order = np.argsort(across, kind="stable")
            cuts = np.flatnonzero(np.diff(across[order]) > 0.5 * diameter) + 1
            if any(np.ptp(part) > diameter for part in np.split(across[order], cuts)):
                continue
            row = np.zeros(len(order), dtype=np.int64)
            row[order[cuts]] = 1
            row[order] = np.cumsum(row[order])
            place = np.lexsort((position[:, axis], row, detections.frame))
            one, two = place[:-1], place[1:]
            same = (row[one] == row[two]) & (detections.frame[one] == detections.frame[two])
            one, two = one[same], two[same]
            if len(place) < _LEAST * (len(place) - len(one)):
                continue
            apart = position[two, axis] - position[one, axis]
            if np.median(2 * apart / (length[one] + length[two])) < _TOUCHING:
                return cls(detections, row, axis)
        return None

    def shifts(self, t: int, later: int) -> Array:
        """Shifts of the cells of a frame to a later one, shape (n, ndim)."""
        here, there = self.detections.rows(t), self.detections.rows(later)
        shift = np.zeros((here.stop - here.start, 2))
        for row in np.unique(self.row[here]).tolist():
            (mine, before), (_, after) = (self._cells(rows, row) for rows in (here, there))
            shift[mine, self.axis] = row_shifts(before, after)
        return shift

    def _cells(self, rows: slice, row: int) -> tuple[Index, tuple[Array, Array]]:
        """Cells of a row in a frame in order, numbered in it, with their places and areas."""
        along = self.detections.position[rows, self.axis]
        area = self.detections.table["area"].to_numpy(dtype=np.float64)[rows]
        mine = np.flatnonzero(self.row[rows] == row)
        mine = mine[np.argsort(along[mine], kind="stable")]
        return mine, (along[mine], area[mine])


def row_shifts(before: tuple[Array, Array], after: tuple[Array, Array]) -> Array:
    """Shifts of the cells of a row along it, shape (n,).

    Parameters
    ----------
    before, after
        Places along the row, ascending, and areas, in one frame and the next, shapes (n,) and (m,).
    """
    growth, shifts = 0.0, np.zeros(len(before[0]))
    for _ in range(2):
        pairs = _aligned(before, after, growth)
        if not pairs:
            break
        grown = [np.log(after[1][j:k].sum() / before[1][i]) for i, j, k in pairs]
        growth = float(np.median(grown))
        known = np.array([i for i, _, _ in pairs])
        moved = [
            np.average(after[0][j:k], weights=after[1][j:k]) - before[0][i] for i, j, k in pairs
        ]
        shifts = np.interp(np.arange(len(shifts)), known, moved)
    return shifts


def _aligned(
    before: tuple[Array, Array], after: tuple[Array, Array], growth: float
) -> list[tuple[int, int, int]]:
    """Cells i of the best alignment, in order, each with its next ones j to k - 1.

    Dynamic programming over the first cells of both rows: the last of them leaves, goes on or
    divides, or is new.
    """
    (place, area), (there, size) = before, after
    n, m = len(place), len(there)
    length = float(np.median(np.diff(place))) if n > 1 else np.inf
    best, came = np.full((n + 1, m + 1), np.inf), np.zeros((n + 1, m + 1), dtype=np.int64)
    best[0, 0] = 0.0

    def cost(i: int, j: int, k: int) -> float:
        """Cost of cell i becoming the cells j to k - 1."""
        change = np.log(size[j:k].sum() / area[i]) - growth
        middle = np.average(there[j:k], weights=size[j:k])
        uneven = np.log(size[j] / size[k - 1])
        divides = 0.0 if k == j + 1 else _DIVIDES + min((uneven / _UNEVEN) ** 2 / 2, _WORST)
        known = min((change / _SPREAD) ** 2 / 2, _WORST) + divides
        return float(known + _SHIFT * abs(middle - place[i]) / length)

    for i, j in np.ndindex(n + 1, m + 1):
        options = [(best[i, j], int(came[i, j]))]
        if i:
            options.append((best[i - 1, j] + (_LEAVES if j in (0, m) else _NEW), 0))
            options += [(best[i - 1, j - k] + cost(i - 1, j - k, j), k) for k in (1, 2) if j >= k]
        if j:
            options.append((best[i, j - 1] + _NEW, -1))
        best[i, j], came[i, j] = min(options)
    pairs, i, j = [], n, m
    while i or j:
        k = int(came[i, j])
        i, j = (i, j - 1) if k < 0 else (i - 1, j - k)
        if k > 0:
            pairs.append((i, j, j + k))
    return pairs[::-1]
