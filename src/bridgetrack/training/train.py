"""Train a model on annotated movies, with the help of earlier movies or models if there are any.

The strategies of 000, Table 1.4, are one training:

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

*Target* is the movie of interest. Annotations are collected, what holds the weights is chosen by
cross-validation, all annotations are fitted, and what was learned is compared with the starting
weights on annotations of the target it was not trained on, and dropped where it is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning import TrainingResult, TrainingStep
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, NoteKind
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps, begin, relayed
from bridgetrack.spread import Workers
from bridgetrack.training.components import build_training_set
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy
from bridgetrack.training.fit import (
    Fit,
    HoldChoice,
    Joint,
    Movies,
    States,
    Tie,
    Trying,
    choose_strength,
    choose_tie,
)
from bridgetrack.training.keep import Decision, keep_better
from bridgetrack.training.kinds import STAGE
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import (
    Training,
    TrainingProgress,
    choices,
    common_features,
    exchanged,
    notes_about,
    per_kind,
    plain_model,
    population_of,
    trained_model,
    unfinished_notes,
)
from bridgetrack.training.reach import Reached, within_reach
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
from bridgetrack.training.sure import SureEvents, hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced
from bridgetrack.training.validation import HeldOut, folds_of, judge, judge_folds

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def train_steps(
    scenes: Scene | Sequence[Scene],
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    chosen: Sequence[Mask] | None = None,
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
    chosen
        The hypotheses that the prior's weights choose in each movie under its annotations, where
        that is known already (``Tracking.solution.chosen``); found anew where None.

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
    targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
    start, options = prior or shipped_model(), options or TrainingOptions()
    return _train("target", targets, (), start, options, chosen=chosen)


def strategy_steps(
    strategy: Strategy,
    scenes: Scene | Sequence[Scene],
    sources: Sequence[Source] = (),
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    tie: float | None = None,
    workers: Workers | None = None,
) -> Steps[Training]:
    """Train on one or more annotated movies with the help of sources.

    Parameters
    ----------
    strategy
        One of `STRATEGIES`.
    scenes, options
        As in `train_steps`. For ``source``, ``union`` and ``transfer`` there may be no annotations
        yet.
    sources
        Models (``delta``, ``prior``: exactly one) or annotated movies (``source``, ``union``,
        ``transfer``: at least one), see `sources.open_source`.
    prior
        Weights that everything stays close to; the shipped ones where None. For ``prior`` and
        ``delta`` the source takes its place, save in features that the source never saw.
    tie
        rho, for ``transfer``; None: chosen by cross-validation.
    workers
        Who fits the folds of the cross-validation; this process where None. The same comes of it.

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
    ModelError, ContradictionError
        As `train_steps`.
    """
    check_strategy(strategy, sources, prior, tie)
    models, movies = split_sources(sources)
    targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
    origin = origin_of(strategy, sources)
    start = prior or shipped_model()
    notes: tuple[Note, ...] = ()
    if models:
        start, notes = _start_of(strategy, models[0], targets, start)
    options = options or TrainingOptions()
    training = yield from _train(strategy, targets, movies, start, options, tie, workers=workers)
    training = replace(training, notes=(*training.notes, *notes), origin=origin)
    if not origin or training.kept != "trained":
        return training
    more: dict[str, object] = {"strategy": strategy, "sources": list(origin[1:])}
    if training.transfer is not None:
        rho = training.transfer.tie.tie / max(training.n_annotations, 1)
        more["rho"] = rho if math.isfinite(rho) else None
    provenance = {**training.model.provenance, **more}
    return replace(training, model=replace(training.model, provenance=provenance))


def tracking_model(
    data: TrainingSet,
    population: Array,
    start: Array,
    options: TrainingOptions,
    *,
    alone: bool = True,
    earlier: TrackingModel | None = None,
    known: SureEvents | None = None,
) -> tuple[TrackingModel, SureEvents | None]:
    """What training learns from: annotations weighted by how often their kinds of events occur.

    Parameters
    ----------
    data
        The annotated components.
    population
        How often each kind of event occurs in the movies, shape (len(Event),).
    start
        The starting weights, shape (d,).
    options
        Choices.
    alone
        Whether events that the starting weights are sure of are held. Earlier movies hold the
        weights already: with them, answers that contradict such events are only to be looked at.
    earlier, known
        Of an earlier call for other annotations of the same movie: it saves time.

    Returns
    -------
    model, sure
        ``sure`` is None where the options do not ask for it.
    """
    data = balanced(data, population, options.balance)
    sure = hold_sure(data, start, known) if options.hold_sure else None
    held = data if sure is None or not alone else sure.data
    return TrackingModel(held, earlier=earlier), sure


def _train(
    strategy: Strategy,
    targets: Sequence[Scene],
    sources: Sequence[Scene],
    prior: Model,
    options: TrainingOptions,
    tie: float | None = None,
    chosen: Sequence[Mask] | None = None,
    workers: Workers | None = None,
) -> Steps[Training]:
    """Collect, choose, fit, compare, conclude."""
    _check(targets, sources, options)
    yield begin("Collecting annotations")
    features = common_features([*targets, *sources])
    start = prior.aligned(features)
    before = choices(targets, start) if chosen is None else list(chosen)
    target, sure = None, None
    if not sources or any(len(scene.constraints) for scene in targets):
        found, kinds = build_training_set(targets), population_of(targets, before)
        target, sure = tracking_model(found, kinds, start, options, alone=not sources)
    others = []
    for source in sources:
        kinds = population_of([source], choices([source], start))
        data = balanced(build_training_set([source]), kinds, options.balance)
        others.append(TrackingModel(data))
    learnt_from = None if strategy == "source" else target
    movies = Movies(learnt_from, tuple(others), start, prior.tightness_for(features))
    choosing = _choose(strategy, movies, options, tie, workers)
    choice = yield from relayed(choosing, partial(_kept_meanwhile, features=features, start=start))
    movies = replace(movies, start=choice.start)
    mine: States = () if movies.target is None else (None,)
    steps = movies.fit(choice.hold, options, states=(*mine, *choice.states))
    fitted = yield from _told(steps, options.optimiser.precision, features, start)
    decision = keep_better(movies, target, fitted.w, choice)
    yield Progress(STAGE, 0.0)
    # who gives λ wants these weights; earlier movies vouch for what they overturn
    priced = options.strength is None
    held = sure if priced and not sources else None
    kept = start + decision.share * (fitted.w - start)
    reaching = within_reach(targets, start, kept, before, held, sources=sources, priced=priced)
    reached = (yield from reaching) if decision.share else Reached(start, before)
    population = population_of(targets, reached.chosen)
    known = None if target is None else target.data
    estimate = None
    if decision.held_out is not None and target is not None:
        unseen = _as_kept(target, movies, decision, reached, options) or decision.held_out
        estimate = _estimated(target, unseen, reached.weights, population)
    hold, count = choice.hold, 0 if known is None else known.n_annotations
    strength = hold.strength(movies.n) if isinstance(hold, Tie) else hold
    validation = choice.validation or decision.validation(strength)
    doubtful = () if sure is None else sure.doubtful(targets)
    notes = () if known is None else notes_about(targets, known)
    notes = (*notes, *unfinished_notes(choice.unfinished), *reached.notes)
    model = prior
    if decision.share:
        plain, step = plain_model(reached.weights, features), decision.share * reached.step
        model = trained_model(plain, prior, options, strength, fitted, targets, known, step)
    return Training(
        model=replace(model, estimate={} if estimate is None else estimate.to_json()),
        decision=decision,
        choice=replace(choice, validation=validation),
        strength=strength,
        estimate=estimate,
        result=fitted,
        changes=per_kind(population_of(targets, before), population),
        exchanged=per_kind(*(population_of(targets, c) for c in exchanged(before, reached.chosen))),
        n_annotations=count,
        notes=(*notes, *(() if sure is None else sure.notes(doubtful))),
        doubtful=doubtful,
        suited=sure is None or sure.trusted,
        held=0 if known is None else known.n_held,
        held_weight=0.0 if known is None else known.held_weight,
        step=decision.share * reached.step,
    )


def _as_kept(
    target: TrackingModel,
    movies: Movies,
    decision: Decision,
    reached: Reached,
    options: TrainingOptions,
) -> HeldOut | None:
    """What models that have not seen the answers do, changed as the model that is kept was.

    How far it was taken, and at which prices, hangs on all answers. None where it was not changed
    after it was judged.
    """
    known = decision.held
    if reached.as_learned or known is None or known.learned is None:
        return None
    start = movies.prior
    fold = folds_of(target.data, options.folds) if len(known.learned) > 1 else None
    if fold is None:
        fold = np.zeros(len(target.data.samples), dtype=np.int64)
    gone = start + decision.share * (known.learned - start)
    return judge_folds(target, np.stack([reached.alike(start, w) for w in gone]), fold)


def _estimated(
    target: TrackingModel, held_out: HeldOut, weights: Array, population: Array
) -> ErrorEstimate:
    """How right the kept model of some weights (d,) is."""
    data, seen = target.data, judge(target, weights).wrong
    if not data.drawn.all():
        part = data.annotation_sample
        return estimate_accuracy(held_out.wrong, data.event, population, False, part, seen)
    # Drawn one by one, they are independent however errors lie together in the movie.
    return estimate_accuracy(
        held_out.wrong, data.event, population, True, None, seen, chance=data.drawn
    )


def _check(targets: Sequence[Scene], sources: Sequence[Scene], options: TrainingOptions) -> None:
    """Refuse movies that nothing can be learned from."""
    if sources and options.regularizer != "l2":
        raise InputError("learning from several movies together needs the regularizer l2")
    if not targets:
        raise InputError("there is no movie to learn from")
    for source in sources:
        if not len(source.constraints):
            raise InputError(
                f"there is nothing to learn from in the earlier movie {name_of(source)}: it has no "
                "usable annotations; annotate it, or leave it out"
            )


def _choose(
    strategy: Strategy,
    movies: Movies,
    options: TrainingOptions,
    tie: float | None,
    workers: Workers | None,
) -> Steps[HoldChoice]:
    """What holds the weights."""
    if not movies.sources:
        return choose_strength(movies, options, workers)
    assert strategy in get_args(Joint)
    joint: Joint = strategy  # type: ignore[assignment]
    return choose_tie(movies, joint, options, tie, workers)


def _kept_meanwhile(step: Progress, features: FeatureSet, start: Array) -> Progress:
    """The step, with the model to keep where training is cancelled while λ is chosen."""
    if not isinstance(step, Trying) or step.weights is None:
        return step
    return TrainingProgress(step.stage, step.done, model=_learned(step.weights, features, start))


def _learned(weights: Array, features: FeatureSet, start: Array) -> Model | None:
    """The model of these weights (d,); None while they are those that training began with."""
    return None if np.array_equal(weights, start) else plain_model(weights, features)


def _told(
    steps: Fit, precision: float, features: FeatureSet, start: Array
) -> Steps[TrainingResult]:
    """Tell how much of the gap is closed, on a log scale, and the best model so far."""
    first: float | None = None

    def told(step: TrainingStep) -> TrainingProgress:
        nonlocal first
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / precision + 1e-9)
        return TrainingProgress(
            "Learning",
            float(np.clip(done, 0, 1)),
            step.objective,
            step.gap,
            _learned(step.weights, features, start),
        )

    return relayed(steps, told)


def _start_of(
    strategy: Strategy, source: Model, targets: Sequence[Scene], shipped: Model
) -> tuple[Model, tuple[Note, ...]]:
    """The source over the features of the movies, and remarks."""
    start, notes = source, []
    if strategy == "delta" and targets:
        features = common_features(targets)
        image = any(bool(scene.detections.channels) for scene in targets)
        start, new = as_start(source, features, image, shipped), lacking(source, features, image)
        if new:
            notes.append(
                f"{len(new)} features are new to the source {source.name!r} and start from the "
                f"weights of {shipped.name!r}: {', '.join(new)}"
            )
    if any(len(scene.constraints) for scene in targets):
        features = common_features(targets)
        model = TrackingModel(build_training_set(targets))
        theirs = judge(model, start.aligned(features))
        ours = judge(model, shipped.aligned(features))
        if theirs.error > ours.error + 1e-9:
            notes.append(
                f"the source {start.name!r} contradicts {100 * theirs.error:.1f} % of the "
                f"annotations, the model {shipped.name!r} only {100 * ours.error:.1f} %: training "
                "without this source may be better"
            )
    return start, tuple(Note(NoteKind.REMARK, words) for words in notes)
