"""Training on annotated movies together: all source, union and transfer (000, section 1.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning import JointResult
from bridgetrack.learning.result import Progress as Step
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.balance import balanced
from bridgetrack.training.choose_tie import Choice, Joint, choose_tie
from bridgetrack.training.compare import choices, common_features, population_of
from bridgetrack.training.conclude import Beginning, Learned, conclude
from bridgetrack.training.keep_tied import keep_better_tied
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training, Transfer
from bridgetrack.training.progress import learning_steps
from bridgetrack.training.sources import name_of
from bridgetrack.training.sure import hold_sure
from bridgetrack.training.tied import Movies, States, train_tied
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set

Array = NDArray[np.float64]


def joint_steps(
    strategy: Joint,
    targets: Sequence[Scene],
    sources: Sequence[Scene],
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
    tie: float | None = None,
) -> Steps[Training]:
    """Train on several annotated movies; see `strategies.strategy_steps`."""
    options, prior = options or TrainingOptions(), prior or shipped_model()
    _check(targets, sources, options)
    yield Progress("Collecting annotations", 0.0)
    features = common_features([*targets, *sources])
    start = prior.aligned(features)
    before = choices(targets, start)
    target, granted = None, None
    if any(len(scene.constraints) for scene in targets):
        target = _model_of(targets, before, options)
        # earlier movies hold the weights already: these answers are only to be looked at again
        granted = hold_sure(target.data, start) if options.hold_sure else None
    others = tuple(_model_of([source], choices([source], start), options) for source in sources)
    learnt_from = None if strategy == "source" else target
    movies = Movies(learnt_from, others, start, prior.tied(features))
    settled = previous if _settled(previous, options, tie, target) else None
    choice = _choice_of(settled)
    if choice is None:
        choice = yield from choose_tie(movies, strategy, options, tie)
        if not choice.states and previous is not None and previous.transfer is not None:
            choice = replace(choice, states=previous.transfer.states)
    result = yield from _fit(replace(movies, start=choice.start), choice, options, features)
    w = result.shared if movies.target is None else result.weights[0]
    strength = choice.tie.strength(movies.n)
    verdict = keep_better_tied(movies, target, w, choice, settled)
    learned = Learned(
        replace(result.of(0), w=w),
        strength,
        choice.by,
        verdict.kept,
        verdict.reason,
        verdict.held_out,
        verdict.validation(strength),
    )
    beginning = Beginning(targets, features, prior, start, before, options)
    data = None if target is None else target.data
    training = yield from conclude(beginning, data, learned, settled, granted)
    transfer = Transfer(
        choice.tie,
        result,
        tuple(m.data.n_annotations for m in others),
        choice.trials,
        _states_of(movies, result, choice),
        choice.start,
    )
    return replace(training, transfer=transfer)


def _check(targets: Sequence[Scene], sources: Sequence[Scene], options: TrainingOptions) -> None:
    if options.regularizer != "l2":
        raise InputError("learning from several movies together needs the regularizer l2")
    if not targets:
        raise InputError("there is no movie to learn for")
    empty = next((source for source in sources if not len(source.constraints)), None)
    if empty is not None:
        raise InputError(
            f"there is nothing to learn from in the earlier movie {name_of(empty)}: it has no "
            "usable annotations; annotate it, or leave it out"
        )


def _model_of(
    scenes: Sequence[Scene], chosen: Sequence[NDArray[np.bool_]], options: TrainingOptions
) -> TrackingModel:
    population = population_of(scenes, chosen)
    return TrackingModel(balanced(build_training_set(scenes), population, options.balance))


def _settled(
    previous: Training | None, options: TrainingOptions, tie: float | None, target: object
) -> bool:
    """Whether the tie and what to keep need not be found anew."""
    return (
        previous is not None
        and previous.transfer is not None
        and bool(previous.transfer.trials)
        and previous.kept == "trained"
        and options.strength is None
        and tie is None
        and target is not None
    )


def _choice_of(settled: Training | None) -> Choice | None:
    """The choice of an earlier training that still stands."""
    if settled is None or settled.transfer is None:
        return None
    earlier = settled.transfer
    return Choice(earlier.tie, "previous training", states=earlier.states, start=earlier.start)


def _fit(
    movies: Movies, choice: Choice, options: TrainingOptions, features: FeatureSet
) -> Steps[JointResult]:
    """Fit all annotations."""
    mine = () if movies.target is None else (None,)
    steps = train_tied(movies, choice.tie, options, states=(*mine, *choice.states))
    coupling = choice.tie.coupling(movies.n, movies.prior, movies.tightness)

    def weights_of(step: Step) -> Array:
        return coupling.shared(step.weights) if movies.target is None else step.weights[0]

    return (yield from learning_steps(steps, options.optimiser.precision, features, weights_of))


def _states_of(movies: Movies, result: JointResult, choice: Choice) -> States:
    """What a later training can reuse of the sources."""
    if choice.tie.alone:
        return choice.states
    return result.states if movies.target is None else result.states[1:]
