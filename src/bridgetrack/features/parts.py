"""Features of splits (one cell cut in two) and merges (two cells drawn as one)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import Feature
from bridgetrack.features.move import ones
from bridgetrack.features.view import View
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]


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


def _middle(v: View) -> Array:
    (s1, t1), (s2, t2) = _links(v)
    return np.minimum(np.linalg.norm(v.off(s1, t1) + v.off(s2, t2), axis=1) / 2, 5.0)


def _separation(v: View) -> Array:
    a, b = _parts(v)
    return np.minimum(np.linalg.norm(v.position[a] - v.position[b], axis=1) / v.diameter, 5.0)


def _growth(v: View) -> Array:
    a, b = _parts(v)
    return np.abs(np.log((v.area[a] + v.area[b]) / v.area[_whole(v)]))


def _smaller(v: View) -> Array:
    a, b = _parts(v)
    return np.minimum(v.cells.relative_size[a], v.cells.relative_size[b])


def _covered(v: View) -> Array:
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
            _middle,
        ),
        feature(
            "separation",
            f"distance between the {parts} / cell diameter, at most 5",
            "diameters",
            _separation,
        ),
        feature("size_change", f"|log(areas of the {parts} / area of the {whole})|", "1", _growth),
        feature(
            "smaller_part", "log area of the smaller part over the movie's median", "1", _smaller
        ),
        feature(
            "covered", f"share of the {whole} that overlaps the {parts} after shift", "1", _covered
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
