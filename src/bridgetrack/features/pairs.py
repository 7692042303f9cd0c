"""Features of events between one cell and two: divisions, splits and merges."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.chains import STEPS
from bridgetrack.features.feature import Feature, feature_of
from bridgetrack.features.view import EventView, measure, ones
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]


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


def _middle(v: EventView) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    return np.minimum(np.linalg.norm(v.off(s1, t1) + v.off(s2, t2), axis=1) / 2, 5.0)


def _covered(v: EventView) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    both = v.evidence.overlap(s1, t1) + v.evidence.overlap(s2, t2)
    return np.minimum(both / v.area[_whole(v)], 1.0)


def _mean(name: str, v: EventView) -> Array:
    """Mean of a measure over the two cells."""
    a, b = _two(v)
    values: Array = getattr(v.cells, name)
    return np.asarray((values[a] + values[b]) / 2)


def _asymmetry(name: str, v: EventView) -> Array:
    """Difference of a measure between the two cells, at most 3."""
    a, b = _two(v)
    values: Array = getattr(v.cells, name)
    return np.minimum(np.abs(values[a] - values[b]), 3.0)


def _daughters(v: EventView) -> tuple[Array, Array]:
    """Shift from the mother's predicted position to each daughter, in diameters."""
    return v.off(v.source, v.target), v.off(v.source, v.other_target)


def _daughters_apart(v: EventView) -> Array:
    one, two = _daughters(v)
    return np.minimum(np.linalg.norm(one - two, axis=1), 5.0)


def _far(v: EventView) -> Array:
    return np.maximum(v.offset, v.distance(v.source, v.other_target))


def _unevenness(v: EventView) -> Array:
    return np.abs(v.offset - v.distance(v.source, v.other_target))


def _angle(v: EventView) -> Array:
    one, two = _daughters(v)
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((1.0 + np.sum(one * two, axis=1) / np.maximum(length, 1e-9)) / 2.0)


def _growth(v: EventView) -> Array:
    together = v.area[v.target] + v.area[v.other_target]
    return np.clip(np.log(together) - v.cells.size[v.source], -3, 3)


def _abs_growth(v: EventView) -> Array:
    return np.abs(_growth(v))


def _least_covered(v: EventView) -> Array:
    return np.minimum(v.shared(v.source, v.target), v.shared(v.source, v.other_target))


def _orphans(v: EventView) -> Array:
    return 2 * _mean("orphan", v)


def _along(v: EventView) -> Array:
    one, two = _daughters(v)
    apart = one - two
    length = np.maximum(np.linalg.norm(apart, axis=1), 1e-9)
    cosine = np.abs(np.sum(apart * v.cells.axis[v.source], axis=1)) / length
    return np.asarray((cosine - 0.5) * v.cells.elongation[v.source])


def _brightness_gain(v: EventView) -> Array:
    return np.clip(_mean("level", v) - v.cells.level[v.source], -3, 3)


def _parts_apart(v: EventView) -> Array:
    a, b = _two(v)
    return np.minimum(np.linalg.norm(v.position[a] - v.position[b], axis=1) / v.diameter, 5.0)


def _size_change(v: EventView) -> Array:
    a, b = _two(v)
    return np.abs(np.log((v.area[a] + v.area[b]) / v.area[_whole(v)]))


def _smaller(v: EventView) -> Array:
    a, b = _two(v)
    return np.minimum(v.cells.relative_size[a], v.cells.relative_size[b])


def _unmatched(v: EventView) -> Array:
    a, b = _two(v)
    lone = v.cells.orphan if _fans_out(v) else v.cells.childless
    return np.asarray(lone[a] + lone[b])


def _wavering(v: EventView) -> Array:
    """How surely the masks around an event waver between one cell and two, 0 to 1.

    Either sign is enough: beside a cell that wavers its neighbours often show both.
    """
    (a, b), later, chains = _two(v), _fans_out(v), v.cells.chains
    one = chains.one_again(a, b, after=later)
    two = chains.two_again(_whole(v), after=not later)
    return _surely(v, np.maximum(one, two))


def _surely(v: EventView, covered: Array) -> Array:
    """How surely shares say that a mask is wrong, 0 to 1.

    Where cells move by as much as they are wide one may cover two thirds of two others, and where
    masks are true these need not touch; parts of a wrong mask always do.
    """
    certain = np.clip((covered - _FROM) / (_TO - _FROM), 0.0, 1.0)
    return np.asarray(certain * np.minimum(_mean("touching", v) / _TOUCHING, 1.0))


_FROM, _TO = 2 / 3, 5 / 6
"""Covered shares that say nothing, and all."""

_TOUCHING = 0.1
"""Share of the parts' outline that touches other cells from which on they are surely neighbours."""

