"""The features that models use unless told otherwise.

Each is declared once: the event, the name in model files, the formula in words, and the function
above which it stands, or the measure of a cell that it is (`CellMeasures`). The order of an event's
declarations is that of its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.features.feature import Feature, FeatureSet
from bridgetrack.features.view import STEPS, EventView, best_other, rank_within
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Compute = Callable[[EventView], Array]

_DECLARED: list[Feature] = []


def default_features() -> FeatureSet:
    """All built-in features, sorted by event."""
    return FeatureSet(tuple(sorted(_DECLARED, key=lambda feature: feature.event)))


def _feature(
    event: Event,
    name: str,
    formula: str,
    unit: str = "1",
    needs: str = "",
    start: float | None = None,
) -> Callable[[Compute], Compute]:
    """Declare what a function computes; see `Feature`."""

    def declare(compute: Compute) -> Compute:
        _DECLARED.append(Feature(event, name, formula, unit, compute, needs, start))
        return compute

    return declare


def _measured(name: str, cell: str, v: EventView) -> Array:
    values: Array = getattr(v.cells, name)
    return np.asarray(values[getattr(v, cell)])


def _measure(
    event: Event, name: str, formula: str, measure: str, cell: str, **more: str | float
) -> None:
    """Declare a measure of the source or target of an event."""
    _feature(event, name, formula, **more)(partial(_measured, measure, cell))  # type: ignore[arg-type]


def _bias(v: EventView) -> Array:
    return np.ones(len(v.source))


for _event in Event:
    _feature(_event, "bias", "1")(_bias)


# --- a move ----------------------------------------------------------------------------------

_move = partial(_feature, Event.MOVE)


@_move(
    "distance",
    "d = |observed - predicted position| / cell diameter, at most 5",
    "diameters",
)
def _distance(v: EventView) -> Array:
    return v.offset


@_move("distance_squared", "min(d, 3)^2", "diameters^2")
def _distance_squared(v: EventView) -> Array:
    return np.minimum(v.offset, 3) ** 2


@_move("distance_steps", "log(1 + d * diameter / median residual motion)")
def _distance_steps(v: EventView) -> Array:
    return np.log1p(v.offset * v.diameter / v.step)


@_move("raw_distance", "|shift without any prediction| / cell diameter, at most 5", "diameters")
def _raw_distance(v: EventView) -> Array:
    shift = v.position[v.target] - v.position[v.source]
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


@_move("rank_forward", "rank of d among the moves of the earlier cell / 3")
def _rank_forward(v: EventView) -> Array:
    return rank_within(v.source, v.offset) / 3


@_move("rank_backward", "rank of d among the moves to the later cell / 3")
def _rank_backward(v: EventView) -> Array:
    return rank_within(v.target, v.offset) / 3


def _rival(v: EventView, cell: Index) -> Array:
    own = v.offset + v.step / v.diameter
    other = best_other(cell, v.offset, 5.0) + v.step / v.diameter
    return np.clip(np.log(own / other), -3, 3)


@_move("rival_forward", "log ratio of d to the best other move of the earlier cell")
def _rival_forward(v: EventView) -> Array:
    return _rival(v, v.source)


@_move("rival_backward", "log ratio of d to the best other move to the later cell")
def _rival_backward(v: EventView) -> Array:
    return _rival(v, v.target)


@_move("mutual", "1 where the cells are each other's nearest after prediction")
def _mutual(v: EventView) -> Array:
    return (v.evidence.match_next[v.source] == v.target).astype(np.float64)


@_move("overlap", "intersection over union after the predicted shift")
def _iou(v: EventView) -> Array:
    shared = v.evidence.overlap(v.source, v.target)
    return np.asarray(shared / (v.area[v.source] + v.area[v.target] - shared))


@_move("covered", "intersection after shift over the smaller area")
def _move_covered(v: EventView) -> Array:
    return v.shared(v.source, v.target)


@_move("growth", "log(later area / earlier area), within +-3")
def _move_growth(v: EventView) -> Array:
    return v.change(v.cells.size)


@_move("size_change", "|growth|")
def _move_size_change(v: EventView) -> Array:
    return np.abs(v.change(v.cells.size))


@_move("shape_change", "|change of 1 - minor/major axis|", needs="mask")
def _shape_change(v: EventView) -> Array:
    return np.abs(v.change(v.cells.elongation))


@_move("rotation", "sin^2 of the turn of the long axis times the smaller elongation", needs="mask")
def _rotation(v: EventView) -> Array:
    cosine = np.sum(v.cells.axis[v.source] * v.cells.axis[v.target], axis=1)
    weight = np.minimum(v.cells.elongation[v.source], v.cells.elongation[v.target])
    return np.asarray((1.0 - cosine**2) * weight)


@_move("level_change", "|change of asinh(2 mean / movie median)|", needs="image")
def _level_change(v: EventView) -> Array:
    return np.abs(v.change(v.cells.level))


_measure(
    Event.MOVE,
    "source_brightness",
    "robust z-score of the earlier cell's mean in its frame",
    "brightness",
    "source",
    unit="sd",
    needs="image",
)

# --- one cell and two: divisions, splits and merges ------------------------------------------


def _fans_out(v: EventView) -> bool:
    """Whether one earlier cell stands against two later ones, rather than two against one."""
    return bool((v.other_target >= 0).any())


def _two(v: EventView) -> tuple[Index, Index]:
    """Rows of the daughters, pieces or joined cells."""
    return (v.target, v.other_target) if _fans_out(v) else (v.source, v.other_source)


def _whole(v: EventView) -> Index:
    """Row of the one cell."""
    return v.source if _fans_out(v) else v.target


def _links(v: EventView) -> tuple[tuple[Index, Index], tuple[Index, Index]]:
    """(source, target) of the two links."""
    if _fans_out(v):
        return (v.source, v.target), (v.source, v.other_target)
    return (v.source, v.target), (v.other_source, v.target)


def _mean(values: Array, v: EventView) -> Array:
    """Mean of a measure over the two cells."""
    a, b = _two(v)
    return np.asarray((values[a] + values[b]) / 2)


def _asymmetry(values: Array, v: EventView) -> Array:
    """Difference of a measure between the two cells, at most 3."""
    a, b = _two(v)
    return np.minimum(np.abs(values[a] - values[b]), 3.0)


def _daughters(v: EventView) -> tuple[Array, Array]:
    """Shift from the mother's predicted position to each daughter, in diameters."""
    return v.off(v.source, v.target), v.off(v.source, v.other_target)


