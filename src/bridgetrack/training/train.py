"""Train a model on an annotated movie, with the help of earlier movies or models if there are any.

The strategies of 000, Table 1.4, are one training:

=========  =========================  ========================================================
strategy   sources                    what is trained
=========  =========================  ========================================================
target     none                       the target's annotations (*partial* or *all target*)
source     annotated movies           the sources' annotations (*all source*)
union      annotated movies           all annotations as one movie
transfer   annotated movies           own weights for every movie, tied (eq. 1.9)
delta      a model                    a delta function on the source's predictor (004)
prior      a model                    the target's annotations, close to the model's weights
=========  =========================  ========================================================

*Target* is the movie of interest. Annotations are collected, and the weights w that are kept go
from the starting ones w0 towards those that minimise the objective,

    J(w) = lambda / 2 (w - w0)' M (w - w0) + risk of the answers
    w = w0 + s (argmin J - w0),    s by `fit.share_of_step`

Cross-validation estimates how accurate they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning import TrainingStep
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy
from bridgetrack.training.fit import (
    Objective,
    annotations_of,
    errors_of,
    folds_of,
    learn,
)
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.outcome import (
    Training,
    TrainingProgress,
    choice,
    per_kind,
    plain_model,
    population_of,
    remarks,
    trained_model,
)
from bridgetrack.training.sources import (
    Source,
    Strategy,
    as_start,
    check_strategy,
    lacking,
    name_of,
    origin_of,
    split_sources,
)
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import balanced, build_training_set

TIE = 100.0
"""``rho n`` of transfer with n annotations of the target."""

COMPARING = "Comparing with the starting model"


def train_steps(
    scene: Scene,
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    *,
    strategy: Strategy = "target",
    sources: Sequence[Source] = (),
    chosen: Mask | None = None,
    judge: bool = True,
) -> Steps[Training]:
    """Train on an annotated movie, with the help of sources if there are any.

    Parameters
    ----------
    scene
        A prepared movie with annotations (`pipeline.scene`); the annotations are optional for
        ``source``, ``union`` and ``transfer``.
    prior
        Weights to start from and to stay close to; those of the shipped model if None. For
        ``prior`` and ``delta`` the source takes its place, except for features that the source
        does not have.
    options
        Choices; the defaults suit most cases.
    strategy
        One of `STRATEGIES`.
    sources
        Models (``delta``, ``prior``: exactly one) or annotated movies (``source``, ``union``,
        ``transfer``: at least one), see `sources.open_source`.
    chosen
        The hypotheses that the prior's weights choose under the annotations, where that is known
        already (``Tracking.solution.chosen``); computed if None.
    judge
        Whether the accuracy is estimated by cross-validation; otherwise `Training.judged` does it
        later.

    Yields
    ------
    Progress, TrainingProgress

    Returns
    -------
    Training
        Its model's provenance names the strategy and the sources, where there are any.

    Raises
    ------
    InputError
        If strategy and sources do not fit each other, no annotation can be used, or the movies
        differ in their features.
    ModelError
        If the prior was made with other features; the message names them.
    ContradictionError
        If annotations exclude each other; the message names them.
    """
    check_strategy(strategy, sources, prior)
    models, movies = split_sources(sources)
    start, options = prior or shipped_model(), options or TrainingOptions()
    notes: tuple[Note, ...] = ()
    if models:
        start, notes = _start_of(strategy, models[0], scene, start)
    training = yield from _train(strategy, scene, movies, start, options, chosen)
    origin = origin_of(strategy, sources)
    if origin:
        more: dict[str, object] = {"strategy": strategy, "sources": list(origin[1:])}
        if training.rho is not None:
            more["rho"] = training.rho if math.isfinite(training.rho) else None
        model = replace(training.model, provenance={**training.model.provenance, **more})
        training = replace(training, model=model, origin=origin)
    training = replace(training, notes=(*training.notes, *notes))
    return (yield from training.judged()) if judge else training


def _train(
    strategy: Strategy,
    scene: Scene,
    sources: Sequence[Scene],
    prior: Model,
    options: TrainingOptions,
    chosen: Mask | None,
) -> Steps[Training]:
    """Collect, fit, take the step, compare; what is returned can be judged."""
    features = scene.matrix.features
    _check(features, sources, options)
    yield begin("Collecting annotations")
    start = prior.aligned(features)
    before = choice(scene, start) if chosen is None else chosen
    data, others = None, []
    if not sources or len(scene.constraints):
        data = balanced(build_training_set(scene), population_of(scene, before))
    for source in sources:
        kinds = population_of(source, choice(source, start))
        others.append(TrackingModel(balanced(build_training_set(source), kinds)))
    target = None if data is None else TrackingModel(data)
    learned_from = None if strategy == "source" else target
    n = annotations_of(learned_from, others)
    lambda_, rho = options.lambda_ or (1.0 / n if sources else default_lambda(int(n))), math.inf
    if strategy == "transfer":
        rho = TIE / n
    metric = prior.tightness_for(features)
    objective = Objective(learned_from, tuple(others), start, metric, lambda_, rho, options)
    precision = options.precision
    learned = yield from learn(objective, scene, _told(precision, features, start))
    weights, step, fitted = learned.weights, learned.step, learned.result
    assert fitted is not None
    yield Progress(COMPARING, 0.0)
    after = choice(scene, weights)
    population = population_of(scene, after)

    def judged(training: Training) -> Steps[Training]:
        unseen = None  # errors on annotations that models have not seen, where there are enough
        if target is not None and learned_from is None:  # learned from other movies only
            unseen = errors_of(target, weights)
        elif target is not None and (fold := folds_of(target.data)) is not None:
            again = replace(objective, state=fitted.state)
            unseen = yield from again.held_out_errors(step, fold)
        estimate = None
        if target is not None and unseen is not None:
            estimate = _estimated(target, unseen, weights, population)
        return replace(
            training,
            model=replace(training.model, estimate={} if estimate is None else estimate.to_json()),
            words=_compared(target, unseen, start),
            estimate=estimate,
            notes=training.notes if estimate is None else (*training.notes, *estimate.warnings),
        )

    unusual, suited, notes = ((), True, ()) if data is None else remarks(scene, data, start)
    plain = plain_model(weights, features)
    return Training(
        model=trained_model(plain, prior, options, lambda_, fitted, scene, data, step),
        lambda_=lambda_,
        rho=rho if sources else None,
        step=step,
        result=replace(fitted, state=None),  # it holds the solvers
        changes=per_kind(scene, before, after),
        exchanged=per_kind(scene, after & ~before, before & ~after),
        n_annotations=0 if data is None else data.n_annotations,
        notes=notes,
        unusual=unusual,
        suited=suited,
        judge=judged,
    )


def _compared(target: TrackingModel | None, unseen: Array | None, start: Array) -> str:
    """Errors of the trained and the starting model on held-out answers, as a sentence."""
    if target is None:
        return (
            "nothing was annotated in this movie: the weights of the earlier movies are used "
            "without a test"
        )
    if unseen is None:
        return "there were too few answers to test the model on held-out ones"
    errors = unseen, errors_of(target, start)  # fractions where an answer leaves several events
    trained, started = (f"{round(float(e.sum()), 1):g}" for e in errors)
    return (
        f"of {plural(len(unseen), 'held-out answer')} the trained model gets {trained} wrong, the "
        f"starting model {started}"
    )


def _estimated(
    target: TrackingModel, unseen: Array, weights: Array, population: Array
) -> ErrorEstimate:
    """How accurate the model of some weights (d,) is."""
    data, seen = target.data, errors_of(target, weights)
    if not data.drawn.all():
        part = data.annotation_sample
        return estimate_accuracy(unseen, data.event, population, False, part, seen)
    # Drawn one by one, they are independent even if errors in the movie are not.
    return estimate_accuracy(unseen, data.event, population, True, None, seen, chance=data.drawn)


def _check(features: FeatureSet, sources: Sequence[Scene], options: TrainingOptions) -> None:
    """Refuse earlier movies that cannot be learned from."""
    if sources and options.regularizer != "l2":
        raise InputError("learning from several movies needs the regularizer l2")
    for source in sources:
        differing = sorted(set(features.keys) ^ set(source.matrix.features.keys))
        if differing or features.keys != source.matrix.features.keys:
            raise InputError(
                f"the earlier movie {name_of(source)} does not have the same features "
                f"({', '.join(differing) or 'in another order'}); prepare both with the same ones"
            )
        if not len(source.constraints):
            raise InputError(
                f"the earlier movie {name_of(source)} has no usable annotations; annotate it, or "
                "leave it out"
            )


def _told(
    precision: float, features: FeatureSet, start: Array
) -> Callable[[TrainingStep], TrainingProgress]:
    """Reports how much of the gap is closed, on a log scale, and the best model so far."""
    first: float | None = None

    def told(step: TrainingStep) -> TrainingProgress:
        nonlocal first
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / precision + 1e-9)
        learned = not np.array_equal(step.weights, start)
        model = plain_model(step.weights, features) if learned else None
        done = float(np.clip(done, 0, 1))
        return TrainingProgress("Learning", done, step.objective, step.gap, model)

    return told


def _start_of(
    strategy: Strategy, source: Model, scene: Scene, shipped: Model
) -> tuple[Model, tuple[Note, ...]]:
    """The source over the features of the movie, and remarks."""
    if strategy != "delta":
        return source, ()
    features, image = scene.matrix.features, bool(scene.detections.channels)
    start, new = as_start(source, features, image, shipped), lacking(source, features, image)
    if not new:
        return start, ()
    words = (
        f"{len(new)} features are new to the source {source.name!r} and start from the weights of "
        f"{shipped.name!r}: {', '.join(new)}"
    )
    return start, (Note(NoteKind.REMARK, words),)
