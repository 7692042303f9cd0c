"""Features of appearances, disappearances, skips and false detections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.features.feature import Feature
from bridgetrack.features.move import ones
from bridgetrack.features.view import View
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]


def _nearest(v: View, rows: NDArray[np.int64], forward: bool) -> Array:
    """Distance to the nearest cell of the neighbouring frame after prediction, diameters."""
    detections = v.evidence.detections
    points = v.evidence.predicted if forward else v.position
    others = v.position if forward else v.evidence.predicted
    out = np.full(len(rows), 5.0)
    frame = detections.frame[rows]
    for t in np.unique(frame):
        there = detections.rows(int(t) + (1 if forward else -1))
        mine = np.flatnonzero(frame == t)
        if there.stop > there.start:
            out[mine] = cKDTree(others[there]).query(points[rows[mine]])[0] / v.diameter
    return np.minimum(out, 5.0)


def _nearest_before(v: View) -> Array:
    return _nearest(v, v.target, forward=False)


def _nearest_after(v: View) -> Array:
    return _nearest(v, v.source, forward=True)


def _best_overlap(v: View, rows: NDArray[np.int64], forward: bool) -> Array:
    """Largest overlap with a cell of the neighbouring frame over the own area."""
    n = len(v.area)
    best = np.zeros(n)
    key = v.evidence.overlap_key
    own = key // n if forward else key % n
    np.maximum.at(best, own, v.evidence.overlap_pixels / v.area[own])
    return np.asarray(best[rows])


def _lone(
    event: Event, cell: Callable[[View], NDArray[np.int64]], forward: bool, which: str
) -> tuple[Feature, ...]:
    feature = partial(Feature, event)
    return (
        feature("bias", "1", "1", ones),
        feature(
            "border",
            "exp(-distance to the frame's edge / cell diameter)",
            "1",
            lambda v: v.cells.border[cell(v)],
        ),
        feature(
            "nearest",
            f"distance to the nearest cell of the {which} frame, at most 5",
            "diameters",
            _nearest_after if forward else _nearest_before,
        ),
        feature(
            "unmatched",
            f"1 without a mutual nearest neighbour in the {which} frame",
            "1",
            lambda v: (v.cells.childless if forward else v.cells.orphan)[cell(v)],
        ),
        feature(
            "size",
            "log area over the movie's median, within +-3",
            "1",
            lambda v: v.cells.relative_size[cell(v)],
        ),
        feature(
            "covered",
            f"largest overlap with a cell of the {which} frame over the own area",
            "1",
            lambda v: _best_overlap(v, cell(v), forward),
            "mask",
        ),
        feature(
            "brightness",
            "robust z-score of the mean in its frame",
            "sd",
            lambda v: v.cells.brightness[cell(v)],
            "image",
        ),
    )


APPEAR = _lone(Event.APPEAR, lambda v: v.target, False, "previous")
"""Features of an appearance, in the order of its weights."""

DISAPPEAR = _lone(Event.DISAPPEAR, lambda v: v.source, True, "next")
"""Features of a disappearance, in the order of its weights."""


def _gap(v: View) -> Array:
    frame = v.evidence.detections.frame
    return (frame[v.target] - frame[v.source] - 2).astype(np.float64)


def _ahead(v: View) -> Array:
    """Observed to expected position some frames on, in diameters, at most 5."""
    shift = v.position[v.target] - v.evidence.expected(v.source, v.target)
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


_skip = partial(Feature, Event.SKIP)

SKIP = (
    _skip("bias", "1", "1", ones),
    _skip(
        "distance",
        "d = |observed - predicted position, carried on by the drift| / cell diameter, at most 5",
        "diameters",
        _ahead,
    ),
    _skip(
        "distance_steps",
        "log(1 + d * diameter / median residual motion)",
        "1",
        lambda v: np.log1p(_ahead(v) * v.diameter / v.step),
    ),
    _skip("gap", "missed frames beyond the first", "frames", _gap),
    _skip(
        "size_change",
        "|log(later area / earlier area)|, at most 3",
        "1",
        lambda v: np.abs(v.change(v.cells.size)),
    ),
    _skip(
        "level_change",
        "|change of asinh(2 mean / movie median)|",
        "1",
        lambda v: np.abs(v.change(v.cells.level)),
        "image",
    ),
)
"""Features of a skip, in the order of its weights."""

_false = partial(Feature, Event.FALSE)

FALSE = (
    _false("bias", "1", "1", ones),
    _false(
        "size",
        "log area over the movie's median, within +-3",
        "1",
        lambda v: v.cells.relative_size[v.source],
    ),
    _false(
        "orphan",
        "1 without a mutual nearest neighbour before",
        "1",
        lambda v: v.cells.orphan[v.source],
    ),
    _false(
        "childless",
        "1 without a mutual nearest neighbour after",
        "1",
        lambda v: v.cells.childless[v.source],
    ),
    _false(
        "brightness",
        "robust z-score of the mean in its frame",
        "sd",
        lambda v: v.cells.brightness[v.source],
        "image",
    ),
)
"""Features of a false detection, in the order of its weights."""
