"""Train a model on annotated movies: choose λ, fit, compare with the prior, say how good it is.

Training on annotated movies together: all source, union and transfer (000, section 1.6).

Learning with the help of earlier movies or models: the strategies of 000, Table 1.4, as one.

=========  =========================  ========================================================
strategy   sources                    what is trained
=========  =========================  ========================================================
target     none                       the target's annotations (*partial* or *all target*)
source     annotated movies           the sources' annotations (*all source*)
union      annotated movies           all annotations as one movie
transfer   annotated movies           every movie its own weights, tied together (eq. 1.9)
delta      a model                    a delta function on the source's predictor (004)
prior      a model                    the target's annotations, close to the model's weights
=========  =========================  ========================================================

*Target* is the movie of interest. Whatever is learned is compared with the starting weights on
annotations of the target it was not trained on, and dropped where it is worse.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning import Regularizer
from bridgetrack.learning import train as learn
from bridgetrack.learning.result import Step, TrainingResult
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.joint import Choice, Joint, Movies, States, choose_tie, train_tied
from bridgetrack.training.keep import held_out_of, keep_better, keep_better_tied
from bridgetrack.training.options import ENOUGH_TO_CHOOSE, STEPS, TrainingOptions, default_strength
from bridgetrack.training.outcome import (
    Beginning,
    Learned,
    Training,
    TrainingProgress,
    Transfer,
    choices,
    common_features,
    conclude,
    learning_steps,
    population_of,
)
from bridgetrack.training.sources import Source, as_start, lacking, name_of, split_sources
from bridgetrack.training.sure import hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import balanced, build_training_set
from bridgetrack.training.validation import (
    Validation,
    cross_validate,
    folds_of,
    judge,
    regularizer_of,
)

Array = NDArray[np.float64]


__all__ = ["Training", "TrainingProgress", "train_steps"]


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
    settled = previous if _settled_tie(previous, options, tie, target) else None
    choice = _choice_of(settled)
    if choice is None:
        choice = yield from choose_tie(movies, strategy, options, tie)
        if not choice.states and previous is not None and previous.transfer is not None:
            choice = replace(choice, states=previous.transfer.states)
    result = yield from _fit_together(
        replace(movies, start=choice.start), choice, options, features
    )
    w = result.w if movies.target is None else result.weights[0]
    strength = choice.tie.strength(movies.n)
    verdict = keep_better_tied(movies, target, w, choice, settled)
    learned = Learned(
        replace(result, w=w),
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


def _settled_tie(
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


def _fit_together(
    movies: Movies, choice: Choice, options: TrainingOptions, features: FeatureSet
) -> Steps[TrainingResult]:
    """Fit all annotations."""
    mine = () if movies.target is None else (None,)
    steps = train_tied(movies, choice.tie, options, states=(*mine, *choice.states))
    coupling = choice.tie.coupling(movies.n, movies.prior, movies.tightness)

    def weights_of(step: Step) -> Array:
        return coupling.shared(step.weights) if movies.target is None else step.weights[0]

    return (yield from learning_steps(steps, options.optimiser.precision, features, weights_of))


def _states_of(movies: Movies, result: TrainingResult, choice: Choice) -> States:
    """What a later training can reuse of the sources."""
    if choice.tie.alone:
        return choice.states
    return result.states if movies.target is None else result.states[1:]


Strategy = Literal["target", "source", "union", "transfer", "delta", "prior"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
JOINT = ("source", "union", "transfer")


def strategy_steps(
    strategy: Strategy,
    scenes: Scene | Sequence[Scene],
    sources: Sequence[Source] = (),
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
    tie: float | None = None,
) -> Steps[Training]:
    """Train on one or more annotated movies with the help of sources.

    Parameters
    ----------
    strategy
        One of `STRATEGIES`.
    scenes
        The target: prepared movies with annotations. For ``source``, ``union`` and ``transfer``
        there may be none yet.
    sources
        Models (``delta``, ``prior``: exactly one) or annotated movies (``source``, ``union``,
        ``transfer``: at least one), see `sources.open_source`.
    prior
        Weights that everything stays close to; the shipped ones where None. For ``prior`` and
        ``delta`` the source takes its place, save in features that the source never saw.
    options
        Choices; the defaults need no thought. ``strength`` is lambda.
    previous
        An earlier training: with the same strategy and sources, what is still valid of it is
        used again.
    tie
        rho, for ``transfer``; None: chosen by cross-validation.

    Yields
    ------
    Progress, TrainingProgress

    Returns
    -------
    Training
        Its model's provenance names the strategy and the sources.

    Raises
    ------
    InputError
        Where strategy and sources do not go together, or there is nothing to learn from.
    ModelError
        Where a model was made with other features.
    ContradictionError
        Where annotations exclude each other.
    """
    check_strategy(strategy, sources, prior, tie)
    models, movies = split_sources(sources)
    if previous is not None and previous.origin != origin_of(strategy, sources):
        previous = None
    if strategy in ("source", "union", "transfer"):
        targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
        training = yield from joint_steps(strategy, targets, movies, prior, options, previous, tie)
        return _with_origin(training, strategy, sources)
    if strategy == "target":
        return (yield from train_steps(scenes, prior, options, previous))
    targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
    shipped = prior or shipped_model()
    start, notes = _start_of(strategy, models[0], targets, shipped)
    if previous is None:
        notes += _doubts(start, shipped, targets)
    training = yield from train_steps(targets, start, options, previous)
    return _with_origin(replace(training, notes=training.notes + notes), strategy, sources)


def _start_of(
    strategy: Strategy, source: Model, targets: Sequence[Scene], shipped: Model
) -> tuple[Model, tuple[str, ...]]:
    """The source over the features of the movies, and remarks."""
    if strategy == "prior" or not targets:
        return source, ()
    features = common_features(targets)
    image = any(bool(scene.detections.channels) for scene in targets)
    new = lacking(source, features, image)
    if not new:
        return as_start(source, features, image, shipped), ()
    note = (
        f"{len(new)} features are new to the source {source.name!r} and start from the weights of "
        f"{shipped.name!r}: {', '.join(new)}"
    )
    return as_start(source, features, image, shipped), (note,)


def _doubts(source: Model, shipped: Model, targets: Sequence[Scene]) -> tuple[str, ...]:
    """A remark where the source knows less of the movies than the shipped model."""
    if not any(len(scene.constraints) for scene in targets):
        return ()
    features = common_features(targets)
    model = TrackingModel(build_training_set(targets))
    theirs = judge(model, source.aligned(features))
    ours = judge(model, shipped.aligned(features))
    if theirs.error <= ours.error + 1e-9:
        return ()
    return (
        f"the source {source.name!r} contradicts {100 * theirs.error:.1f} % of the annotations, "
        f"the model {shipped.name!r} only {100 * ours.error:.1f} %: training without this source "
        "may be better",
    )


def check_strategy(
    strategy: str, sources: Sequence[Source], prior: Model | None = None, tie: float | None = None
) -> None:
    """Refuse sources that a strategy cannot use.

    Raises
    ------
    InputError
        The message says what to give instead.
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}"
        )
    models, movies = split_sources(sources)
    if strategy == "target" and sources:
        raise InputError("the strategy target uses no source; leave it out, or choose another one")
    if strategy in JOINT and (models or not movies):
        raise InputError(
            f"the strategy {strategy} learns from annotated movies: give project files as sources"
            + (
                f", not the model {models[0].name!r} (it goes with prior or delta)"
                if models
                else ""
            )
        )
    if strategy in ("delta", "prior") and (movies or len(models) != 1):
        raise InputError(
            f"the strategy {strategy} starts from a model: give exactly one model file as source"
            + (", not annotated movies (they go with transfer or union)" if movies else "")
        )
    if strategy == "prior" and prior is not None:
        raise InputError("the strategy prior takes its source as the prior; leave the other out")
    if tie is not None and strategy != "transfer":
        raise InputError(f"rho ties the movies of transfer; the strategy {strategy} has none")
    if tie is not None and not tie > 0:
        raise InputError(f"rho must be positive, not {tie}")


def origin_of(strategy: str, sources: Sequence[Source]) -> tuple[str, ...]:
    """Strategy and sources, as `Training.origin` keeps them; empty without sources."""
    if not sources:
        return ()
    return (strategy, *(_described(source) for source in sources))


def _described(source: Source) -> str:
    name = name_of(source)
    return name if isinstance(source, Model) else f"{name} ({len(source.constraints)} annotations)"


def _with_origin(training: Training, strategy: str, sources: Sequence[Source]) -> Training:
    """Say in the training, and in its model where it was learned, where it comes from."""
    origin = origin_of(strategy, sources)
    if training.kept != "trained":
        return replace(training, origin=origin)
    more: dict[str, object] = {"strategy": strategy, "sources": list(origin[1:])}
    if training.transfer is not None:
        rho = training.transfer.tie.tie / max(training.n_annotations, 1)
        more["rho"] = rho if math.isfinite(rho) else None
    model = replace(training.model, provenance={**training.model.provenance, **more})
    return replace(training, model=model, origin=origin)
