"""How far the learning of weights has come, for people."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import FeatureSet
from bridgetrack.generators import relayed
from bridgetrack.learning.result import Progress as Step
from bridgetrack.pipeline.progress import Steps
from bridgetrack.training.assemble import plain_model
from bridgetrack.training.outcome import TrainingProgress

Result = TypeVar("Result")


def learning_steps(
    steps: Generator[Step, None, Result],
    precision: float,
    features: FeatureSet,
    weights_of: Callable[[Step], NDArray[np.float64]],
) -> Steps[Result]:
    """Tell of each step how much of the gap is closed, on a log scale, and the best model so far.

    Parameters
    ----------
    steps
        A fit.
    precision
        The gap at which it ends.
    features
        Of the model.
    weights_of
        Those of a step that belong to the movie of interest, shape (d,).
    """
    first: float | None = None

    def told(step: Step) -> TrainingProgress:
        nonlocal first
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / precision + 1e-9)
        return TrainingProgress(
            "Learning",
            float(np.clip(done, 0, 1)),
            step.objective,
            step.gap,
            plain_model(weights_of(step), features),
        )

    return relayed(steps, told)
