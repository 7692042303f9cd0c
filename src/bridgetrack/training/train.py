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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from bridgetrack.annotations.annotation import Annotation, describe
from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InfeasibleError, InputError, Note, NoteKind, plural
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.learning import TrainingResult, TrainingStep
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import explain_contradiction
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy, weights_of_kinds
from bridgetrack.training.fit import (
    CONFIDENT,
    UNUSUAL,
    Objective,
    annotations_of,
    errors_of,
    explained_by_slips,
    learn,
    margins_of_answers,
)
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.sources import (
    Source,
    Strategy,
    as_start,
    check_strategy,
    described,
    name_of,
)
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced, build_training_set

TIE = 100.0
"""``rho n`` of transfer with n annotations of the target."""

COMPARING = "Comparing with the starting model"

WORSE = "worse than before on held-out answers: give more answers, or keep the earlier model"
"""What is told of a model that makes more errors than the one that it started from."""

_LISTED = 3
"""Unusual answers that a note lists."""


@dataclass(frozen=True)
class Training:
    """A finished training."""

    model: Model  # the trained model
    lambda_: float  # the λ used
    # how strongly the weights of several movies were tied; infinite: the same weights
    rho: float | None
    step: float  # share of the step from the starting to the fitted weights that was taken
    result: TrainingResult  # result of the learner
    # events chosen with the prior and with the new model, and those gained and lost, per kind
    changes: dict[str, tuple[int, int, int, int]]
    n_annotations: int  # annotations used
    # notes: annotations that were not used, kinds of events without annotations
    notes: tuple[Note, ...]
    # strategy and names of the sources, if there were any (`train.train_steps`)
    origin: tuple[str, ...] = ()
    # annotations that contradict the starting model by a wide margin; most of them are mistakes,
    # unless there are many
    unusual: tuple[Annotation, ...] = ()
    # whether mistakes can explain their number; otherwise the starting model does not suit the
    # movie
    suited: bool = True
    # errors of the trained and the starting model on held-out answers, as a sentence; empty until
    # it is judged
    words: str = ""
    # these errors, of the one and the other; None where there are too few answers
    errors: tuple[float, float] | None = None
    # accuracy on held-out annotations; None if there are too few, or until it is judged
    estimate: ErrorEstimate | None = None
    # makes the same training with ``words`` and ``estimate``
    judge: Callable[[Training], Steps[Training]] | None = field(default=None, repr=False)

    def judged(self) -> Steps[Training]:
        """The same with the cross-validated accuracy of the model."""
        if self.judge is None:
            return self
        return replace((yield from self.judge(self)), judge=None)


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
        ``prior`` and ``delta`` the source takes its place; with ``delta`` features that the source
        does not have start from these.
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
    Progress

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
    start = prior or shipped_model()
    notes: tuple[Note, ...] = ()
    for source in sources:
        if isinstance(source, Model):
            start, notes = _start_of(strategy, source, scene, start)
    options = options or TrainingOptions()
    training = yield from _train(strategy, scene, sources, start, options, chosen)
    training = replace(training, notes=(*training.notes, *notes))
    return (yield from training.judged()) if judge else training


