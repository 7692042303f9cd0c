"""The features that models use unless told otherwise.

Each is declared once: the event, the name in model files, the formula in words, and what is
computed. The order of an event's declarations is that of its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.features.feature import LINK_SCORE, Feature, FeatureSet, LinkScores
from bridgetrack.features.view import STEPS, EventView
from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.evidence import LONELY
from bridgetrack.hypotheses.motion import MAX_GAP
from bridgetrack.hypotheses.near import best_other, rank_within

Compute = Callable[[EventView], Array]
_DECLARED: dict[str, Feature] = {}


def default_features() -> FeatureSet:
    """All built-in features, sorted by event."""
    return FeatureSet(tuple(sorted(_DECLARED.values(), key=lambda feature: feature.event)))


def with_link_scores(scores: LinkScores, features: FeatureSet | None = None) -> FeatureSet:
    """A set of features (the built-in ones where None) and the scores of links."""
    made = features or default_features()
    for event, what in (
        (Event.MOVE, "logit of the score that was given to the link"),
        (Event.DIVIDE, "mean logit of the scores that were given to its links"),
    ):
        value = partial(_mean_logit, scores)
        made = made.with_feature(Feature(event, LINK_SCORE, what, "1", value, start=1.0))
    return made


def _mean_logit(scores: LinkScores, v: EventView) -> Array:
    links = v.links if v.fans_out else [(v.source, v.target)]
    return np.mean([scores.values(v.evidence.detections, s, t) for s, t in links], axis=0)


class _BuiltIn(Feature):
    """A feature of this module, which is pickled by its name."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _built_in, (self.key,)


def _built_in(key: str) -> Feature:
    return _DECLARED[key]


def _feature(
    event: Event,
    name: str,
    formula: str,
    unit: str = "1",
    needs: str = "",
    start: float | None = None,
) -> Callable[[Compute], Compute]:
    """Declare a feature by the function that computes it; see `Feature`."""

    def declare(compute: Compute) -> Compute:
        feature = _BuiltIn(event, name, formula, unit, compute, needs, start)
        _DECLARED[feature.key] = feature
        return compute

    return declare


_move, _divide, _split, _merge, _appear, _disappear, _skip, _false = (
    partial(_feature, event) for event in Event
)

_APART = "distance between the {} / cell diameter, at most 5"
_BORDER = "exp(-distance to the frame's edge / cell diameter)"
_SIZE = "log area over the movie's median, within +-3"
_BRIGHTNESS = "robust z-score of the mean in its frame"
_LEVEL = "|change of asinh(2 mean / movie median)|"
_STEPS = "log(1 + d * diameter / median residual motion)"
_WAVERING = (
    "how strongly the frames around suggest that the touching {} are one cell (one within {} "
    "frames {}, or the {}), 0 to 1"
)
_TRUST = "the IoU that nine in ten cells exceed with their best match"
_OVERLAPS: dict[str, Any] = {"needs": "mask", "start": 0.0}
"""Arguments for features that compare overlaps with those of rivals."""

for _event in Event:
    _feature(_event, "bias", "1")(lambda v: np.ones(len(v.source)))

# --- moves -----------------------------------------------------------------------------------

_move("distance", "d = |observed - predicted position| / cell diameter, at most 5", "diameters")(
    lambda v: v.offset
)
_move("distance_squared", "min(d, 3)^2", "diameters^2")(lambda v: np.minimum(v.offset, 3) ** 2)
_move("distance_steps", _STEPS)(lambda v: _steps(v, v.offset))
_move("raw_distance", "|shift without any prediction| / cell diameter, at most 5", "diameters")(
    lambda v: v.apart(v.source, v.target)
)
_move("rank_forward", "rank of d among the moves of the earlier cell / 3")(
    lambda v: rank_within(v.source, v.offset) / 3
)
_move("rank_backward", "rank of d among the moves to the later cell / 3")(
    lambda v: rank_within(v.target, v.offset) / 3
)
_move("rival_forward", "log ratio of d to the best other move of the earlier cell")(
    lambda v: _rival(v, v.source)
)
_move("rival_backward", "log ratio of d to the best other move to the later cell")(
    lambda v: _rival(v, v.target)
)
_move("mutual", "1 where the cells are each other's nearest after prediction")(
    lambda v: v.evidence.match_next[v.source] == v.target
)


