"""What becomes of learned weights: the events they change, how good they are, and the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning.result import TrainingResult
from bridgetrack.models.model import Model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.assemble import notes_about, trained_model
from bridgetrack.training.compare import choices, compared
from bridgetrack.training.doubts import doubtful_of, notes_on
from bridgetrack.training.estimate import estimate_accuracy
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sure import Granted
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import HeldOut, Validation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Beginning:
    """What a training began with.

    Parameters
    ----------
    scenes
        The movies to learn for.
    features
        Of all movies.
    prior
        The starting model.
    start
        Its weights over the features, shape (d,).
    before
        What it chooses in every movie.
    options
        Choices.
    """

    scenes: Sequence[Scene]
    features: FeatureSet
    prior: Model
    start: Array
    before: Sequence[NDArray[np.bool_]]
    options: TrainingOptions


@dataclass(frozen=True)
class Learned:
    """What was learned and judged.

    Parameters
    ----------
    result
        What the learner reports.
    strength, chosen_by
        The lambda used, and who chose it.
    kept, reason
        ``"trained"`` or ``"prior"``, and why.
    held_out
        What is kept, on annotations that it was not trained on; None where there are too few.
    validation
        The cross-validation, or None.
    """

    result: TrainingResult
    strength: float
    chosen_by: str
    kept: str
    reason: str
    held_out: HeldOut | None
    validation: Validation | None


def conclude(
    beginning: Beginning,
    data: TrainingSet | None,
    learned: Learned,
    settled: Training | None,
    granted: Granted | None,
) -> Steps[Training]:
    """Compare with the starting model, estimate the accuracy and put the model together.

    Parameters
    ----------
    beginning, learned
        Before and after.
    data
        The annotations; None where there were none.
    settled
        An earlier training whose estimate and validation still stand.
    granted
        What the starting weights are sure of; None where that was not asked.
    """
    scenes, options, prior = beginning.scenes, beginning.options, beginning.prior
    weights = learned.result.w if learned.kept == "trained" else beginning.start
    yield Progress("Comparing with the starting model", 0.0)
    comparison = compared(scenes, beginning.before, choices(scenes, weights))
    estimate = None if settled is None else settled.estimate
    if learned.held_out is not None and data is not None:
        estimate = estimate_accuracy(
            learned.held_out.wrong,
            data.event,
            comparison.population,
            bool(data.unbiased.all()),
            options.seed,
        )
    count = 0 if data is None else data.n_annotations
    model = trained_model(
        weights,
        beginning.features,
        prior,
        options,
        learned.strength,
        learned.result,
        scenes,
        count,
        estimate,
    )
    if learned.kept == "prior":
        model = replace(prior, estimate=model.estimate)
    doubtful = doubtful_of(scenes, granted)
    return Training(
        model,
        learned.kept,
        learned.reason,
        learned.strength,
        learned.chosen_by,
        estimate,
        learned.result,
        learned.validation if settled is None else settled.validation,
        comparison.changes,
        comparison.exchanged,
        count,
        (() if data is None else notes_about(scenes, data)) + notes_on(doubtful, granted),
        doubtful=doubtful,
        suited=granted is None or granted.trusted,
    )
