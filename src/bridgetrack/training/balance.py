"""How much kinds of events count that were annotated more often than they occur."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.model import Sample
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]

_STEPS = 4


def balanced(data: TrainingSet, population: Array, balance: float) -> TrainingSet:
    """Count kinds of events less that were annotated more often than they occur.

    People seek out divisions and other rare events. Every annotation of kind e gets the factor
    ``(share of e in the movie / share of e among the annotations) ** balance``, scaled to mean
    1; a sample has the mean of its annotations, rounded to a quarter of an octave so that some
    more annotations leave most factors, and what training has cached, as they were.

    Parameters
    ----------
    data
        The annotated components.
    population
        How often each kind of event occurs in the movies, shape (len(Event),).
    balance
        0 counts annotations as they are, 1 makes them stand for the movie.
    """
    annotated = np.bincount(data.event, minlength=len(population)).astype(np.float64)
    expected = (population + 1.0) / (population + 1.0).sum()
    factor = (expected / np.maximum(annotated / annotated.sum(), 1e-12)) ** balance
    each = factor[data.event]
    each = each / each.mean()
    count = np.bincount(data.annotation_sample, minlength=len(data.samples))
    mean = np.bincount(data.annotation_sample, each, minlength=len(data.samples)) / count
    mean = np.exp2(np.rint(_STEPS * np.log2(mean)) / _STEPS)
    samples = tuple(
        Sample(s.x, s.y_star, (s.key, float(c)), s.version)
        for s, c in zip(data.samples, mean, strict=True)
    )
    return replace(data, importance=mean, samples=samples)
