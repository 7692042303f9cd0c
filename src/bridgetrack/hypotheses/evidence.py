"""What is known of a movie before any event is proposed: detections, motion, overlaps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.labels import Foreground, foreground, shifted_overlap
from bridgetrack.detections.table import Detections, equivalent_diameter
from bridgetrack.hypotheses.missed import Missed, find_missed
from bridgetrack.hypotheses.motion import Motion, motion_steps
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.spread import THREADS, spread


@dataclass(frozen=True)
class Evidence:
    """Evidence from which hypotheses and features are made.

    Parameters
    ----------
    detections, motion
        The cells and how they move.
    predicted
        Where every cell is expected in the next frame, shape (n, ndim), in the movie's unit. Here
        and below the next frame is that after the dark where all is dark, see `lit_frames`.
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
    """What it takes to compare frames: labels, rows of every frame, and shifts in pixels."""

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
        """Overlaps of frames t and t + 1 where one is empty, or both are known; else None.

        They are known where neither was changed and the cells move as before.
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