def _train(
    strategy: Strategy,
    scene: Scene,
    sources: Sequence[Source],
    prior: Model,
    options: TrainingOptions,
    chosen: Mask | None,
) -> Steps[Training]:
    """Collect, fit, take the step, compare; the accuracy can be estimated afterwards."""
    features, movies = scene.matrix.features, [s for s in sources if isinstance(s, Scene)]
    _check(features, movies, options)
    yield begin("Collecting annotations")
    start = prior.aligned(features)
    before = choice(scene, start) if chosen is None else chosen
    data, others = None, []
    if not movies or len(scene.constraints):
        data = balanced(build_training_set(scene), population_of(scene, before))
    for movie in movies:
        kinds = population_of(movie, choice(movie, start))
        others.append(TrackingModel(balanced(build_training_set(movie), kinds)))
    target = None if data is None else TrackingModel(data)
    learned_from = None if strategy == "source" else target
    n = annotations_of(learned_from, others)
    lambda_, rho = options.lambda_ or (1.0 / n if movies else default_lambda(int(n))), math.inf
    if strategy == "transfer":
        rho = TIE / n
    metric = prior.tightness_for(features)
    objective = Objective(learned_from, tuple(others), start, metric, lambda_, rho, options)
    told = _told(options.precision)
    learned = yield from learn(objective, scene, told)
    weights, result = learned.weights, learned.result
    assert result is not None
    yield Progress(COMPARING, 0.0)
    after = choice(scene, weights)
    population = population_of(scene, after)

    def judged(training: Training) -> Steps[Training]:
        unseen = None  # errors on annotations that models have not seen, where there are enough
        if target is not None and learned_from is None:  # learned from other movies only
            unseen = errors_of(target, weights)
        elif target is not None:
            unseen = yield from objective.held_out_errors(learned.step)
        estimate = errors = None
        notes = training.notes
        if target is not None and unseen is not None:
            estimate = _estimated(target, unseen, weights, population)
            # fractions where an answer leaves several events
            trained, started = unseen.sum(), errors_of(target, start).sum()
            errors = round(float(trained), 1), round(float(started), 1)
            worse = (Note(NoteKind.REMARK, WORSE),) if errors[0] > errors[1] else ()
            notes = (*notes, *worse, *estimate.warnings)
        return replace(
            training,
            model=replace(training.model, estimate={} if estimate is None else estimate.to_json()),
            words=_compared(target, unseen, errors),
            errors=errors,
            estimate=estimate,
            notes=notes,
        )

    n_annotations = 0 if data is None else data.n_annotations
    unusual, suited, notes = ((), True, ()) if data is None else remarks(scene, data, start)
    origin = (strategy, *map(described, sources)) if sources else ()
    provenance = {
        "movies": [name_of(scene)],
        "annotations": n_annotations,
        "prior": prior.name,
        "step": learned.step,
        "image": bool(scene.detections.channels),
        "scaling": "features are divided by the cell diameter and the robust spread of the "
        "movie they are computed on",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if sources:
        provenance |= {"strategy": strategy, "sources": list(origin[1:])}
    if movies:
        provenance["rho"] = rho if math.isfinite(rho) else None
    model = Model(
        features.keys,
        np.asarray(weights, dtype=np.float64),
        tuple(f.unit for f in features.features),
        name="trained",
        loss=options.loss,
        regularizer=options.regularizer,
        strength=lambda_,
        history={
            "objective": [float(s.objective) for s in result.steps],
            "gap": [float(s.gap) if np.isfinite(s.gap) else None for s in result.steps],
            "bounds": [s.n_bounds for s in result.steps],
        },
        provenance=provenance,
        tightness=metric,
    )
    return Training(
        model=model,
        lambda_=lambda_,
        rho=rho if movies else None,
        step=learned.step,
        result=replace(result, state=None),  # it holds the solvers
        changes=_changes(scene, before, after),
        n_annotations=n_annotations,
        notes=notes,
        origin=origin,
        unusual=unusual,
        suited=suited,
        judge=judged,
    )


def _compared(
    target: TrackingModel | None, unseen: Array | None, errors: tuple[float, float] | None
) -> str:
    """Errors of the trained and the starting model on held-out answers, as a sentence."""
    if target is None:
        return (
            "nothing was annotated in this movie: the weights of the earlier movies are used "
            "without a test"
        )
    if unseen is None or errors is None:
        return "there were too few answers to test the model on held-out ones"
    trained, started = errors
    return (
        f"errors on {plural(len(unseen), 'held-out answer')}: trained model {trained:g}, starting "
        f"model {started:g}"
    )


def _estimated(
    target: TrackingModel, unseen: Array, weights: Array, population: Array
) -> ErrorEstimate:
    """How accurate the model of some weights (d,) is."""
    data, seen = target.data, errors_of(target, weights)
    if data.drawn.all():
        return estimate_accuracy(unseen, 1.0 / data.drawn, seen)
    weight = weights_of_kinds(data.event, population)
    return estimate_accuracy(unseen, weight, seen, data.annotation_sample)


def _check(features: FeatureSet, sources: Sequence[Scene], options: TrainingOptions) -> None:
    """Raise an error if earlier movies cannot be learned from."""
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


def _told(precision: float) -> Callable[[TrainingStep], Progress]:
    """Reports how much of the gap is closed, on a log scale."""
    first: float | None = None

    def told(step: TrainingStep) -> Progress:
        nonlocal first
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / precision + 1e-9)
        return Progress("Learning", float(np.clip(done, 0, 1)))

    return told


