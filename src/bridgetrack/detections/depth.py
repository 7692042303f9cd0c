"""How far the slices of a stack lie apart, where nobody says it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from bridgetrack.detections.labels import checked_labels, foreground
from bridgetrack.detections.measure import moments
from bridgetrack.errors import BridgetrackWarning
from bridgetrack.movie.movie import Movie

_FRAMES = 3
"""Frames that are looked at."""
_CELLS = 5
"""Whole cells that it takes at least."""
_CLEAR = 1.5
"""Cells differ from balls by as much; a smaller ratio says nothing of the slices."""


def with_slice_distance(labels: Movie) -> Movie:
    """The same movie with slices as far apart as its cells say, where its scale is unknown.

    Cells are taken to reach as far along z as across, on the median.

    Warns
    -----
    BridgetrackWarning
        Where they are taken to be farther apart than its pixels.
    """
    geometry = labels.geometry
    if geometry.ndim == 2 or geometry.unit != "pixel" or set(geometry.scale) != {1.0}:
        return labels
    ratio = float(f"{_ratio(labels):.2g}")
    if ratio < _CLEAR:
        return labels
    warnings.warn(
        f"{labels.source}: the scale is unknown; slices are taken to be {ratio:g} pixels apart, as "
        "cells reach over so few of them; give the scale of z, y and x if this is wrong",
        BridgetrackWarning,
        stacklevel=2,
    )
    return replace(labels, geometry=replace(geometry, scale=(ratio, 1.0, 1.0)))


def _ratio(labels: Movie) -> float:
    """Spread of the pixels of a cell across over that along z, in pixels; 1 where cells are few."""
    found = []
    for t in np.unique(np.linspace(0, labels.n_frames - 1, _FRAMES).astype(int)).tolist():
        cells = foreground(checked_labels(labels, t))
        z, last = cells.index[0], cells.shape[0] - 1
        cut = np.unique(cells.owner[(z == 0) | (z == last)])
        whole = np.setdiff1d(np.arange(len(cells.labels)), cut)
        _, _, spread = moments(cells, np.ones(3))
        along, across = spread[whole, 0, 0], (spread[whole, 1, 1] + spread[whole, 2, 2]) / 2
        found.append(np.sqrt(across / along))
    every = np.concatenate(found)
    return float(np.median(every)) if len(every) >= _CELLS else 1.0
