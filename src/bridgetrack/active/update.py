"""One update of an annotator's session: learn from the answers, track, and find the next questions.

It works on a snapshot and touches nothing of the session, so that it may run in another thread.

000 uses a perceptron pass after each label because max-margin training was too slow to wait for.
Here the bounds and outputs found before are recycled, only annotated components are looked at, and
lambda is not chosen anew, which takes a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.accuracy import Judged
from bridgetrack.active.options import LearnOptions, SessionOptions
from bridgetrack.active.questions import Beliefs
from bridgetrack.active.suggester import believe_steps, rank
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Slot
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.resolve import resolve
from bridgetrack.inference.solve import solve
from bridgetrack.learning import TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, allowed_by, known_solution
from bridgetrack.progress import Progress, Steps, begin, relayed
from bridgetrack.tracks.build import build_tracks
from bridgetrack.training.components import AnnotatedComponents, build_training_set
from bridgetrack.training.fit import Movies
from bridgetrack.training.outcome import population_of
from bridgetrack.training.reach import Reached, within_reach
from bridgetrack.training.sure import SureEvents, as_seen
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import tracking_model

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FOLDS = 5
"""Models that are trained at most to judge answers that they have not seen."""


@dataclass(frozen=True)
class LearnedWeights:
    """Weights after an update."""

    weights: Array  # shape (d,)
    state: TrainingState | None  # what the next update can reuse
    # the annotated components as they were learned from; None where no annotation constrains
    # anything
    movies: Movies | None
    # the events that the starting weights are sure of; None where none were to be held
    sure: SureEvents | None = None
    free: Solution | None = None  # what the starting weights choose without answers, where known
    reached: Reached | None = None  # how far what was learned was taken; None: nothing was learned
    solution: Solution | None = None  # what the weights choose with the answers, where known


@dataclass(frozen=True)
class Update:
    """Result of `ActiveSession.update`, to be given to `ActiveSession.adopt`.

    Parameters
    ----------
    number
        Of the update in the session.
    annotations
        What it learned from.
    scene
        The movie with these annotations.
    suggestions
        The next questions.
    changed
        Chosen events that differ from those of the update before.
    judged
        Errors on random answers; empty where this was not due.
    """

    number: int
    annotations: AnnotationSet
    scene: Scene
    suggestions: tuple[Suggestion, ...]
    changed: int
    judged: Judged
    beliefs: Beliefs = field(repr=False)
    components: AnnotatedComponents | None = field(repr=False)
    learned: LearnedWeights = field(repr=False)

    @property
    def solution(self) -> Solution:
        """The tracking (annotations honoured): `Solution` of ``scene.problem``."""
        return self.beliefs.solution

    @property
    def weights(self) -> Array:
        """The new weights, shape (d,)."""
        return self.learned.weights

    def tracking(self, model: Model) -> Tracking:
        """The movie tracked with these weights, given as a model; nothing is solved again."""
        scene, margins = self.scene, self.beliefs.margin
        scores = scene.matrix.scores(self.weights)
        chosen = self.solution.chosen
        tracks = build_tracks(scene.detections, scene.hypotheses, chosen, scores, margins)
        return Tracking(scene, model, scores, self.solution, margins, tracks)


def update_steps(
    number: int,
    scene: Scene,
    annotations: AnnotationSet,
    prior: Model,
    last: Update | None,
    skipped: frozenset[Slot],
    clicks: int,
    due: tuple[str, ...],
    options: SessionOptions,
    tracking: Tracking | None = None,
) -> Steps[Update]:
    """Learn from the answers and find the next questions.

    ``scene`` is the movie of the last update, ``clicks`` how many questions were answered so far,
    ``due`` the ids of the random answers to judge by models that have not seen them, and
    ``tracking`` the movie as it is tracked now, where that is known.
    """
    yield begin("Collecting answers")
    scene = annotate(scene, annotations)
    population, earlier, components = None, None, None
    if last is not None:
        population = population_of([last.scene], [last.solution.chosen])
        earlier, components = last.learned, last.components
        if last.scene.hypotheses is not scene.hypotheses:
            earlier = replace(earlier, free=None)
    if (components is None or not components.fit(scene)) and len(scene.constraints):
        components = AnnotatedComponents(scene)
    learned = yield from learn(scene, prior, population, options.learn, earlier, components)
    errors = Judged()
    if due:
        errors = yield from judge_unseen(scene, learned, due, options.learn)
    known = learned.solution or known_solution(tracking, scene, learned.weights)
    beliefs = yield from believe_steps(scene, learned.weights, options.suggest, known)
    suggestions = rank(scene, beliefs, options.queue, options.suggest, skipped, clicks)
    return Update(
        number,
        annotations,
        scene,
        tuple(suggestions),
        _changed(last, scene, beliefs.solution),
        errors,
        beliefs,
        components,
        learned,
    )


def learn(
    scene: Scene,
    prior: Model,
    population: Array | None,
    options: LearnOptions,
    last: LearnedWeights | None = None,
    components: AnnotatedComponents | None = None,
) -> Steps[LearnedWeights]:
    """Fit the annotations of a scene, staying close to the starting weights.

    Parameters
    ----------
    scene
        With its annotations.
    prior
        The starting weights.
    population
        How often each kind of event occurs in the movie, shape (len(Event),); None: as often as
        the starting weights find it.
    options
        Choices.
    last
        What an earlier update learned: its bounds and programs are used again.
    components
        Of the movie, where they are known: then the time does not grow with the movie.
    """
    yield Progress("Learning", 0.0)
    features = scene.matrix.features
    start, state = prior.aligned(features), None if last is None else last.state
    if not len(scene.constraints):
        return LearnedWeights(start, state, None)
    data = build_training_set([scene]) if components is None else components.training_set(scene)
    before = None if last is None or last.movies is None else last.movies.target
    scores = scene.matrix.scores(start)
    free = None if last is None else last.free
    free = free or solve(scene.problem, scores)
    if population is None:
        population = population_of([scene], [free.chosen])
    model, sure = tracking_model(
        data,
        population,
        start,
        options.training(),
        earlier=before,
        known=None if last is None else last.sure,
    )
    movies = Movies(model, (), start, prior.tightness_for(features) if options.tied else None)
    fitted = yield from _fit_part(movies, np.arange(len(data.samples)), options, state)
    # the answers touch little of what the starting weights choose
    first, _ = resolve(scene.problem, scores, allowed_by(scene), free.chosen, free)
    reached = yield from within_reach([scene], start, fitted.w, [first.chosen], sure, [free])
    weights, (solution,) = reached.weights, reached.solutions
    return LearnedWeights(weights, fitted.state, movies, sure, free, reached, solution)


def _fit_part(
    movies: Movies,
    rows: Index,
    options: LearnOptions,
    state: TrainingState | None,
    *,
    anew: bool = False,
) -> Steps[TrainingResult]:
    """Fit some of the samples of a movie; ``anew``: not from the weights of the state."""
    assert movies.target is not None
    count = int(np.isin(movies.target.data.annotation_sample, rows).sum())
    strength, how = options.strength_for(count), options.training(anew=anew or state is None)
    steps = movies.fit(strength, how, rows=rows, states=(state,), anew=anew)
    most = how.optimiser.max_inferences
    return relayed(steps, lambda s: Progress("Learning", min(s.n_inferences / most, 1.0)))


def judge_unseen(
    scene: Scene,
    learned: LearnedWeights,
    ids: Sequence[str],
    options: LearnOptions,
    folds: int = FOLDS,
) -> Steps[Judged]:
    """Error on some answers, each by a model trained on all answers but those of its fold.

    A fold leaves whole samples (connected components) out, and what else their answers tell, so
    that nothing leaks. Empty where there is too little to leave some out.
    """
    if learned.movies is None or learned.movies.target is None:
        return Judged()
    model, wanted = learned.movies.target, set(ids)
    data, names = model.data, scene.constraints.ids
    rows = np.asarray([k for k, i in enumerate(names) if i in wanted], dtype=int)
    samples = np.unique(data.annotation_sample[rows])
    if len(data.samples) < 2 or not len(samples):
        return Judged()
    out: dict[str, float] = {}
    for part in np.array_split(samples, min(folds, len(samples))):
        inside = np.setdiff1d(np.arange(len(data.samples)), part)
        if not len(inside):
            continue
        seen = TrackingModel(as_seen(data, inside), earlier=model)
        movies = replace(learned.movies, target=seen)
        fitted = yield from _fit_part(movies, inside, options, learned.state, anew=True)
        weights = fitted.w
        if learned.reached is not None:  # what is judged was taken as far as what is shown
            weights = learned.reached.alike(learned.movies.prior, weights)
        error = np.clip(1.0 - model.satisfied(weights), 0.0, 1.0)
        for row in rows[np.isin(data.annotation_sample[rows], part)].tolist():
            out[names[row]] = float(error[row])
    present = np.clip(1.0 - model.satisfied(learned.weights), 0.0, 1.0)
    return Judged(out, {names[row]: float(present[row]) for row in rows.tolist()})


def _changed(last: Update | None, scene: Scene, solution: Solution) -> int:
    """Chosen events that were not chosen before."""
    if last is None:
        return 0
    now, before = np.flatnonzero(solution.chosen), last.solution.chosen
    if last.scene.hypotheses is not scene.hypotheses:
        row = last.scene.hypotheses.find(scene.hypotheses.take(now))
        return int((~((row >= 0) & before[row])).sum())
    return int((~before[now]).sum())
