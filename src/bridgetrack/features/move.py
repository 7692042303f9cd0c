"""Features of moves."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import Feature
from bridgetrack.features.view import View, best_other, rank_within
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]


def ones(v: View) -> Array:
    """The bias."""
    return np.ones(len(v.source))


def _rival(v: View, group: NDArray[np.int64]) -> Array:
    own = v.offset + v.step / v.diameter
    other = best_other(group, v.offset, 5.0) + v.step / v.diameter
    return np.clip(np.log(own / other), -3, 3)


def _iou(v: View) -> Array:
    shared = v.evidence.overlap(v.source, v.target)
    return np.asarray(shared / (v.area[v.source] + v.area[v.target] - shared))


def _raw_distance(v: View) -> Array:
    shift = v.position[v.target] - v.position[v.source]
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


def _rotation(v: View) -> Array:
    cosine = np.sum(v.cells.axis[v.source] * v.cells.axis[v.target], axis=1)
    weight = np.minimum(v.cells.elongation[v.source], v.cells.elongation[v.target])
    return np.asarray((1.0 - cosine**2) * weight)


def _mutual(v: View) -> Array:
    return (v.evidence.match_next[v.source] == v.target).astype(np.float64)


_move = partial(Feature, Event.MOVE)

MOVE = (
    _move("bias", "1", "1", ones),
    _move(
        "distance",
        "d = |observed - predicted position| / cell diameter, at most 5",
        "diameters",
        lambda v: v.offset,
    ),
    _move("distance_squared", "min(d, 3)^2", "diameters^2", lambda v: np.minimum(v.offset, 3) ** 2),
    _move(
        "distance_steps",
        "log(1 + d * diameter / median residual motion)",
        "1",
        lambda v: np.log1p(v.offset * v.diameter / v.step),
    ),
    _move(
        "raw_distance",
        "|shift without any prediction| / cell diameter, at most 5",
        "diameters",
        _raw_distance,
    ),
    _move(
        "rank_forward",
        "rank of d among the moves of the earlier cell / 3",
        "1",
        lambda v: rank_within(v.source, v.offset) / 3,
    ),
    _move(
        "rank_backward",
        "rank of d among the moves to the later cell / 3",
        "1",
        lambda v: rank_within(v.target, v.offset) / 3,
    ),
    _move(
        "rival_forward",
        "log ratio of d to the best other move of the earlier cell",
        "1",
        lambda v: _rival(v, v.source),
    ),
    _move(
        "rival_backward",
        "log ratio of d to the best other move to the later cell",
        "1",
        lambda v: _rival(v, v.target),
    ),
    _move("mutual", "1 where the cells are each other's nearest after prediction", "1", _mutual),
    _move("overlap", "intersection over union after the predicted shift", "1", _iou),
    _move(
        "covered",
        "intersection after shift over the smaller area",
        "1",
        lambda v: v.shared(v.source, v.target),
    ),
    _move(
        "growth",
        "log(later area / earlier area), within +-3",
        "1",
        lambda v: v.change(v.cells.size),
    ),
    _move("size_change", "|growth|", "1", lambda v: np.abs(v.change(v.cells.size))),
    _move(
        "shape_change",
        "|change of 1 - minor/major axis|",
        "1",
        lambda v: np.abs(v.change(v.cells.elongation)),
        "mask",
    ),
    _move(
        "rotation",
        "sin^2 of the turn of the long axis times the smaller elongation",
        "1",
        _rotation,
        "mask",
    ),
    _move(
        "level_change",
        "|change of asinh(2 mean / movie median)|",
        "1",
        lambda v: np.abs(v.change(v.cells.level)),
        "image",
    ),
    _move(
        "source_brightness",
        "robust z-score of the earlier cell's mean in its frame",
        "sd",
        lambda v: v.cells.brightness[v.source],
        "image",
    ),
)
"""Features of a move, in the order of its weights."""
