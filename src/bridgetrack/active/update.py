"""One update of an annotator's session: learn from the answers, track, and find the next questions.

It works on a snapshot and touches nothing of the session, so that it may run in another thread.

000 uses a perceptron pass after each label because max-margin training was too slow to wait for.
Here the bounds and outputs found before are recycled and only annotated components are looked at,
which takes a fraction of a second. The objective is that of `training.train`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bridgetrack.active.accuracy import Judged
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.arrays import Array
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import solve
from bridgetrack.learning import TrainingStep
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.training.fit import Learned, Objective, errors_of, learn
from bridgetrack.training.options import FOLDS, TrainingOptions, default_lambda
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import population_of
from bridgetrack.training.training_set import balanced, build_training_set

_PRECISION = 5e-3
"""Duality gap that is enough, in task loss per annotation."""

_MOST_CALLS, _MOST_CALLS_ANEW = 60, 300
"""Inferences over all annotated components at most, of a fit that goes on from the last update and
of one that begins at the starting weights."""


def _options(most_calls: int) -> TrainingOptions:
    return TrainingOptions(precision=_PRECISION, max_inferences=most_calls)


@dataclass(frozen=True)
class Update:
    """Result of `ActiveSession.update`, to be given to `ActiveSession.adopt`."""

    number: int  # of the update in the session
    annotations: AnnotationSet  # what it learned from
    scene: Scene  # the movie with these annotations
    suggestions: tuple[Suggestion, ...]  # the next questions
    doubtful: int  # open events that may be less than 90 % certain
    changed: int  # chosen events that differ from those of the update before
    judged: Judged  # errors on random answers; empty if this was not due
    solution: Solution = field(repr=False)  # the tracking with the annotations honoured
    learned: Learned = field(repr=False)


def learn_answers(
    scene: Scene, prior: Model, population: Array | None, last: Learned | None = None
) -> Steps[Learned]:
    """Fit the annotations of a scene, staying close to the starting weights.

    `population` is how often each kind of event occurs in the movie, shape (len(Event),); None: as
    often as the starting weights find it. Bounds of the `last` update are used again.
    """
    yield Progress("Learning", 0.0)
    features = scene.matrix.features
    start, state = prior.aligned(features), None if last is None else last.state
    if not len(scene.constraints):
        return Learned(start, 0.0, None, None)
    data = build_training_set(scene)
    if population is None:
        chosen = solve(scene.problem, scene.matrix.scores(start)).chosen
        population = population_of(scene, chosen)
    model = TrackingModel(balanced(data, population))
    most = _MOST_CALLS_ANEW if state is None else _MOST_CALLS
    metric, lambda_ = prior.tightness_for(features), default_lambda(data.n_annotations)
    objective = Objective(model, (), start, metric, lambda_, options=_options(most))

    def told(step: TrainingStep) -> Progress:
        return Progress("Learning", min(step.n_inferences / most, 1.0))

    return (yield from learn(objective, scene, told, state))


def judge_unseen(scene: Scene, learned: Learned, ids: Sequence[str]) -> Steps[Judged]:
    """Error on some answers, each by a model trained on all answers but those of its fold.

    A fold leaves whole samples (connected components) out, and what else their answers tell, so
    that nothing leaks. Empty where there is too little to leave some out.
    """
    if learned.objective is None or learned.objective.target is None:
        return Judged()
    model, wanted = learned.objective.target, set(ids)
    data, names = model.data, scene.constraints.ids
    rows = np.asarray([k for k, i in enumerate(names) if i in wanted], dtype=int)
    samples = np.unique(data.annotation_sample[rows])
    if len(data.samples) < 2 or not len(samples):
        return Judged()
    fold = np.full(len(data.samples), -1, dtype=np.int64)
    for k, part in enumerate(np.array_split(samples, min(FOLDS, len(samples)))):
        fold[part] = k
    anew = replace(learned.objective, options=_options(_MOST_CALLS_ANEW))
    errors = yield from anew.held_out_errors(learned.step, fold)
    present = errors_of(model, learned.weights)
    return Judged(
        {names[row]: float(errors[row]) for row in rows.tolist()},
        {names[row]: float(present[row]) for row in rows.tolist()},
    )


def changed_events(last: Update | None, scene: Scene, solution: Solution) -> int:
    """Chosen events that were not chosen before."""
    if last is None:
        return 0
    now, before = np.flatnonzero(solution.chosen), last.solution.chosen
    if last.scene.hypotheses is not scene.hypotheses:
        row = last.scene.hypotheses.find(scene.hypotheses.take(now))
        return int((~((row >= 0) & before[row])).sum())
    return int((~before[now]).sum())
