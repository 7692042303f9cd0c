"""Train a model on annotated movies: choose λ, fit, compare with the prior, say how good it is."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.generators import relayed
from bridgetrack.learning import Regularizer
from bridgetrack.learning import train as learn
from bridgetrack.learning.result import TrainingResult
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.balance import balanced
from bridgetrack.training.compare import choices, common_features, population_of
from bridgetrack.training.conclude import Beginning, Learned, conclude
from bridgetrack.training.keep import held_out_of, keep_better
from bridgetrack.training.options import ENOUGH_TO_CHOOSE, STEPS, TrainingOptions, default_strength
from bridgetrack.training.outcome import Training, TrainingProgress
from bridgetrack.training.progress import learning_steps
from bridgetrack.training.sure import hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set
from bridgetrack.training.validation import (
    Validation,
    cross_validate,
    folds_of,
    regularizer_of,
)

__all__ = ["Training", "TrainingProgress", "train_steps"]

Array = NDArray[np.float64]


def train_steps(
    scenes: Scene | Sequence[Scene],
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
) -> Steps[Training]:
    """Train on one or more annotated movies.

    Parameters
    ----------
    scenes
        Prepared movies with annotations (`pipeline.scene`).
    prior
        Weights to start from and to stay close to; those of the shipped model where None.
    options
        Choices; the defaults need no thought.
    previous
        An earlier training on (mostly) the same annotations: what is still valid of it is used
        again. Where it kept a trained model after cross-validation, so are λ, that verdict and
        the estimate; otherwise all three are found anew.

    Yields
    ------
    Progress, TrainingProgress

    Returns
    -------
    Training

    Raises
    ------
    InputError
        Where no annotation says anything, or the movies differ in their features.
    ModelError
        Where the prior was made with other features; the message names them.
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    scenes = [scenes] if isinstance(scenes, Scene) else list(scenes)
    options = options or TrainingOptions()
    prior = prior or shipped_model()
    if not scenes:
        raise InputError("there is no movie to learn from")
    yield Progress("Collecting annotations", 0.0)
    features = common_features(scenes)
    start, tightness = prior.aligned(features), prior.tied(features)
    found = build_training_set(scenes)
    before = choices(scenes, start)
    data = balanced(found, population_of(scenes, before), options.balance)
    granted = hold_sure(data, start) if options.hold_sure else None
    model = TrackingModel(data if granted is None else granted.data)
    settled = previous if _settled(previous, options) else None
    strength, chosen_by, validation = yield from _choose(model, start, tightness, options, settled)
    result = yield from _fit(
        model, regularizer_of(options, strength, start, tightness), options, features, previous
    )
    kept, reason = keep_better(model, start, result.w, strength, validation, settled)
    judged = held_out_of(validation, strength, kept)
    learned = Learned(result, strength, chosen_by, kept, reason, judged, validation)
    beginning = Beginning(scenes, features, prior, start, before, options)
    return (yield from conclude(beginning, data, learned, settled, granted))


def _settled(previous: Training | None, options: TrainingOptions) -> bool:
    """Whether λ and what to keep need not be found anew; a transfer means others by them."""
    return (
        previous is not None
        and previous.validation is not None
        and previous.kept == "trained"
        and previous.transfer is None
        and options.strength is None
    )


def _choose(
    model: TrackingModel,
    prior: Array,
    tightness: Array | None,
    options: TrainingOptions,
    settled: Training | None,
) -> Generator[Progress, None, tuple[float, str, Validation | None]]:
    """λ, how it was chosen, and the cross-validation."""
    if settled is not None:
        return settled.strength, "previous training", None
    fold = folds_of(model.data, options.folds)
    if fold is None:
        if options.strength is not None:
            return options.strength, "user", None
        return default_strength(model.data.n_annotations), "default", None
    usual = default_strength(model.data.n_annotations)
    choose = options.strength is None and model.data.n_annotations >= ENOUGH_TO_CHOOSE
    strengths = tuple(usual * step for step in STEPS) if choose else (options.strength or usual,)
    steps = cross_validate(model, prior, options, fold, strengths, tightness)
    validation = yield from relayed(
        steps, lambda step: Progress("Checking on annotations held out", step[0])
    )
    by = "cross-validation" if choose else "default" if options.strength is None else "user"
    return validation.strengths[validation.best], by, validation


def _fit(
    model: TrackingModel,
    regularizer: Regularizer,
    options: TrainingOptions,
    features: FeatureSet,
    previous: Training | None,
) -> Generator[Progress, None, TrainingResult]:
    """Fit all annotations."""
    steps = learn(
        model,
        model.data.samples,
        regularizer,
        n_annotations=float(model.data.n_annotations),
        loss=options.loss,
        treatment=options.treatment,
        options=options.optimiser,
        state=None if previous is None else previous.state,
    )
    precision = options.optimiser.precision
    return (yield from learning_steps(steps, precision, features, lambda step: step.weights))
