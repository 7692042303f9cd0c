"""What the features of a movie's likely events look like: how movies are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import ModelError
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class FeatureStatistics:
    """Counts, means and spreads of every feature over the chosen events of one or more movies.

    Parameters
    ----------
    keys
        Feature names, shape (d,).
    count
        Events that each was measured on, 0 where it is not known (no image, no masks, or no
        such event), shape (d,).
    mean, deviation
        Mean and standard deviation, 0 where the count is, shape (d,).
    quantiles
        At `QUANTILES`, shape (d, 3).
    events
        How many events of every kind were chosen.
    n_cells
        Detections in all frames.
    ndim
        2 or 3.
    """

    keys: tuple[str, ...]
    count: Index
    mean: Array
    deviation: Array
    quantiles: Array
    events: Mapping[str, int] = field(default_factory=dict)
    n_cells: int = 0
    ndim: int = 2

    def __post_init__(self) -> None:
        d = len(self.keys)
        shapes = [self.count.shape, self.mean.shape, self.deviation.shape, self.quantiles.shape]
        if shapes != [(d,), (d,), (d,), (d, len(QUANTILES))]:
            raise ModelError("the feature statistics have different lengths")
        if len(set(self.keys)) < d:
            raise ModelError("the feature statistics name a feature twice")
        numbers = np.concatenate([self.mean, self.deviation, self.quantiles.ravel()])
        if not np.isfinite(numbers).all():
            raise ModelError("the feature statistics hold what is not a finite number")
        if (self.deviation < 0).any() or (self.count < 0).any():
            raise ModelError("the feature statistics hold a negative count or spread")

    def rate(self, event: Event) -> float:
        """Chosen events of a kind per cell; 0 where there are no cells."""
        return self.events.get(event.key, 0) / self.n_cells if self.n_cells else 0.0


def summarise(
    matrix: FeatureMatrix,
    chosen: Mask,
    n_cells: int,
    ndim: int,
    available: frozenset[str] = frozenset(("mask", "image")),
) -> FeatureStatistics:
    """Statistics of the features of chosen events.

    Parameters
    ----------
    matrix
        Features of all hypotheses.
    chosen
        Which of them hold, shape (H,).
    n_cells, ndim
        Of the movie.
    available
        Out of ``"mask"`` and ``"image"``, what the movie has; features that need more are
        marked as not known.
    """
    d = len(matrix.features)
    count, mean, deviation = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    quantiles = np.zeros((d, len(QUANTILES)))
    events = {}
    for event in Event:
        values = matrix.blocks[event][chosen[matrix.rows[event]]].astype(np.float64)
        events[event.key] = len(values)
        if not len(values):
            continue
        block = matrix.features.block(event)
        needed = [f.needs for f in matrix.features.of(event)]
        known = np.asarray([not n or n in available for n in needed], dtype=bool)
        count[block] = np.where(known, len(values), 0)
        mean[block] = np.where(known, values.mean(axis=0), 0.0)
        deviation[block] = np.where(known, values.std(axis=0), 0.0)
        quantiles[block] = np.where(known, np.quantile(values, QUANTILES, axis=0), 0.0).T
    return FeatureStatistics(
        matrix.features.keys, count, mean, deviation, quantiles, events, n_cells, ndim
    )