_divide = partial(_feature, Event.DIVIDE)


def _parts(
    name: str, formula: str, unit: str = "1", needs: str = ""
) -> Callable[[Compute], Compute]:
    """Declare a feature of splits and merges alike."""

    def declare(compute: Compute) -> Compute:
        split = formula.format(parts="pieces", whole="earlier cell")
        merge = formula.format(parts="earlier cells", whole="later region")
        _feature(Event.SPLIT, name, split, unit, needs)(compute)
        return _feature(Event.MERGE, name, merge, unit, needs)(compute)

    return declare


@_parts("middle", "|midpoint of the {parts} - the {whole}|, after prediction", "diameters")
@_divide(
    "middle",
    "|midpoint of the daughters - predicted mother| / cell diameter, at most 5",
    "diameters",
)
def _middle(v: EventView) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    return np.minimum(np.linalg.norm(v.off(s1, t1) + v.off(s2, t2), axis=1) / 2, 5.0)


@_divide("separation", "distance between the daughters / cell diameter, at most 5", "diameters")
def _daughters_apart(v: EventView) -> Array:
    one, two = _daughters(v)
    return np.minimum(np.linalg.norm(one - two, axis=1), 5.0)


@_parts("separation", "distance between the {parts} / cell diameter, at most 5", "diameters")
def _parts_apart(v: EventView) -> Array:
    a, b = _two(v)
    return np.minimum(np.linalg.norm(v.position[a] - v.position[b], axis=1) / v.diameter, 5.0)


@_divide(
    "far_daughter",
    "distance of the farther daughter from the predicted mother, at most 5",
    "diameters",
)
def _far(v: EventView) -> Array:
    return np.maximum(v.offset, v.distance(v.source, v.other_target))


@_divide("unevenness", "|difference of the daughters' distances|", "diameters")
def _unevenness(v: EventView) -> Array:
    return np.abs(v.offset - v.distance(v.source, v.other_target))


@_divide("angle", "(1 + cosine of the angle daughter-mother-daughter) / 2, 0 when opposite")
def _angle(v: EventView) -> Array:
    one, two = _daughters(v)
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((1.0 + np.sum(one * two, axis=1) / np.maximum(length, 1e-9)) / 2.0)