def _steps(v: EventView, offset: Array) -> Array:
    """A distance (in diameters) relative to the residual motion of the movie."""
    return np.log1p(offset * v.diameter / v.step)


def _rival(v: EventView, cell: Index) -> Array:
    own = v.offset + v.step / v.diameter
    other = best_other(cell, v.offset, 5.0) + v.step / v.diameter
    return np.clip(np.log(own / other), -3, 3)


@_move("overlap", "intersection over union after the predicted shift")
def _iou(v: EventView) -> Array:
    shared = v.evidence.overlap(v.source, v.target)
    return np.asarray(shared / (v.area[v.source] + v.area[v.target] - shared))


_move("covered", "intersection after shift over the smaller area")(
    lambda v: v.shared(v.source, v.target)
)
_move("growth", "log(later area / earlier area), within +-3")(lambda v: v.change(v.cells.size))
_move("size_change", "|growth|")(lambda v: np.abs(v.change(v.cells.size)))
_move("shape_change", "|change of 1 - minor/major axis|", needs="mask")(
    lambda v: np.abs(v.change(v.cells.elongation))
)


@_move("rotation", "sin^2 of the turn of the long axis times the smaller elongation", needs="mask")
def _rotation(v: EventView) -> Array:
    cosine = np.sum(v.cells.axis[v.source] * v.cells.axis[v.target], axis=1)
    weight = np.minimum(v.cells.elongation[v.source], v.cells.elongation[v.target])
    return np.asarray((1.0 - cosine**2) * weight)


_move("level_change", _LEVEL, needs="image")(lambda v: np.abs(v.change(v.cells.level)))
_move("source_brightness", "robust z-score of the earlier cell's mean in its frame", "sd", "image")(
    lambda v: v.cells.brightness[v.source]
)


@_move(
    "without_overlap",
    f"q * min(max(d - 0.9, 0) / 0.3, 1) * max(1 - 5 covered, 0), q: {_TRUST}",
    **_OVERLAPS,
)
def _without_overlap(v: EventView) -> Array:
    shared = v.shared(v.source, v.target)
    far = np.clip((v.offset - 0.9) / 0.3, 0, 1)
    return np.asarray(v.trust * far * np.maximum(0, 1 - 5 * shared))


@_move(
    "outdone",
    f"q * share of the earlier cell by which another later one covers it more, q: {_TRUST}",
    **_OVERLAPS,
)
def _outdone(v: EventView) -> Array:
    return v.trust * np.maximum(0, -v.lead(v.source, v.target, forward=True))


# --- one cell and two: divisions, splits and merges ------------------------------------------


def _mean(v: EventView, values: Array) -> Array:
    """Mean of a measure over the two cells."""
    a, b = v.two
    return np.asarray((values[a] + values[b]) / 2)


def _asymmetry(v: EventView, values: Array) -> Array:
    """Difference of a measure between the two cells, at most 3."""
    a, b = v.two
    return np.minimum(np.abs(values[a] - values[b]), 3.0)


def _daughters(v: EventView) -> tuple[Array, Array]:
    """Shift from the mother's predicted position to each daughter, in diameters."""
    return v.off(v.source, v.target), v.off(v.source, v.other_target)


@_divide(
    "middle",
    "|midpoint of the daughters - predicted mother| / cell diameter, at most 5",
    "diameters",
)
def _middle(v: EventView) -> Array:
    (s1, t1), (s2, t2) = v.links
    return np.minimum(np.linalg.norm(v.off(s1, t1) + v.off(s2, t2), axis=1) / 2, 5.0)


@_divide("separation", _APART.format("daughters"), "diameters")
def _daughters_apart(v: EventView) -> Array:
    one, two = _daughters(v)
    return np.minimum(np.linalg.norm(one - two, axis=1), 5.0)


