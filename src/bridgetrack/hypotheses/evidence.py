"""Evidence about a movie, from which events are proposed: detections, motion, overlaps.

Also cells that are missed for a frame or two, daughters that are segmented late, and detections
that may be no cells. Events of these tie neighbouring frame pairs together, so they are proposed
only where no direct event is plausible: components must not grow through the movie.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.labels import Foreground, foreground, shifted_overlap
from bridgetrack.detections.table import Detections, cell_diameter, equivalent_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.motion import MAX_GAP, Motion, motion_steps
from bridgetrack.hypotheses.near import (
    Links,
    links,
    mutual_neighbours,
    nearest,
    neighbour_pairs,
    neighbours,
)
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.spread import THREADS, spread


@dataclass(frozen=True)
class Missed:
    """Events of cells that are not seen in every frame.

    Parameters
    ----------
    events
        Divisions of which a daughter is late, cells that are found again a few frames later, and
        detections that may be no cells.
    goes_on, returns
        Whether a cell that is lost is seen again, or one that is new was seen before, up to some
        frames away and with no other explanation nearly as near; shape (n,).
    """

    events: Events
    goes_on: Mask
    returns: Mask


@dataclass(frozen=True)
class Evidence:
    """Evidence from which hypotheses and features are made.

    Parameters
    ----------
    detections, motion
        The cells and how they move.
    predicted
        Where every cell is expected in the next frame, shape (n, ndim), in the movie's unit. Here
        and below, dark frames are skipped, see `lit_frames`.
    match_next, match_previous
        Row of the mutual nearest neighbour after the flow in the next and the previous frame,
        -1 where there is none; shape (n,).
    residual_next, residual_previous
        Distance to it, infinite where there is none; shape (n,).
    overlap_key, overlap_pixels
        Pixels shared by a shifted cell i and a cell j of the next frame, for
        ``key = i * n + j``, ascending; empty without masks.
    """

    detections: Detections
    motion: Motion
    predicted: Array
    match_next: Index
    match_previous: Index
    residual_next: Array
    residual_previous: Array
    overlap_key: Index
    overlap_pixels: Array

    @cached_property
    def missed(self) -> Missed:
        """Events of cells that are not seen in every frame."""
        return find_missed(self)

    def overlap(self, i: Index, j: Index) -> Array:
        """Shared area of shifted cell i and cell j of the next frame, in pixels, shape of i.

        Without masks, cells are taken for discs or balls of their area.
        """
        if not self.detections.has_masks:
            return _disc_overlap(self, i, j)
        if not len(self.overlap_key):
            return np.zeros(len(i))
        key = i * len(self.detections) + j
        place = np.minimum(np.searchsorted(self.overlap_key, key), len(self.overlap_key) - 1)
        return np.where(self.overlap_key[place] == key, self.overlap_pixels[place], 0.0)

    def expected(self, i: Index, j: Index) -> Array:
        """Where cells i are expected in the frames of the later cells j, shape (h, ndim).

        Beyond the next frame, a cell is taken to move with the drift.
        """
        frame, travelled = self.detections.frame, self.motion.travelled
        known = self.motion.following[frame[i]]
        return np.asarray(self.predicted[i] + travelled[frame[j]] - travelled[known])

    def nearest(self, rows: Index, step: int) -> Array:
        """Distance from cells to the nearest other one of a frame, infinite without, shape of rows.

        Of their own frame for step 0, of the next one for 1, of the previous one for -1.
        """
        detections, motion = self.detections, self.motion
        same = np.arange(detections.geometry.n_frames)
        beside = (same, motion.following, motion.previous)[step]
        points = self.predicted if step > 0 else detections.position
        others = self.predicted if step < 0 else detections.position
        frame, out = detections.frame[rows], np.full(len(rows), np.inf)
        for t in np.unique(frame):
            there, mine = detections.rows(beside[t]), np.flatnonzero(frame == t)
            if there.stop - there.start > (step == 0):
                tree = cKDTree(others[there])
                out[mine] = tree.query(points[rows[mine]], k=[2 if step == 0 else 1])[0][:, 0]
        return out


Known = tuple[Evidence, Collection[int]]
Overlaps = tuple[Index, Array]
"""`Evidence.overlap_key` and `overlap_pixels`."""
_AT_ONCE = 8
"""Frames that are compared one after another; the first of them is read twice."""


def _disc_overlap(evidence: Evidence, i: Index, j: Index) -> Array:
    """Shared area of two discs, taken as linear between touching and covering.

    Where all areas are unknown, the discs have the diameter that the motion goes by.
    """
    detections = evidence.detections
    radius = equivalent_diameter(detections) / 2 * evidence.motion.discs
    area = detections.table["area"].to_numpy(dtype=np.float64)
    distance = np.linalg.norm(evidence.predicted[i] - detections.position[j], axis=1)
    small = np.minimum(radius[i], radius[j])
    depth = (radius[i] + radius[j] - distance) / np.maximum(2 * small, 1e-12)
    return np.asarray(np.clip(depth, 0, 1) * np.minimum(area[i], area[j]))


@dataclass(frozen=True)
class _Frames:
    """Data for comparing frames: labels, rows of every frame, and shifts in pixels."""

    labels: Movie
    offsets: Index
    label: Index
    shift: Array
    known: Known | None

    def cells(self, t: int) -> Foreground:
        """The cells of a frame."""
        return foreground(label_frame(self.labels, t))

    def compare(self, t: int, before: Foreground, after: Foreground) -> Overlaps:
        """Overlaps of the cells of frame t and of the next."""
        first, then, stop = (int(k) for k in self.offsets[t : t + 3])
        i = np.searchsorted(self.label[first:then], before.labels) + first
        j = np.searchsorted(self.label[then:stop], after.labels) + then
        k, m, pixels = shifted_overlap(before, after, self.shift[i])
        return i[k] * len(self.label) + j[m], pixels.astype(np.float64)

    def without_reading(self, t: int) -> Overlaps | None:
        """Overlaps of frames t and t + 1 if one is empty or they are known already; else None.

        They are known if neither frame was changed and the cells move as before.
        """
        first, then, stop = (int(k) for k in self.offsets[t : t + 3])
        if then in (first, stop):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self.known is None or {t, t + 1} & set(self.known[1]):
            return None
        before = self.known[0]
        old, n, n_old = before.detections, len(self.label), len(before.detections)
        here = slice(int(old.offsets[t]), int(old.offsets[t + 1]))
        moved = (before.predicted[here] - old.position[here]) / old.geometry.scale_array
        # Overlaps are of cells shifted by whole pixels.
        if not np.array_equal(np.rint(moved), np.rint(self.shift[first:then])):
            return None
        low, high = np.searchsorted(before.overlap_key, [here.start * n_old, here.stop * n_old])
        i, j = np.divmod(before.overlap_key[low:high], n_old)
        i, j = i + (first - old.offsets[t]), j + (then - old.offsets[t + 1])
        return i * n + j, before.overlap_pixels[low:high]


def _compare(movie: _Frames, frames: range) -> Overlaps:
    """Overlaps of some successive frames with the next ones; the first alone is read anew."""
    keys, pixels = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    before: Foreground | None = None
    for t in frames:
        found, after = movie.without_reading(t), None
        if found is None:
            after = movie.cells(t + 1)
            found = movie.compare(t, movie.cells(t) if before is None else before, after)
        before = after
        order = np.argsort(found[0], kind="stable")
        keys.append(found[0][order])
        pixels.append(found[1][order])
    return np.concatenate(keys), np.concatenate(pixels)


def gather_evidence(
    detections: Detections,
    labels: Movie | None = None,
    known: Known | None = None,
    client: Any = None,
) -> Steps[Evidence]:
    """Collect the evidence of a movie.

    Parameters
    ----------
    detections
        The cells.
    labels
        Label movie the detections came from; None for tables, which are taken for discs.
    known
        Evidence of the same movie before some frames of it were changed, and these frames: the
        others are read only where their cells are expected to move otherwise than before.
    client
        A dask client, over whose cluster frames are compared; this process where None.

    Yields
    ------
    Progress

    Returns
    -------
    Evidence
    """
    yield begin("Comparing frames")
    motion = yield from motion_steps(detections)
    offsets, n = detections.offsets, len(detections)
    predicted = detections.position.copy()
    following, previous = np.full(n, -1), np.full(n, -1)
    ahead, back = np.full(n, np.inf), np.full(n, np.inf)
    for t, pair in enumerate(motion.pairs):
        predicted[offsets[t] : offsets[t + 1]] += pair.flow
        matched = np.flatnonzero(pair.match >= 0)
        here, there = matched + offsets[t], pair.match[matched] + offsets[motion.following[t]]
        following[here], previous[there] = there, here
        ahead[here] = back[there] = pair.residual[matched]
    keys, pixels = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    if labels is not None and detections.has_masks:
        shift = (predicted - detections.position) / detections.geometry.scale_array
        movie = _Frames(labels, offsets, detections.label, shift, known)
        last = labels.n_frames - 1
        runs = [range(t, min(t + _AT_ONCE, last)) for t in range(0, last, _AT_ONCE)]
        for k, part in enumerate(spread(_compare, movie, runs, client, THREADS)):
            keys.append(part[0])
            pixels.append(part[1])
            yield Progress("Comparing frames", (k + 1) / len(runs))
    overlaps = np.concatenate(keys), np.concatenate(pixels)
    return Evidence(detections, motion, predicted, following, previous, ahead, back, *overlaps)


# --- cells that are missed, late daughters, and what may be no cell ----------------------------

_SMALL = 0.6
"""Diameter over the median below which a cell may be a speck."""
_NEAREST = 4
"""Cells after dark frames that are considered for each one before, and the other way round."""
_NEARER, _BEYOND = 0.6, 1.2
"""A skip has no rival if it is shorter than this share of the distance to the nearest other cell,
and by this many diameters."""
LONELY = 2.0
"""Diameters to the nearest other cell beyond which a cell is far from all others."""
_MIDDLE, _APART, _ADD_UP, _GROWN, _ALIKE = 0.2, 0.92, np.log(1.75), np.log(1.25), np.log(1.35)
"""How much late daughters look like halves: diameters between mother and midpoint, and at least
from one to the other; logarithms of the factors by which both may be smaller or larger than the
mother, and one larger than the other."""


def find_missed(evidence: Evidence) -> Missed:
    """The rare events of a whole movie."""
    followed, preceded = _plausible(evidence)
    before, after = _across_dark(evidence)
    source, target, unrivalled = _skip_pairs(evidence, followed, preceded)
    source, target = np.append(source, before), np.append(target, after)
    unrivalled = np.append(unrivalled, np.ones(len(before), dtype=bool))
    late = _late_divisions(evidence, followed, preceded)
    goes_on, returns = np.zeros((2, len(evidence.detections)), dtype=bool)
    goes_on[source[unrivalled]] = returns[target[unrivalled]] = True
    goes_on[late.sources[:, 0]] = returns[late.targets] = True
    skips = Events.of_kind(Event.SKIP, [source], [target])
    false = Events.of_kind(Event.FALSE, [_false_detections(evidence, followed, preceded)])
    return Missed(Events.join([late, skips, false]), goes_on, returns)


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


def _across_dark(evidence: Evidence) -> Links:
    """Cells before and after dark frames, proposed as widely as between neighbouring frames."""
    motion, found = evidence.motion, [np.zeros((2, 0), dtype=np.int64)]
    for t, lit in enumerate(motion.following[:-1].tolist()):
        if lit > t + 1:
            here, there = evidence.detections.rows(t), evidence.detections.rows(lit)
            before, after = evidence.predicted[here], evidence.detections.position[there]
            ahead = neighbours(before, after, _NEAREST, motion.reach)
            back = neighbours(after, before, _NEAREST, motion.reach)
            i, j = links(ahead, back)
            found.append(np.stack([i + here.start, j + there.start]))
    source, target = np.concatenate(found, axis=1)
    return source, target


def _skip_pairs(evidence: Evidence, followed: Mask, preceded: Mask) -> tuple[Index, Index, Mask]:
    """Cells missed for a frame or two in which other cells are seen.

    Only cells of similar size; the mask says which have no other explanation nearly as close.
    """
    detections, motion, found = evidence.detections, evidence.motion, [np.zeros((3, 0))]
    position, last, travelled = detections.position, len(motion.following) - 1, motion.travelled
    for t, lit in enumerate(motion.following[:-2].tolist()):
        here = detections.rows(t)
        lost = here.start + np.flatnonzero(~followed[here])
        for later in range(lit + 1, min(t + MAX_GAP, last) + 1):
            there = detections.rows(later)
            new = there.start + np.flatnonzero(~preceded[there])
            expected = evidence.predicted[lost] + travelled[later] - travelled[lit]
            match, away = mutual_neighbours(expected, position[new], motion.reach)
            k = np.flatnonzero(match >= 0)
            found.append(np.stack([lost[k], new[match[k]], away[k]]))
    rows, away = np.split(np.concatenate(found, axis=1), [2])
    source, target = rows.astype(np.int64)
    size = np.log(np.maximum(equivalent_diameter(detections), 1e-9))
    similar = np.abs(size[source] - size[target]) * detections.geometry.ndim < np.log(2.5)
    source, target, away = source[similar], target[similar], away[0, similar]
    alone = np.minimum(_room(evidence, source, 1), _room(evidence, target, -1))
    beyond = alone - away > _BEYOND * motion.diameter
    return source, target, beyond & (away < _NEARER * alone)


def _late_divisions(evidence: Evidence, followed: Mask, preceded: Mask) -> Events:
    """Divisions of which one or both daughters are not segmented in the first frame.

    Only if nothing else explains the late daughters, and if the two cells look like halves of the
    mother: on either side of it, of about the same size, and together about as large.
    """
    detections, motion = evidence.detections, evidence.motion
    position, area = detections.position, detections.table["area"].to_numpy(dtype=np.float64)
    reach, found = 1.5 * motion.diameter, [Events.join([])]
    travelled = motion.travelled
    for t in range(detections.geometry.n_frames - 2):
        mothers, there = detections.rows(t), detections.rows(t + 2)
        new = there.start + np.flatnonzero(~preceded[there])
        if not len(new) or mothers.start == mothers.stop:
            continue
        shift = travelled[t + 2] - travelled[motion.following[t]]
        expected = evidence.predicted[mothers] + shift
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
        grown = np.log((area[first] + area[second]) / area[mother])
        good = (off < _MIDDLE * motion.diameter) & (grown > -_ADD_UP) & (grown < _GROWN)
        apart = np.linalg.norm(position[first] - position[second], axis=1)
        good &= apart > _APART * motion.diameter
        good &= np.abs(np.log(area[first] / area[second])) < _ALIKE
        rows = np.sort(np.stack([first[good], second[good]]), axis=0)
        found.append(Events.of_kind(Event.DIVIDE, [mother[good]], [*rows]))
    return Events.join(found).unique()


def _room(evidence: Evidence, rows: Index, step: int) -> Array:
    """Distance from cells to the nearest other one of their frame and of that beside it."""
    return np.minimum(evidence.nearest(rows, 0), evidence.nearest(rows, step))


def _false_detections(evidence: Evidence, followed: Mask, preceded: Mask) -> Index:
    """Rows of detections that nothing before or after explains, or that are oddly small.

    Specks persist, so small ones are proposed even where neighbours in time explain them.
    """
    detections = evidence.detections
    relative = equivalent_diameter(detections) / cell_diameter(detections)
    return np.flatnonzero((relative < _SMALL) | (~followed & ~preceded))