_WAVERING = {Event.DIVIDE: -3.0, Event.SPLIT: 6.0, Event.MERGE: 4.0}
"""What it is worth in models that do not know it."""


def _wavers(event: Event, parts: str, whole: str) -> Feature:
    of_parts, of_whole = ("before", "after") if event == Event.MERGE else ("after", "before")
    return feature_of(
        event,
        "wavering",
        f"how surely the {parts}, which touch, are one cell within {STEPS} frames {of_parts}, or "
        f"the {whole} two {of_whole}, 0 to 1",
        _wavering,
        needs="mask",
        start=_WAVERING[event],
    )


_divide = partial(feature_of, Event.DIVIDE)

DIVIDE = (
    _divide("bias", "1", ones),
    _divide(
        "middle",
        "|midpoint of the daughters - predicted mother| / cell diameter, at most 5",
        _middle,
        unit="diameters",
    ),
    _divide(
        "separation",
        "distance between the daughters / cell diameter, at most 5",
        _daughters_apart,
        unit="diameters",
    ),
    _divide(
        "far_daughter",
        "distance of the farther daughter from the predicted mother, at most 5",
        _far,
        unit="diameters",
    ),
    _divide(
        "unevenness", "|difference of the daughters' distances|", _unevenness, unit="diameters"
    ),
    _divide(
        "angle", "(1 + cosine of the angle daughter-mother-daughter) / 2, 0 when opposite", _angle
    ),
    _divide("growth", "log(areas of the daughters / area of the mother), within +-3", _growth),
    _divide("size_change", "|growth|", _abs_growth),
    _divide(
        "size_asymmetry",
        "|log ratio of the daughters' areas|, at most 3",
        partial(_asymmetry, "size"),
    ),
    _divide(
        "daughter_size",
        "mean log area of the daughters over the movie's median",
        partial(_mean, "relative_size"),
    ),
    _divide(
        "mother_size",
        "log area of the mother over the movie's median",
        partial(measure, "source", "relative_size"),
    ),
    _divide("covered", "share of the shifted mother that the daughters cover", _covered),
    _divide(
        "least_covered",
        "smaller of the daughters' overlaps with the shifted mother",
        _least_covered,
    ),
    _divide("orphans", "daughters without a mutual nearest neighbour before, 0 to 2", _orphans),
    _divide(
        "along_axis",
        "(|cosine of separation and mother's long axis| - 1/2) * elongation",
        _along,
        needs="mask",
    ),
    _divide(
        "mother_roundness",
        "isoperimetric ratio of the mother, 1 for a disc",
        partial(measure, "source", "roundness"),
        needs="mask",
    ),
    _divide(
        "mother_elongation",
        "1 - minor/major axis of the mother",
        partial(measure, "source", "elongation"),
        needs="mask",
    ),
    _divide(
        "mother_brightness",
        "robust z-score of the mother's mean in its frame",
        partial(measure, "source", "brightness"),
        unit="sd",
        needs="image",
    ),
    _divide(
        "daughter_brightness",
        "mean robust z-score of the daughters",
        partial(_mean, "brightness"),
        unit="sd",
        needs="image",
    ),
    _divide(
        "brightness_gain",
        "daughters' mean level minus the mother's, within +-3",
        _brightness_gain,
        needs="image",
    ),
    _divide(
        "brightness_asymmetry",
        "|difference of the daughters' levels|, at most 3",
        partial(_asymmetry, "level"),
        needs="image",
    ),
    _wavers(Event.DIVIDE, "daughters", "mother"),
)
"""Features of a division, in the order of its weights."""


def _parts_features(event: Event, parts: str, whole: str) -> tuple[Feature, ...]:
    feature = partial(feature_of, event)
    return (
        feature("bias", "1", ones),
        feature(
            "middle",
            f"|midpoint of the {parts} - the {whole}|, after prediction",
            _middle,
            unit="diameters",
        ),
        feature(
            "separation",
            f"distance between the {parts} / cell diameter, at most 5",
            _parts_apart,
            unit="diameters",
        ),
        feature("size_change", f"|log(areas of the {parts} / area of the {whole})|", _size_change),
        feature("smaller_part", "log area of the smaller part over the movie's median", _smaller),
        feature("covered", f"share of the {whole} that overlaps the {parts} after shift", _covered),
        feature("unmatched", "parts without a mutual nearest neighbour, 0 to 2", _unmatched),
        feature(
            "touching",
            "mean share of the parts' outline that touches other cells",
            partial(_mean, "touching"),
            needs="mask",
        ),
        _wavers(event, parts, whole),
    )


SPLIT = _parts_features(Event.SPLIT, "pieces", "earlier cell")
"""Features of a split, in the order of its weights."""

MERGE = _parts_features(Event.MERGE, "earlier cells", "later region")
"""Features of a merge, in the order of its weights."""
