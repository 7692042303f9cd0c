"""The features that models use unless told otherwise."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.features.feature import Feature, FeatureSet, feature_of
from bridgetrack.features.pairs import DIVIDE, MERGE, SPLIT
from bridgetrack.features.view import EventView, best_other, measure, ones, rank_within
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def default_features() -> FeatureSet:
    """All built-in features, sorted by event."""
    return FeatureSet((*MOVE, *DIVIDE, *SPLIT, *MERGE, *APPEAR, *DISAPPEAR, *SKIP, *FALSE))


def _distance(v: EventView) -> Array:
    return v.offset


def _distance_squared(v: EventView) -> Array:
    return np.minimum(v.offset, 3) ** 2


def _distance_steps(v: EventView) -> Array:
    return np.log1p(v.offset * v.diameter / v.step)


def _raw_distance(v: EventView) -> Array:
    shift = v.position[v.target] - v.position[v.source]
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


def _rank(cell: str, v: EventView) -> Array:
    """Rank of the distance among the moves of the same source or target."""
    return rank_within(getattr(v, cell), v.offset) / 3


def _rival(cell: str, v: EventView) -> Array:
    """Log ratio of the distance to that of the best other move of the same source or target."""
    own = v.offset + v.step / v.diameter
    other = best_other(getattr(v, cell), v.offset, 5.0) + v.step / v.diameter
    return np.clip(np.log(own / other), -3, 3)


def _mutual(v: EventView) -> Array:
    return (v.evidence.match_next[v.source] == v.target).astype(np.float64)


def _iou(v: EventView) -> Array:
    shared = v.evidence.overlap(v.source, v.target)
    return np.asarray(shared / (v.area[v.source] + v.area[v.target] - shared))


def _covered(v: EventView) -> Array:
    return v.shared(v.source, v.target)


def _growth(v: EventView) -> Array:
    return v.change(v.cells.size)


def _change(name: str, v: EventView) -> Array:
    """How much a measure changes, either way."""
    return np.abs(v.change(getattr(v.cells, name)))


def _rotation(v: EventView) -> Array:
    cosine = np.sum(v.cells.axis[v.source] * v.cells.axis[v.target], axis=1)
    weight = np.minimum(v.cells.elongation[v.source], v.cells.elongation[v.target])
    return np.asarray((1.0 - cosine**2) * weight)


_move = partial(feature_of, Event.MOVE)

MOVE = (
    _move("bias", "1", ones),
    _move(
        "distance",
        "d = |observed - predicted position| / cell diameter, at most 5",
        _distance,
        unit="diameters",
    ),
    _move("distance_squared", "min(d, 3)^2", _distance_squared, unit="diameters^2"),
    _move("distance_steps", "log(1 + d * diameter / median residual motion)", _distance_steps),
    _move(
        "raw_distance",
        "|shift without any prediction| / cell diameter, at most 5",
        _raw_distance,
        unit="diameters",
    ),
    _move(
        "rank_forward",
        "rank of d among the moves of the earlier cell / 3",
        partial(_rank, "source"),
    ),
    _move(
        "rank_backward", "rank of d among the moves to the later cell / 3", partial(_rank, "target")
    ),
    _move(
        "rival_forward",
        "log ratio of d to the best other move of the earlier cell",
        partial(_rival, "source"),
    ),
    _move(
        "rival_backward",
        "log ratio of d to the best other move to the later cell",
        partial(_rival, "target"),
    ),
    _move("mutual", "1 where the cells are each other's nearest after prediction", _mutual),
    _move("overlap", "intersection over union after the predicted shift", _iou),
    _move("covered", "intersection after shift over the smaller area", _covered),
    _move("growth", "log(later area / earlier area), within +-3", _growth),
    _move("size_change", "|growth|", partial(_change, "size")),
    _move(
        "shape_change",
        "|change of 1 - minor/major axis|",
        partial(_change, "elongation"),
        needs="mask",
    ),
    _move(
        "rotation",
        "sin^2 of the turn of the long axis times the smaller elongation",
        _rotation,
        needs="mask",
    ),
    _move(
        "level_change",
        "|change of asinh(2 mean / movie median)|",
        partial(_change, "level"),
        needs="image",
    ),
    _move(
        "source_brightness",
        "robust z-score of the earlier cell's mean in its frame",
        partial(measure, "source", "brightness"),
        unit="sd",
        needs="image",
    ),
)
"""Features of a move, in the order of its weights."""


def _nearest(cell: str, v: EventView) -> Array:
    """Distance to the nearest cell of the frame after a source or before a target, diameters."""
    detections, forward = v.evidence.detections, cell == "source"
    rows: Index = getattr(v, cell)
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


def _best_overlap(cell: str, v: EventView) -> Array:
    """Largest overlap with a cell of the frame after a source or before a target, over its area."""
    n, key = len(v.area), v.evidence.overlap_key
    own = key // n if cell == "source" else key % n
    best = np.zeros(n)
    np.maximum.at(best, own, v.evidence.overlap_pixels / v.area[own])
    rows: Index = getattr(v, cell)
    return np.asarray(best[rows])


def _lone_features(event: Event, cell: str, unmatched: str, which: str) -> tuple[Feature, ...]:
    feature, of_cell = partial(feature_of, event), partial(measure, cell)
    return (
        feature("bias", "1", ones),
        feature(
            "border",
            "exp(-distance to the frame's edge / cell diameter)",
            partial(of_cell, "border"),
        ),
        feature(
            "nearest",
            f"distance to the nearest cell of the {which} frame, at most 5",
            partial(_nearest, cell),
            unit="diameters",
        ),
        feature(
            "unmatched",
            f"1 without a mutual nearest neighbour in the {which} frame",
            partial(of_cell, unmatched),
        ),
        feature(
            "size",
            "log area over the movie's median, within +-3",
            partial(of_cell, "relative_size"),
        ),
        feature(
            "covered",
            f"largest overlap with a cell of the {which} frame over the own area",
            partial(_best_overlap, cell),
            needs="mask",
        ),
        feature(
            "brightness",
            "robust z-score of the mean in its frame",
            partial(of_cell, "brightness"),
            unit="sd",
            needs="image",
        ),
    )


APPEAR = _lone_features(Event.APPEAR, "target", "orphan", "previous")
"""Features of an appearance, in the order of its weights."""

DISAPPEAR = _lone_features(Event.DISAPPEAR, "source", "childless", "next")
"""Features of a disappearance, in the order of its weights."""


def _gap(v: EventView) -> Array:
    frame = v.evidence.detections.frame
    return (frame[v.target] - frame[v.source] - 2).astype(np.float64)


def _ahead(v: EventView) -> Array:
    """Observed to expected position some frames on, in diameters, at most 5."""
    shift = v.position[v.target] - v.evidence.expected(v.source, v.target)
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


def _ahead_steps(v: EventView) -> Array:
    return np.log1p(_ahead(v) * v.diameter / v.step)


_skip = partial(feature_of, Event.SKIP)

SKIP = (
    _skip("bias", "1", ones),
    _skip(
        "distance",
        "d = |observed - predicted position, carried on by the drift| / cell diameter, at most 5",
        _ahead,
        unit="diameters",
    ),
    _skip("distance_steps", "log(1 + d * diameter / median residual motion)", _ahead_steps),
    _skip("gap", "missed frames beyond the first", _gap, unit="frames"),
    _skip("size_change", "|log(later area / earlier area)|, at most 3", partial(_change, "size")),
    _skip(
        "level_change",
        "|change of asinh(2 mean / movie median)|",
        partial(_change, "level"),
        needs="image",
    ),
)
"""Features of a skip, in the order of its weights."""

_false = partial(feature_of, Event.FALSE)
_speck = partial(measure, "source")

FALSE = (
    _false("bias", "1", ones),
    _false(
        "size", "log area over the movie's median, within +-3", partial(_speck, "relative_size")
    ),
    _false(
        "border",
        "exp(-distance to the frame's edge / cell diameter)",
        partial(_speck, "border"),
        start=0.0,
    ),
    _false("orphan", "1 without a mutual nearest neighbour before", partial(_speck, "orphan")),
    _false("childless", "1 without a mutual nearest neighbour after", partial(_speck, "childless")),
    _false(
        "brightness",
        "robust z-score of the mean in its frame",
        partial(_speck, "brightness"),
        unit="sd",
        needs="image",
    ),
    _false(
        "contrast",
        "standard deviation over mean of its pixels, at most 3",
        partial(_speck, "contrast"),
        needs="image",
        start=0.0,
    ),
    _false(
        "roundness",
        "isoperimetric ratio, 1 for a disc",
        partial(_speck, "roundness"),
        needs="mask",
        start=0.0,
    ),
    _false(
        "elongation",
        "1 - minor/major axis",
        partial(_speck, "elongation"),
        needs="mask",
        start=0.0,
    ),
    _false(
        "touching",
        "share of its outline that touches other cells",
        partial(_speck, "touching"),
        needs="mask",
        start=0.0,
    ),
)
"""Features of a false detection, in the order of its weights."""
