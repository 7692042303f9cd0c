"""Features of divisions."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import Feature
from bridgetrack.features.move import ones
from bridgetrack.features.view import View
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]


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
