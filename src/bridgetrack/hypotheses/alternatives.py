"""Events among candidate regions, many of which exclude each other.

Comparisons between the cells of a frame (motion, mutual neighbours, nearest ones) must not compare
a region with its own alternatives. Motion is therefore taken from a first choice of regions,
matches are made by distance and size together, and every region gets as many proposals as would be
needed if each neighbour stood there several times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections, equivalent_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.motion import Motion, estimate_motion
from bridgetrack.hypotheses.near import best_per_row, nearest, neighbours, pairs_within
from bridgetrack.regions.regions import Regions

_NEAR, _MOVES, _BACK = 16, 8, 4
"""Later regions looked at per region; moves kept per earlier and per later region."""
_DAUGHTERS, _DIVISIONS = 10, 5
"""Regions of which pairs of daughters are formed, and pairs kept, per region."""
_GROWN = 1.2
"""A daughter has at most this many times the area of its mother."""


def alternative_evidence(detections: Detections, regions: Regions, likely: Mask) -> Evidence:
    """Evidence about candidate regions, before any event is proposed.

    Parameters
    ----------
    detections
        The regions measured, one row each in the same order; frames count from 0.
    regions
        Their pixels.
    likely
        A first choice of regions that do not overlap, shape (R,).
    """
    guess = Detections(
        detections.table[likely].reset_index(drop=True), detections.geometry, detections.channels
    )
    motion = estimate_motion(guess)
    predicted = detections.position + _flow(detections, guess, motion)
    n = len(detections)
    following, previous = np.full((2, n), -1, dtype=np.int64)
    ahead, back = np.full((2, n), np.inf)
    keys, pixels = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    size = np.log(equivalent_diameter(detections))
    for here, there in _frame_pairs(detections):
        gate = 4.0 * motion.diameter
        near = neighbours(predicted[here], detections.position[there], _NEAR, gate)
        i, j, distance = nearest(near, _NEAR)
        i, j = i + here.start, j + there.start
        cost = distance / motion.diameter + np.abs(size[i] - size[j])
        mutual = np.intersect1d(best_per_row(i, cost, 1), best_per_row(j, cost, 1))
        i, j, distance = i[mutual], j[mutual], distance[mutual]
        following[i], previous[j] = j, i
        ahead[i] = back[j] = distance
        shift = (predicted[here] - detections.position[here]) / detections.geometry.scale_array
        shared = _pixels(regions, here, shift) @ _pixels(regions, there).T
        shared = shared.tocoo()
        keys.append((shared.row + here.start).astype(np.int64) * n + shared.col + there.start)
        pixels.append(shared.data.astype(np.float64))
    key, count = np.concatenate(keys), np.concatenate(pixels)
    order = np.argsort(key, kind="stable")
    overlaps = key[order], count[order]
    return Evidence(detections, motion, predicted, following, previous, ahead, back, *overlaps)


def propose_alternatives(evidence: Evidence, conflicts: sp.csr_matrix) -> Events:
    """Events of candidate regions: moves, divisions, appearances, disappearances, false detections.

    Alternatives replace splits and merges, and a cell that is missed in a frame is found among its
    regions, so neither these nor skips are proposed.

    Parameters
    ----------
    evidence
        See `alternative_evidence`.
    conflicts
        Regions that share a pixel, shape (R, R).
    """
    detections, motion = evidence.detections, evidence.motion
    gate = motion.reach
    area = detections.table["area"].to_numpy(dtype=np.float64)
    size = np.log(area) / detections.geometry.ndim
    parts = [
        Events.of_kind(Event.FALSE, [np.arange(len(detections))]),
        Events.of_kind(Event.APPEAR, [], [np.flatnonzero(detections.frame > 0)]),
        Events.of_kind(
            Event.DISAPPEAR, [np.flatnonzero(detections.frame < detections.geometry.n_frames - 1)]
        ),
    ]
    for here, there in _frame_pairs(evidence.detections):
        before, after = evidence.predicted[here], detections.position[there]
        i, j, distance = nearest(neighbours(before, after, 2 * _NEAR, gate), 2 * _NEAR)
        i, j = i + here.start, j + there.start
        near = distance / motion.diameter
        shared = evidence.overlap(i, j) / (area[i] + area[j])
        cost = near + np.abs(size[i] - size[j]) - 2.0 * shared
        kept = np.union1d(best_per_row(i, cost, _MOVES), best_per_row(j, cost, _BACK))
        parts.append(Events.of_kind(Event.MOVE, [i[kept]], [j[kept]]))
        small = np.flatnonzero(area[j] < _GROWN * area[i])
        small = small[best_per_row(i[small], near[small] - shared[small], _DAUGHTERS)]
        mother, a, b = pairs_within(i[small], j[small])
        if not len(mother):
            continue
        apart = np.asarray(conflicts[a, b]).ravel() == 0
        mother, a, b = mother[apart], a[apart], b[apart]
        kept = best_per_row(mother, _division_cost(evidence, area, mother, a, b), _DIVISIONS)
        parts.append(Events.of_kind(Event.DIVIDE, [mother[kept]], [a[kept], b[kept]]))
    return Events.join(parts).unique()


def _division_cost(evidence: Evidence, area: Array, mother: Index, a: Index, b: Index) -> Array:
    """How little two regions look like the halves of a third."""
    position, diameter = evidence.detections.position, evidence.motion.diameter
    centre = evidence.predicted[mother]
    middle = np.linalg.norm((position[a] + position[b]) / 2 - centre, axis=1) / diameter
    gap = np.linalg.norm(position[a] - position[b], axis=1) / diameter
    growth = np.abs(np.log((area[a] + area[b]) / area[mother]))
    uneven = np.abs(np.log(area[a] / area[b]))
    return np.asarray(middle + 0.3 * gap + 0.5 * growth + 0.5 * uneven)


def _frame_pairs(detections: Detections) -> Iterator[tuple[slice, slice]]:
    """Rows of neighbouring frames that both hold something."""
    cuts = detections.offsets.tolist()
    for a, b, c in zip(cuts, cuts[1:], cuts[2:], strict=False):
        if a < b < c:
            yield slice(a, b), slice(b, c)


def _flow(detections: Detections, guess: Detections, motion: Motion) -> Array:
    """Shift of every region to the next frame: that of the nearest likely one, shape (n, ndim)."""
    flow = np.zeros_like(detections.position)
    position, known = detections.position, guess.position
    for t, pair in enumerate(motion.pairs):
        here, there = detections.rows(t), guess.rows(t)
        if there.start == there.stop:
            flow[here] = pair.drift
            continue
        _, place = cKDTree(known[there]).query(position[here])
        flow[here] = pair.flow[place]
    return flow


def _pixels(regions: Regions, rows: slice, shift: Array | None = None) -> sp.csr_matrix:
    """Regions × pixels of a frame, shifted by whole pixels, without those that leave the frame."""
    starts = regions.starts[rows.start : rows.stop + 1]
    flat = regions.pixels[starts[0] : starts[-1]]
    owner = np.repeat(np.arange(rows.stop - rows.start), np.diff(starts))
    if shift is not None:
        place = np.stack(np.unravel_index(flat, regions.shape), axis=1)
        place = place + np.rint(shift).astype(np.int64)[owner]
        inside = ((place >= 0) & (place < np.asarray(regions.shape))).all(axis=1)
        flat, owner = np.ravel_multi_index(tuple(place[inside].T), regions.shape), owner[inside]
    shape = (rows.stop - rows.start, regions.n_pixels)
    return sp.csr_matrix((np.ones(len(flat), np.float32), (owner, flat)), shape)