@_divide("growth", "log(areas of the daughters / area of the mother), within +-3")
def _growth(v: EventView) -> Array:
    together = v.area[v.target] + v.area[v.other_target]
    return np.clip(np.log(together) - v.cells.size[v.source], -3, 3)


@_divide("size_change", "|growth|")
def _abs_growth(v: EventView) -> Array:
    return np.abs(_growth(v))


@_parts("size_change", "|log(areas of the {parts} / area of the {whole})|")
def _parts_size_change(v: EventView) -> Array:
    a, b = _two(v)
    return np.abs(np.log((v.area[a] + v.area[b]) / v.area[_whole(v)]))


@_parts("smaller_part", "log area of the smaller part over the movie's median")
def _smaller(v: EventView) -> Array:
    a, b = _two(v)
    return np.minimum(v.cells.relative_size[a], v.cells.relative_size[b])


@_divide("size_asymmetry", "|log ratio of the daughters' areas|, at most 3")
def _size_asymmetry(v: EventView) -> Array:
    return _asymmetry(v.cells.size, v)


@_divide("daughter_size", "mean log area of the daughters over the movie's median")
def _daughter_size(v: EventView) -> Array:
    return _mean(v.cells.relative_size, v)


_measure(
    Event.DIVIDE,
    "mother_size",
    "log area of the mother over the movie's median",
    "relative_size",
    "source",
)


@_parts("covered", "share of the {whole} that overlaps the {parts} after shift")
@_divide("covered", "share of the shifted mother that the daughters cover")
def _covered(v: EventView) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    both = v.evidence.overlap(s1, t1) + v.evidence.overlap(s2, t2)
    return np.minimum(both / v.area[_whole(v)], 1.0)


@_divide("least_covered", "smaller of the daughters' overlaps with the shifted mother")
def _least_covered(v: EventView) -> Array:
    return np.minimum(v.shared(v.source, v.target), v.shared(v.source, v.other_target))


@_divide("orphans", "daughters without a mutual nearest neighbour before, 0 to 2")
def _orphans(v: EventView) -> Array:
    return 2 * _mean(v.cells.orphan, v)


@_parts("unmatched", "parts without a mutual nearest neighbour, 0 to 2")
def _unmatched(v: EventView) -> Array:
    return 2 * _mean(v.cells.orphan if _fans_out(v) else v.cells.childless, v)


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


_measure(
    Event.DIVIDE,
    "mother_roundness",
    "isoperimetric ratio of the mother, 1 for a disc",
    "roundness",
    "source",
    needs="mask",
)
_measure(
    Event.DIVIDE,
    "mother_elongation",
    "1 - minor/major axis of the mother",
    "elongation",
    "source",
    needs="mask",
)
_measure(
    Event.DIVIDE,
    "mother_brightness",
    "robust z-score of the mother's mean in its frame",
    "brightness",
    "source",
    unit="sd",
    needs="image",
)


@_divide("daughter_brightness", "mean robust z-score of the daughters", "sd", "image")
def _daughter_brightness(v: EventView) -> Array:
    return _mean(v.cells.brightness, v)


@_divide("brightness_gain", "daughters' mean level minus the mother's, within +-3", needs="image")
def _brightness_gain(v: EventView) -> Array:
    return np.clip(_mean(v.cells.level, v) - v.cells.level[v.source], -3, 3)


@_divide("brightness_asymmetry", "|difference of the daughters' levels|, at most 3", needs="image")
def _brightness_asymmetry(v: EventView) -> Array:
    return _asymmetry(v.cells.level, v)


@_parts("touching", "mean share of the parts' outline that touches other cells", needs="mask")
def _touching(v: EventView) -> Array:
    return _mean(v.cells.touching, v)


_FROM, _TO = 2 / 3, 5 / 6
"""Covered shares that say nothing, and all."""
_NEIGHBOURS = 0.1
"""Share of the parts' outline that touches other cells from which on they are surely neighbours."""


