"""Features of moves.

Features of divisions.

Features of splits (one cell cut in two) and merges (two cells drawn as one).

Features of appearances, disappearances, skips and false detections.

The features that models use unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.features.feature import Feature, FeatureSet
from bridgetrack.features.view import View, best_other, rank_within
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]


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


def daughters(v: View) -> tuple[Array, Array]:
    """Shift from the mother's predicted position to each daughter, in diameters."""
    return v.off(v.source, v.target), v.off(v.source, v.other_target)


def _middle(v: View) -> Array:
    one, two = daughters(v)
    return np.minimum(np.linalg.norm(one + two, axis=1) / 2, 5.0)


def _separation(v: View) -> Array:
    one, two = daughters(v)
    return np.minimum(np.linalg.norm(one - two, axis=1), 5.0)


def _far(v: View) -> Array:
    return np.maximum(v.offset, v.distance(v.source, v.other_target))


def _unevenness(v: View) -> Array:
    return np.abs(v.offset - v.distance(v.source, v.other_target))


def _angle(v: View) -> Array:
    one, two = daughters(v)
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((1.0 + np.sum(one * two, axis=1) / np.maximum(length, 1e-9)) / 2.0)


def _growth(v: View) -> Array:
    together = v.area[v.target] + v.area[v.other_target]
    return np.clip(np.log(together) - v.cells.size[v.source], -3, 3)


def _asymmetry(v: View, values: Array) -> Array:
    return np.minimum(np.abs(values[v.target] - values[v.other_target]), 3.0)


def _pair_mean(v: View, values: Array) -> Array:
    return np.asarray((values[v.target] + values[v.other_target]) / 2)


def _covered(v: View) -> Array:
    both = v.evidence.overlap(v.source, v.target) + v.evidence.overlap(v.source, v.other_target)
    return np.minimum(both / v.area[v.source], 1.0)


def _least_covered(v: View) -> Array:
    return np.minimum(v.shared(v.source, v.target), v.shared(v.source, v.other_target))


def _along(v: View) -> Array:
    one, two = daughters(v)
    apart = one - two
    length = np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
    cosine = np.abs(np.sum(apart * v.cells.axis[v.source], axis=1)) / length
    return np.asarray((cosine - 0.5) * v.cells.elongation[v.source])


def _brightness_gain(v: View) -> Array:
    gain = _pair_mean(v, v.cells.level) - v.cells.level[v.source]
    return np.clip(gain, -3, 3)


_divide = partial(Feature, Event.DIVIDE)

DIVIDE = (
    _divide("bias", "1", "1", ones),
    _divide(
        "middle",
        "|midpoint of the daughters - predicted mother| / cell diameter, at most 5",
        "diameters",
        _middle,
    ),
    _divide(
        "separation",
        "distance between the daughters / cell diameter, at most 5",
        "diameters",
        _separation,
    ),
    _divide(
        "far_daughter",
        "distance of the farther daughter from the predicted mother, at most 5",
        "diameters",
        _far,
    ),
    _divide("unevenness", "|difference of the daughters' distances|", "diameters", _unevenness),
    _divide(
        "angle",
        "(1 + cosine of the angle daughter-mother-daughter) / 2, 0 when opposite",
        "1",
        _angle,
    ),
    _divide("growth", "log(areas of the daughters / area of the mother), within +-3", "1", _growth),
    _divide("size_change", "|growth|", "1", lambda v: np.abs(_growth(v))),
    _divide(
        "size_asymmetry",
        "|log ratio of the daughters' areas|, at most 3",
        "1",
        lambda v: _asymmetry(v, v.cells.size),
    ),
    _divide(
        "daughter_size",
        "mean log area of the daughters over the movie's median",
        "1",
        lambda v: _pair_mean(v, v.cells.relative_size),
    ),
    _divide(
        "mother_size",
        "log area of the mother over the movie's median",
        "1",
        lambda v: v.cells.relative_size[v.source],
    ),
    _divide("covered", "share of the shifted mother that the daughters cover", "1", _covered),
    _divide(
        "least_covered",
        "smaller of the daughters' overlaps with the shifted mother",
        "1",
        _least_covered,
    ),
    _divide(
        "orphans",
        "daughters without a mutual nearest neighbour before, 0 to 2",
        "1",
        lambda v: 2 * _pair_mean(v, v.cells.orphan),
    ),
    _divide(
        "along_axis",
        "(|cosine of separation and mother's long axis| - 1/2) * elongation",
        "1",
        _along,
        "mask",
    ),
    _divide(
        "mother_roundness",
        "isoperimetric ratio of the mother, 1 for a disc",
        "1",
        lambda v: v.cells.roundness[v.source],
        "mask",
    ),
    _divide(
        "mother_elongation",
        "1 - minor/major axis of the mother",
        "1",
        lambda v: v.cells.elongation[v.source],
        "mask",
    ),
    _divide(
        "mother_brightness",
        "robust z-score of the mother's mean in its frame",
        "sd",
        lambda v: v.cells.brightness[v.source],
        "image",
    ),
    _divide(
        "daughter_brightness",
        "mean robust z-score of the daughters",
        "sd",
        lambda v: _pair_mean(v, v.cells.brightness),
        "image",
    ),
    _divide(
        "brightness_gain",
        "daughters' mean level minus the mother's, within +-3",
        "1",
        _brightness_gain,
        "image",
    ),
    _divide(
        "brightness_asymmetry",
        "|difference of the daughters' levels|, at most 3",
        "1",
        lambda v: _asymmetry(v, v.cells.level),
        "image",
    ),
)
"""Features of a division, in the order of its weights."""