_divide(
    "far_daughter",
    "distance of the farther daughter from the predicted mother, at most 5",
    "diameters",
)(lambda v: np.maximum(v.offset, v.distance(v.source, v.other_target)))
_divide("unevenness", "|difference of the daughters' distances|", "diameters")(
    lambda v: np.abs(v.offset - v.distance(v.source, v.other_target))
)


@_divide("angle", "(1 + cosine of the angle daughter-mother-daughter) / 2, 0 when opposite")
def _angle(v: EventView) -> Array:
    one, two = _daughters(v)
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((1.0 + np.sum(one * two, axis=1) / np.maximum(length, 1e-9)) / 2.0)


@_divide("growth", "log(areas of the daughters / area of the mother), within +-3")
def _growth(v: EventView) -> Array:
    together = v.area[v.target] + v.area[v.other_target]
    return np.clip(np.log(together) - v.cells.size[v.source], -3, 3)


_divide("size_change", "|growth|")(lambda v: np.abs(_growth(v)))
_divide("size_asymmetry", "|log ratio of the daughters' areas|, at most 3")(
    lambda v: _asymmetry(v, v.cells.size)
)
_divide("daughter_size", "mean log area of the daughters over the movie's median")(
    lambda v: _mean(v, v.cells.relative_size)
)
_divide("mother_size", "log area of the mother over the movie's median")(
    lambda v: v.cells.relative_size[v.source]
)


@_divide("covered", "share of the shifted mother that the daughters cover")
def _covered(v: EventView) -> Array:
    (s1, t1), (s2, t2) = v.links
    both = v.evidence.overlap(s1, t1) + v.evidence.overlap(s2, t2)
    return np.minimum(both / v.area[v.whole], 1.0)


_divide("least_covered", "smaller of the daughters' overlaps with the shifted mother")(
    lambda v: np.minimum(*(v.shared(s, t) for s, t in v.links))
)


@_divide("orphans", "daughters without a mutual nearest neighbour before, 0 to 2")
def _unmatched(v: EventView) -> Array:
    return 2 * _mean(v, v.cells.orphan if v.fans_out else v.cells.childless)


@_divide(
    "along_axis",
    "(|cosine of separation and mother's long axis| - 1/2) * elongation",
    needs="mask",
)
def _along(v: EventView) -> Array:
    one, two = _daughters(v)
    apart = one - two
    length = np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
    cosine = np.abs(np.sum(apart * v.cells.axis[v.source], axis=1)) / length
    return np.asarray((cosine - 0.5) * v.cells.elongation[v.source])


_divide("mother_roundness", "isoperimetric ratio of the mother, 1 for a disc", needs="mask")(
    lambda v: v.cells.roundness[v.source]
)
_divide("mother_elongation", "1 - minor/major axis of the mother", needs="mask")(
    lambda v: v.cells.elongation[v.source]
)
_divide("mother_brightness", "robust z-score of the mother's mean in its frame", "sd", "image")(
    lambda v: v.cells.brightness[v.source]
)
_divide("daughter_brightness", "mean robust z-score of the daughters", "sd", "image")(
    lambda v: _mean(v, v.cells.brightness)
)
_divide("brightness_gain", "daughters' mean level minus the mother's, within +-3", needs="image")(
    lambda v: np.clip(_mean(v, v.cells.level) - v.cells.level[v.source], -3, 3)
)
_divide("brightness_asymmetry", "|difference of the daughters' levels|, at most 3", needs="image")(
    lambda v: _asymmetry(v, v.cells.level)
)

_FROM, _TO = 2 / 3, 5 / 6
"""Covered share up to which the value is 0, and from which it is 1."""
_NEIGHBOURS = 0.1
"""Share of the parts' outline that touches other cells, from which they are neighbours."""