@_feature(
    Event.MERGE,
    "wavering",
    f"how surely the earlier cells, which touch, are one cell within {STEPS} frames before, or "
    "the later region two after, 0 to 1",
    needs="mask",
    start=4.0,
)
@_feature(
    Event.SPLIT,
    "wavering",
    f"how surely the pieces, which touch, are one cell within {STEPS} frames after, or "
    "the earlier cell two before, 0 to 1",
    needs="mask",
    start=6.0,
)
@_divide(
    "wavering",
    f"how surely the daughters, which touch, are one cell within {STEPS} frames after, or "
    "the mother two before, 0 to 1",
    needs="mask",
    start=-3.0,
)
def _wavering(v: EventView) -> Array:
    """How surely the masks around an event waver between one cell and two, 0 to 1.

    Either sign is enough: beside a cell that wavers its neighbours often show both. Where cells
    move by as much as they are wide one may cover two thirds of two others, and where masks are
    true these need not touch; parts of a wrong mask always do.
    """
    (a, b), later, chains = _two(v), _fans_out(v), v.cells.chains
    one = chains.one_again(a, b, after=later)
    two = chains.two_again(_whole(v), after=not later)
    certain = np.clip((np.maximum(one, two) - _FROM) / (_TO - _FROM), 0.0, 1.0)
    return np.asarray(certain * np.minimum(_touching(v) / _NEIGHBOURS, 1.0))


# --- an appearance, a disappearance ----------------------------------------------------------


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


_BORDER = "exp(-distance to the frame's edge / cell diameter)"
_SIZE = "log area over the movie's median, within +-3"
_BRIGHTNESS = "robust z-score of the mean in its frame"

for _event, _cell, _lone, _which in (
    (Event.APPEAR, "target", "orphan", "previous"),
    (Event.DISAPPEAR, "source", "childless", "next"),
):
    _measure(_event, "border", _BORDER, "border", _cell)
    _feature(
        _event,
        "nearest",
        f"distance to the nearest cell of the {_which} frame, at most 5",
        "diameters",
    )(partial(_nearest, _cell))
    _measure(
        _event,
        "unmatched",
        f"1 without a mutual nearest neighbour in the {_which} frame",
        _lone,
        _cell,
    )
    _measure(_event, "size", _SIZE, "relative_size", _cell)
    _feature(
        _event,
        "covered",
        f"largest overlap with a cell of the {_which} frame over the own area",
        needs="mask",
    )(partial(_best_overlap, _cell))
    _measure(_event, "brightness", _BRIGHTNESS, "brightness", _cell, unit="sd", needs="image")


# --- a skip ----------------------------------------------------------------------------------

_skip = partial(_feature, Event.SKIP)


@_skip(
    "distance",
    "d = |observed - predicted position, carried on by the drift| / cell diameter, at most 5",
    "diameters",
)
def _ahead(v: EventView) -> Array:
    shift = v.position[v.target] - v.evidence.expected(v.source, v.target)
    return np.minimum(np.linalg.norm(shift, axis=1) / v.diameter, 5.0)


@_skip("distance_steps", "log(1 + d * diameter / median residual motion)")
def _ahead_steps(v: EventView) -> Array:
    return np.log1p(_ahead(v) * v.diameter / v.step)


@_skip("gap", "missed frames beyond the first", "frames")
def _gap(v: EventView) -> Array:
    frame = v.evidence.detections.frame
    return (frame[v.target] - frame[v.source] - 2).astype(np.float64)


_skip("size_change", "|log(later area / earlier area)|, at most 3")(_move_size_change)
_skip("level_change", "|change of asinh(2 mean / movie median)|", needs="image")(_level_change)

# --- a false detection -----------------------------------------------------------------------

_speck = partial(_measure, Event.FALSE, cell="source")
_speck("size", _SIZE, "relative_size")
_speck("border", _BORDER, "border", start=0.0)
_speck("orphan", "1 without a mutual nearest neighbour before", "orphan")
_speck("childless", "1 without a mutual nearest neighbour after", "childless")
_speck("brightness", _BRIGHTNESS, "brightness", unit="sd", needs="image")
_speck(
    "contrast",
    "standard deviation over mean of its pixels, at most 3",
    "contrast",
    needs="image",
    start=0.0,
)
_speck("roundness", "isoperimetric ratio, 1 for a disc", "roundness", needs="mask", start=0.0)
_speck("elongation", "1 - minor/major axis", "elongation", needs="mask", start=0.0)
_speck(
    "touching",
    "share of its outline that touches other cells",
    "touching",
    needs="mask",
    start=0.0,
)