def _parts(v: View) -> tuple[Index, Index]:
    """Rows of the two parts."""
    split = bool((v.other_target >= 0).any())
    return (v.target, v.other_target) if split else (v.source, v.other_source)


def _whole(v: View) -> Index:
    """Row of the undivided region."""
    return v.source if (v.other_target >= 0).any() else v.target


def _links(v: View) -> tuple[tuple[Index, Index], tuple[Index, Index]]:
    """(source, target) of the two links."""
    if (v.other_target >= 0).any():
        return (v.source, v.target), (v.source, v.other_target)
    return (v.source, v.target), (v.other_source, v.target)


def _parts_middle(v: View) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    return np.minimum(np.linalg.norm(v.off(s1, t1) + v.off(s2, t2), axis=1) / 2, 5.0)


def _parts_separation(v: View) -> Array:
    a, b = _parts(v)
    return np.minimum(np.linalg.norm(v.position[a] - v.position[b], axis=1) / v.diameter, 5.0)


def _parts_growth(v: View) -> Array:
    a, b = _parts(v)
    return np.abs(np.log((v.area[a] + v.area[b]) / v.area[_whole(v)]))


def _smaller(v: View) -> Array:
    a, b = _parts(v)
    return np.minimum(v.cells.relative_size[a], v.cells.relative_size[b])


def _parts_covered(v: View) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    both = v.evidence.overlap(s1, t1) + v.evidence.overlap(s2, t2)
    return np.minimum(both / v.area[_whole(v)], 1.0)


def _touching(v: View) -> Array:
    a, b = _parts(v)
    return np.asarray((v.cells.touching[a] + v.cells.touching[b]) / 2)


def _unmatched(v: View) -> Array:
    a, b = _parts(v)
    lone = v.cells.orphan if (v.other_target >= 0).any() else v.cells.childless
    return np.asarray(lone[a] + lone[b])


def _block(event: Event, parts: str, whole: str) -> tuple[Feature, ...]:
    feature = partial(Feature, event)
    return (
        feature("bias", "1", "1", ones),
        feature(
            "middle",
            f"|midpoint of the {parts} - the {whole}|, after prediction",
            "diameters",
            _parts_middle,
        ),
        feature(
            "separation",
            f"distance between the {parts} / cell diameter, at most 5",
            "diameters",
            _parts_separation,
        ),
        feature(
            "size_change", f"|log(areas of the {parts} / area of the {whole})|", "1", _parts_growth
        ),
        feature(
            "smaller_part", "log area of the smaller part over the movie's median", "1", _smaller
        ),
        feature(
            "covered",
            f"share of the {whole} that overlaps the {parts} after shift",
            "1",
            _parts_covered,
        ),
        feature("unmatched", "parts without a mutual nearest neighbour, 0 to 2", "1", _unmatched),
        feature(
            "touching",
            "mean share of the parts' outline that touches other cells",
            "1",
            _touching,
            "mask",
        ),
    )


SPLIT = _block(Event.SPLIT, "pieces", "earlier cell")
"""Features of a split, in the order of its weights."""

MERGE = _block(Event.MERGE, "earlier cells", "later region")
"""Features of a merge, in the order of its weights."""


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


def default_features() -> FeatureSet:
    """All built-in features, sorted by event."""
    return FeatureSet((*MOVE, *DIVIDE, *SPLIT, *MERGE, *APPEAR, *DISAPPEAR, *SKIP, *FALSE))