def _start_of(
    strategy: Strategy, source: Model, scene: Scene, shipped: Model
) -> tuple[Model, tuple[Note, ...]]:
    """The source model over the features of the movie, and notes."""
    if strategy != "delta":
        return source, ()
    features = scene.matrix.features
    start = as_start(source, features, shipped)
    new = [key for key in features.keys if key not in source.keys]
    if not new:
        return start, ()
    words = (
        f"{len(new)} features are new to the source {source.name!r} and start from the weights of "
        f"{shipped.name!r}: {', '.join(new)}"
    )
    return start, (Note(NoteKind.REMARK, words),)


def remarks(
    scene: Scene, data: TrainingSet, start: Array
) -> tuple[tuple[Annotation, ...], bool, tuple[Note, ...]]:
    """Unusual annotations, whether the starting model suits the movie, and notes.

    The notes list annotations that were not used, kinds of events without any, and annotations that
    contradict the starting model, whose weights (d,) are `start`.
    """
    used, notes, margin = scene.constraints.annotation, [], margins_of_answers(data, start)
    unusual = tuple(scene.anchored.listed[k] for k in used[margin <= -UNUSUAL])
    against, about = int((margin <= -CONFIDENT).sum()), int((np.abs(margin) >= CONFIDENT).sum())
    suited = explained_by_slips(against, about - against)
    why = {lost.id: f"{lost.cell}: {lost.reason}" for lost in scene.anchored.lost}
    unused = [
        Note(NoteKind.UNUSED, f"annotation {name} was not used: {words}")
        for name, words in (*why.items(), *scene.constraints.unused.items())
    ]
    if scene.constraints.unsure:
        n = scene.constraints.unsure
        notes.append(f"{n} answered 'cannot tell': nothing is learned from such answers")
    if not data.single.any():
        notes.append("all annotations are rejections; confirm some events, too")
    for event in (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR):
        if not (data.event == event).any():
            notes.append(f"no {event.key} was annotated; its weights stay near the starting model")
    if unusual:
        names = ", ".join(f"{a.id} ({describe(a)})" for a in unusual[:_LISTED])
        more = f" and {len(unusual) - _LISTED} more" if len(unusual) > _LISTED else ""
        notes.append(
            f"{plural(len(unusual), 'unusual answer')}, for which the starting model would clearly "
            f"choose another event; please check: {names}{more}"
        )
    if not suited:
        notes.append(
            f"{against} of {about} answers contradict events the starting model is certain of: "
            "it does not fit this movie well"
        )
    return unusual, suited, (*unused, *(Note(NoteKind.REMARK, words) for words in notes))


def choice(scene: Scene, weights: Array) -> Mask:
    """Hypotheses chosen under the annotations; an error names annotations that leave no choice."""
    try:
        found = solve(scene.problem, scene.matrix.scores(weights), scene.constraints.allowed)
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error
    return found.chosen


def population_of(scene: Scene, chosen: Mask) -> Array:
    """How often each kind of event is among some hypotheses, shape (len(Event),)."""
    count = np.bincount(scene.hypotheses.event[chosen], minlength=len(Event))
    return count.astype(np.float64)


def _changes(scene: Scene, before: Mask, after: Mask) -> dict[str, tuple[int, int, int, int]]:
    """How many events of each kind there are before and after, and are gained and lost."""
    masks = before, after, after & ~before, before & ~after
    counts = np.stack([population_of(scene, mask) for mask in masks]).astype(int)
    return {event.key: tuple(counts[:, event].tolist()) for event in Event}
