"""Colours that stay with a lineage."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = 0.6180339887498949
_SATURATION = np.array([0.8, 0.6, 0.95])
_VALUE = np.array([1.0, 1.0, 0.9])


def lineage_colours(lineage_ids: ArrayLike) -> NDArray[np.float64]:
    """Colours for lineages: bright, and far apart for ids that follow each other.

    The hue moves by the golden ratio from id to id, so that any run of ids spreads evenly over
    the colour circle; saturation and value take turns. Equal ids have equal colours in every
    picture.

    Parameters
    ----------
    lineage_ids
        Shape (n,).

    Returns
    -------
    NDArray
        Red, green, blue from 0 to 1, shape (n, 3).
    """
    ids = np.asarray(lineage_ids, dtype=np.int64)
    hue, kind = (ids * _GOLDEN) % 1.0, ids % 3
    saturation, value = _SATURATION[kind], _VALUE[kind]
    # HSV to RGB: each channel is a trapezoid over the hue, shifted by a third of the circle.
    shifted = (hue[:, None] * 6 + np.array([5.0, 3.0, 1.0])) % 6
    ramp = np.clip(np.minimum(shifted, 4 - shifted), 0, 1)
    rgb = value[:, None] * (1 - saturation[:, None] * ramp)
    # Pure blue is nearly black to the eye: lift dark colours towards white.
    light = (rgb * np.array([0.3, 0.59, 0.11])).sum(axis=1)
    lift = np.clip((0.45 - light) / (1 - light), 0, 1)[:, None]
    return np.asarray(rgb + lift * (1 - rgb))