@_divide(
    "wavering",
    _WAVERING.format("daughters", STEPS, "after", "mother is two before"),
    needs="mask",
    start=-3.0,
)
def _wavering(v: EventView) -> Array:
    """How strongly the masks around an event alternate between one cell and two, 0 to 1. Either
    sign is enough: cells beside one that alternates often show both. If cells move by as much as
    they are wide, one may cover two thirds of two others, and in correct masks these need not
    touch; parts of a wrong mask always do.
    """
    (a, b), later, chains = v.two, v.fans_out, v.cells.chains
    one = chains.one_again(a, b, after=later)
    two = chains.two_again(v.whole, after=not later)
    certain = np.clip((np.maximum(one, two) - _FROM) / (_TO - _FROM), 0.0, 1.0)
    return np.asarray(certain * np.minimum(_mean(v, v.cells.touching) / _NEIGHBOURS, 1.0))


@_divide("late", "1 where a daughter is not seen in the next frame", start=-1.0)
def _late(v: EventView) -> Array:
    frame = v.evidence.detections.frame
    last = np.maximum(frame[v.target], frame[v.other_target])
    return (last - frame[v.source] > 1).astype(np.float64)


@_divide(
    "lead",
    f"q * least share of a daughter that the mother covers more than any other, q: {_TRUST}",
    **_OVERLAPS,
)
def _least_lead(v: EventView) -> Array:
    return v.trust * np.minimum(*(v.lead(s, t, forward=False) for s, t in v.links))


@_divide(
    "outdone",
    f"q * shares of the daughters that another covers more than the mother, q: {_TRUST}",
    **_OVERLAPS,
)
def _daughters_outdone(v: EventView) -> Array:
    one, two = (np.maximum(0, -v.lead(s, t, forward=False)) for s, t in v.links)
    return v.trust * (one + two)


def _parts_growth(v: EventView) -> Array:
    a, b = v.two
    return np.abs(np.log((v.area[a] + v.area[b]) / v.area[v.whole]))


for _part, _parts, _whole, _when, _two, _start in (
    (_split, "pieces", "earlier cell", "after", "earlier cell is two before", 6.0),
    (_merge, "earlier cells", "later region", "before", "later region is two after", 4.0),
):
    _part("middle", f"|midpoint of the {_parts} - the {_whole}|, after prediction", "diameters")(
        _middle
    )
    _part("separation", _APART.format(_parts), "diameters")(lambda v: v.apart(*v.two))
    _part("size_change", f"|log(areas of the {_parts} / area of the {_whole})|")(_parts_growth)
    _part("smaller_part", "log area of the smaller part over the movie's median")(
        lambda v: np.minimum(*(v.cells.relative_size[part] for part in v.two))
    )
    _part("covered", f"share of the {_whole} that overlaps the {_parts} after shift")(_covered)
    _part("unmatched", "parts without a mutual nearest neighbour, 0 to 2")(_unmatched)
    _part("touching", "mean share of the parts' outline that touches other cells", needs="mask")(
        lambda v: _mean(v, v.cells.touching)
    )
    _part("wavering", _WAVERING.format(_parts, STEPS, _when, _two), needs="mask", start=_start)(
        _wavering
    )


@_merge(
    "uncovered",
    f"q * larger of the shares of the earlier cells that the later region does not cover, "
    f"q: {_TRUST}",
    **_OVERLAPS,
)
def _uncovered(v: EventView) -> Array:
    inside = (v.evidence.overlap(s, t) / v.area[s] for s, t in v.links)
    return np.asarray(v.trust * (1 - np.minimum(*inside)))


# --- ends, gaps and false detections ---------------------------------------------------------


def _nearest(v: EventView, *, forward: bool) -> Array:
    """Distance to the nearest cell of the next (else previous) frame, diameters, at most 5."""
    return np.minimum(v.evidence.nearest(v.first, 1 if forward else -1) / v.diameter, 5.0)


def _lonely(v: EventView, *, forward: bool) -> Array:
    """How far `_nearest` exceeds two diameters if the cell is seen again and is by far the nearest.

    At the edge of the frame it counts less, because cells may leave and others enter.
    """
    missed = (v.cells.goes_on if forward else v.cells.returns)[v.first]
    beyond = np.maximum(_nearest(v, forward=forward) - LONELY, 0.0)
    return missed * beyond * (1.0 - v.cells.border[v.first])


