"""Which detection is which cell of the ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.evaluation.overlap import COVERED, CellIds, Overlaps, movie_overlaps
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Rows = NDArray[np.int64]

PIECE = 0.1
TOUCHED = 0.05


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
    node: Rows
    status: NDArray[np.int8]  # see `match_detections`, shape (n,), values of `Status`
    detection: Rows  # row of the one detection that a true cell is, -1 otherwise; shape (m,)
    region: Rows  # row of the detection that covers this and other true cells, else -1; shape (m,)
    # the two true cells that a merged detection covers, -1 for another number; shape (n, 2)
    covered: Rows
    # the two detections that a true cell is cut into, -1 for another number; shape (m, 2)
    pieces: Rows
    missed: NDArray[np.bool_]  # true cells that no detection touches, shape (m,)


def match_detections(
    detections: Detections,
    labels: Movie | None,
    truth: Tracks,
    truth_labels: Movie | None,
    *,
    radius: float | None = None,
    field_of_interest: float = 0.0,
) -> Match:
    """Match detections to true cells, by masks where both have them, else by centroids.

    By masks: a detection *covers* a true cell where it has more than half of its pixels (the
    criterion of Matula et al. 2015), and is *inside* one where that has more than half of the
    detection's pixels and this is a tenth of the true cell or more.

    - ``MATCHED``: covers exactly one true cell, inside which there is no other detection.
    - ``MERGED``: covers several.
    - ``PIECE``: inside a true cell in which there are other detections, covers no other cell,
      and all of them together cover the cell.
    - ``FALSE``: less than a twentieth of it lies in true cells, its centroid lies in the field
      of interest.
    - ``UNCLEAR``: anything else. A true cell is *missed* where less than a twentieth of it is
      covered by anything.

    By centroids: ``MATCHED`` where detection and true cell are each other's nearest within
    `radius`, ``FALSE`` where no true cell is within twice that.

    Parameters
    ----------
    detections, labels
        The detections and the masks they came from (None where there are none).
    truth, truth_labels
        The truth and its whole-cell masks. With small markers in their place cut cells cannot
        be told, and whatever misses the marker counts as false.
    radius
        In ``geometry.unit``; by default half of the median distance between neighbouring true
        cells.
    field_of_interest
        Width of the band along the frame's edge, in pixels, in which the truth leaves cells out:
        unmatched detections there are ``UNCLEAR``.

    Raises
    ------
    InputError
        Where the movies differ in shape or dimension.
    """
    if detections.geometry.ndim != truth.geometry.ndim:
        raise InputError(
            f"the detections are {detections.geometry.ndim}D, the ground truth is "
            f"{truth.geometry.ndim}D"
        )
    if labels is not None and truth_labels is not None:
        overlaps = movie_overlaps(
            CellIds(detections.frame, detections.label, labels), _truth_cells(truth, truth_labels)
        )
        match, untouched = _by_overlap(overlaps)
    else:
        match, untouched = _by_distance(detections, truth, radius)
    inside = ~in_border_band(detections, field_of_interest, truth.geometry.shape)
    match.status[untouched & inside] = Status.FALSE
    return match


def _truth_cells(truth: Tracks, labels: Movie) -> CellIds:
    frame = truth.nodes["frame"].to_numpy(dtype=np.int64)
    return CellIds(frame, truth.nodes["label"].to_numpy(dtype=np.int64), labels)


def in_border_band(
    detections: Detections, width: float, shape: tuple[int, ...] | None
) -> NDArray[np.bool_]:
    """Detections whose centroid is within `width` pixels of an edge along y or x, shape (n,).

    The depth is left out: a field of interest is a frame around the image.
    """
    if width <= 0:
        return np.zeros(len(detections), dtype=bool)
    shape = detections.geometry.shape or shape
    if shape is None:
        raise InputError("a field of interest needs the extent of the frames; give the shape")
    pixels = detections.table[["y", "x"]].to_numpy(dtype=np.float64)
    far_edge = np.asarray(shape[-2:], dtype=np.float64) - 1 - pixels
    return np.asarray(np.minimum(pixels, far_edge).min(axis=1) < width)


def _by_overlap(overlaps: Overlaps) -> tuple[Match, NDArray[np.bool_]]:
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
    return match, ~touched & (match.status == Status.UNCLEAR)


def _fill_pairs(pairs: Rows, owner: Rows, member: Rows) -> None:
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


def _by_distance(
    detections: Detections, truth: Tracks, radius: float | None
) -> tuple[Match, NDArray[np.bool_]]:
    scale = truth.geometry.scale_array
    axes = list(truth.geometry.axes)
    here = detections.table[axes].to_numpy(dtype=np.float64) * scale
    there = truth.nodes[axes].to_numpy(dtype=np.float64) * scale
    match = _empty(len(here), len(there))
    if len(here) == 0 or len(there) == 0:
        match.missed[:] = True
        return match, np.ones(len(here), dtype=bool)
    true_frame = truth.nodes["frame"].to_numpy(dtype=np.int64)
    reach = matching_radius(there, true_frame) if radius is None else radius
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
    return match, ~np.isfinite(distance)


def matching_radius(points: NDArray[np.float64], frame: Rows) -> float:
    """Half of the median distance between a cell and its nearest neighbour in the frame."""
    if len(points) < 2:
        return 1.0
    span = float(np.ptp(points, axis=0).max()) * 2 * points.shape[1] + 1.0
    tree = cKDTree(np.column_stack([points, frame * span]))
    distance = tree.query(tree.data, k=2, distance_upper_bound=span)[0][:, 1]
    distance = distance[np.isfinite(distance) & (distance > 0)]
    return float(np.median(distance)) / 2 if len(distance) else 1.0