def _best_overlap(v: EventView, *, forward: bool) -> Array:
    overlaps = v.cells.overlaps
    return np.asarray((overlaps.ahead if forward else overlaps.back)[0][v.first])


def _alone(v: EventView, *, forward: bool) -> Array:
    return (v.cells.childless if forward else v.cells.orphan)[v.first]


for _end, _forward, _which, _again in (
    (_appear, False, "previous", "was seen before"),
    (_disappear, True, "next", "is seen again"),
):
    _end("border", _BORDER)(lambda v: v.cells.border[v.first])
    _end("nearest", f"distance to the nearest cell of the {_which} frame, at most 5", "diameters")(
        partial(_nearest, forward=_forward)
    )
    _end("unmatched", f"1 without a mutual nearest neighbour in the {_which} frame")(
        partial(_alone, forward=_forward)
    )
    _end("size", _SIZE)(lambda v: v.cells.relative_size[v.first])
    _end(
        "covered",
        f"largest overlap with a cell of the {_which} frame over the own area",
        needs="mask",
    )(partial(_best_overlap, forward=_forward))
    _end("brightness", _BRIGHTNESS, "sd", "image")(lambda v: v.cells.brightness[v.first])
    _end(
        "lonely",
        f"max(nearest - {LONELY:g}, 0) * (1 - border) where a cell that {_again} within {MAX_GAP} "
        "frames is nearer by far; 0 elsewhere",
        "diameters",
        start=-1.2,
    )(partial(_lonely, forward=_forward))


@_skip(
    "distance",
    "d = |observed - predicted position, carried on by the drift| / cell diameter, at most 5",
    "diameters",
)
def _ahead(v: EventView) -> Array:
    shift = v.position[v.target] - v.evidence.expected(v.source, v.target)
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


_skip("distance_steps", _STEPS)(lambda v: _steps(v, _ahead(v)))


@_skip("gap", "missed frames beyond the first", "frames")
def _gap(v: EventView) -> Array:
    frame = v.evidence.detections.frame
    return (frame[v.target] - frame[v.source] - 2).astype(np.float64)


_skip("size_change", "|log(later area / earlier area)|, at most 3")(
    lambda v: np.abs(v.change(v.cells.size))
)
_skip("level_change", _LEVEL, needs="image")(lambda v: np.abs(v.change(v.cells.level)))
_skip("overlap_trust", f"{_TRUST}; 0 where no other cell is nearly as near", **_OVERLAPS)(
    lambda v: v.trust * (1 - v.cells.goes_on[v.source] * v.cells.returns[v.target])
)


@_skip("dark", "1 where nearly all cells are missing in the frames between", start=2.5)
def _dark(v: EventView) -> Array:
    following, frame = v.evidence.motion.following, v.evidence.detections.frame
    return np.asarray(frame[v.target] == following[frame[v.source]], dtype=np.float64)


_false("size", _SIZE)(lambda v: v.cells.relative_size[v.source])
_false("border", _BORDER, start=0.0)(lambda v: v.cells.border[v.source])
_false("orphan", "1 without a mutual nearest neighbour before")(lambda v: v.cells.orphan[v.source])
_false("childless", "1 without a mutual nearest neighbour after")(
    lambda v: v.cells.childless[v.source]
)
_false("brightness", _BRIGHTNESS, "sd", "image")(lambda v: v.cells.brightness[v.source])
_false(
    "contrast", "standard deviation over mean of its pixels, at most 3", needs="image", start=0.0
)(lambda v: v.cells.contrast[v.source])
_false("roundness", "isoperimetric ratio, 1 for a disc", needs="mask", start=0.0)(
    lambda v: v.cells.roundness[v.source]
)
_false("elongation", "1 - minor/major axis", needs="mask", start=0.0)(
    lambda v: v.cells.elongation[v.source]
)
_false("touching", "share of its outline that touches other cells", needs="mask", start=0.0)(
    lambda v: v.cells.touching[v.source]
)
