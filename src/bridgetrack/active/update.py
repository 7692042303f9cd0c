"""Giving memory back to the system between updates.

The interactive max-margin update: one short fit, warm-started, with a fixed lambda.

000 uses a perceptron pass after each label because max-margin training was too slow to wait for.
Here the bounds and outputs found before are recycled, only annotated components are looked at, and
lambda is not chosen anew, which takes a fraction of a second.

Judge random answers by models that have not seen them.

One update of an annotator's session: learn from the answers, track, and find the next questions.

It works on a snapshot and touches nothing of the session, so that it may run in another thread.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import Beliefs, believe
from bridgetrack.active.suggester import rank
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Slot
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import solve_steps
from bridgetrack.learning import L2, LearningOptions, train
from bridgetrack.learning.result import TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, allowed_by
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.build import build_tracks
from bridgetrack.training.components import Pieces
from bridgetrack.training.options import TrainingOptions, default_strength
from bridgetrack.training.sure import Granted, hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import balanced, build_training_set

Array = NDArray[np.float64]


def give_back_memory() -> None:
    """Return freed memory to the system, where the C library can be told to (glibc).

    Solvers run in short-lived threads, and glibc keeps what each of them freed for later, so that
    a long session would seem to need more and more.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@dataclass(frozen=True)
class LearnOptions:
    """How the model is updated while answers are given: as training does with its defaults.

    Parameters
    ----------
    strength
        The factor lambda of the regulariser around the starting weights; None: that of training,
        `bridgetrack.training.options.default_strength`.
    balance
        How far kinds of events are weighted by how often they occur, see
        `bridgetrack.training.training_set.balanced`.
    tied
        Whether each weight is held as tightly as the starting model says (learned from other
        movies), or all alike.
    hold_sure
        Whether events that the starting model is sure of are held near annotated ones, see
        `bridgetrack.training.sure.hold_sure`.
    precision
        Duality gap that is enough, in task loss per annotation.
    most_calls
        Inferences over all annotated components at most.
    """

    strength: float | None = None
    balance: float = TrainingOptions.balance
    tied: bool = True
    hold_sure: bool = TrainingOptions.hold_sure
    precision: float = 5e-3
    most_calls: int = 60

    def strength_for(self, annotations: int) -> float:
        """The factor lambda for a number of annotations."""
        return default_strength(annotations) if self.strength is None else self.strength


@dataclass(frozen=True)
class Start:
    """Where learning starts, and what it stays close to.

    Parameters
    ----------
    weights
        Shape (d,).
    tightness
        How tightly each weight is held, shape (d,); all alike where None.
    """

    weights: Array
    tightness: Array | None = None

    @classmethod
    def of(cls, scene: Scene, model: Model) -> Start:
        """A model as the start for a movie.

        Raises
        ------
        ModelError
            Where the model was made with other features.
        """
        features = scene.matrix.features
        return cls(model.aligned(features), model.tied(features))

    def regularizer(self, strength: float, tied: bool) -> L2:
        """The L2 regulariser around it."""
        return L2(strength, prior=self.weights, metric=self.tightness if tied else None)


@dataclass(frozen=True)
class Learned:
    """Weights after an update.

    Parameters
    ----------
    weights
        Shape (d,).
    state
        What the next update can reuse.
    model
        The annotated components as they were learned from; None where no annotation constrains
        anything.
    granted
        The events that the starting weights are sure of; None where none were to be held.
    """

    weights: Array
    state: TrainingState | None
    model: TrackingModel | None
    granted: Granted | None = None


def learn(
    scene: Scene,
    start: Start,
    population: Array,
    options: LearnOptions,
    last: Learned | None = None,
    pieces: Pieces | None = None,
) -> Steps[Learned]:
    """Fit the annotations of a scene, staying close to the starting weights.

    Parameters
    ----------
    scene
        With its annotations.
    start
        The starting weights.
    population
        How often each kind of event occurs in the movie, shape (len(Event),).
    options
        Choices.
    last
        What an earlier update learned: its bounds and programs are used again.
    pieces
        Components of the movie, where they are known: then the time does not grow with the movie.
    """
    yield Progress("Learning", 0.0)
    state, earlier = (None, None) if last is None else (last.state, last.model)
    if not len(scene.constraints):
        return Learned(start.weights, state, None)
    found = build_training_set([scene]) if pieces is None else pieces.training_set(scene)
    data = balanced(found, population, options.balance)
    granted: Granted | None = None
    if options.hold_sure:
        granted = hold_sure(data, start.weights, None if last is None else last.granted)
        data = granted.data
    model = TrackingModel(data, earlier=earlier)
    rows = np.arange(len(data.samples))
    result: TrainingResult = yield from fit_part(model, rows, start, options, state)
    return Learned(result.w, result.state, model, granted)


def fit_part(
    model: TrackingModel,
    rows: NDArray[np.int64],
    start: Start,
    options: LearnOptions,
    state: TrainingState | None,
) -> Steps[TrainingResult]:
    """Fit some of the samples of a training set."""
    data = model.data
    count = int(np.isin(data.annotation_sample, rows).sum())
    steps = train(
        model,
        [data.samples[i] for i in rows.tolist()],
        start.regularizer(options.strength_for(count), options.tied),
        n_annotations=float(count),
        options=LearningOptions(precision=options.precision, max_inferences=options.most_calls),
        state=state,
    )
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result: TrainingResult = stop.value
            return result
        yield Progress("Learning", min(step.n_inferences / options.most_calls, 1.0))


FOLDS = 5


@dataclass(frozen=True)
class Judged:
    """Errors on answers, 0 to 1, by annotation id.

    Parameters
    ----------
    unseen
        Of models that had not seen the answer. They learned from less than the present model did,
        and so err rather more often than it does.
    seen
        Of the present model, which learned from the answer but is not held to it here: it errs
        rather less often on these answers than elsewhere.
    """

    unseen: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)


def rejudge(
    scene: Scene,
    learned: Learned,
    ids: Sequence[str],
    start: Start,
    options: LearnOptions,
    folds: int = FOLDS,
) -> Steps[Judged]:
    """Error on some answers, each by a model trained on all answers but those of its fold.

    A fold leaves whole samples (connected components) out, so that nothing leaks.

    Parameters
    ----------
    scene
        With its annotations.
    learned
        The model trained on all of them.
    ids
        Annotations to judge.
    start, options
        As in `learner.learn`.
    folds
        How many models are trained at most.

    Returns
    -------
    Judged
        Empty where there is too little to leave some out.
    """
    model = learned.model
    if model is None:
        return Judged()
    data = model.data
    wanted = set(ids)
    rows = np.asarray([k for k, i in enumerate(scene.constraints.ids) if i in wanted], dtype=int)
    samples = np.unique(data.annotation_sample[rows])
    if len(data.samples) < 2 or not len(samples):
        return Judged()
    out: dict[str, float] = {}
    for part in np.array_split(samples, min(folds, len(samples))):
        inside = np.setdiff1d(np.arange(len(data.samples)), part)
        if not len(inside):
            continue
        result = yield from fit_part(model, inside, start, options, learned.state)
        error = np.clip(1.0 - model.satisfied(result.w), 0.0, 1.0)
        for row in rows[np.isin(data.annotation_sample[rows], part)].tolist():
            out[scene.constraints.ids[row]] = float(error[row])
    present = np.clip(1.0 - model.satisfied(learned.weights), 0.0, 1.0)
    return Judged(out, {scene.constraints.ids[row]: float(present[row]) for row in rows.tolist()})


@dataclass(frozen=True)
class SessionOptions:
    """How a session works; the defaults need no thought.

    Parameters
    ----------
    suggest
        How events are ranked.
    learn
        How the model is updated.
    queue
        Suggestions computed ahead.
    update_every
        Answers after which `ActiveSession.wants_update` asks for an update.
    rejudge_every
        Answers after which random ones are judged anew by models that have not seen them.
    second_looks
        Whether an unexpected answer is asked about again, see `second_look.unexpected`.
    """

    suggest: SuggestOptions = field(default_factory=SuggestOptions)
    learn: LearnOptions = field(default_factory=LearnOptions)
    queue: int = 12
    update_every: int = 5
    rejudge_every: int = 10
    second_looks: bool = True


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
    solution
        The tracking with them (annotations honoured): `Solution` of ``scene.problem``.
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
    solution: Solution
    suggestions: tuple[Suggestion, ...]
    changed: int
    judged: Judged
    beliefs: Beliefs = field(repr=False)
    pieces: Pieces = field(repr=False)
    learned: Learned = field(repr=False)

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
    start: Start,
    last: Update | None,
    skipped: frozenset[Slot],
    clicks: int,
    due: tuple[str, ...],
    options: SessionOptions,
) -> Steps[Update]:
    """Learn from the answers and find the next questions.

    Parameters
    ----------
    number
        Of the update in the session.
    scene
        The movie of the last update.
    annotations
        All answers.
    start
        Weights to start from and to stay close to.
    last
        The update before; None for the first.
    skipped
        Slots passed over.
    clicks
        Answers to questions so far.
    due
        Ids of the random answers to judge by models that have not seen them; empty where that
        is not due.
    options
        How to work.

    Yields
    ------
    Progress

    Returns
    -------
    Update

    Raises
    ------
    InputError
        Where inference ended without an answer.
    ContradictionError
        Where answers exclude each other.
    """
    yield Progress("Collecting answers", 0.0)
    scene = annotate(scene, annotations)
    population = _population(scene, last)
    pieces = None if last is None else last.pieces
    if pieces is None or not pieces.fit(scene):
        pieces = Pieces(scene)
    earlier = None if last is None else last.learned
    learned = yield from learn(scene, start, population, options.learn, earlier, pieces)
    errors = Judged()
    if due:
        errors = yield from rejudge(scene, learned, due, start, options.learn)
    yield Progress("Choosing events", 0.0)
    scores, allowed = scene.matrix.scores(learned.weights), allowed_by(scene)
    solution: Solution | None = None
    for step in solve_steps(scene.problem, scores, allowed):
        if isinstance(step, Solution):
            solution = step
        else:
            yield Progress("Choosing events", step)
    if solution is None:
        raise InputError("inference was stopped before it had an answer")
    yield Progress("Looking for questions", 0.0)
    beliefs = believe(scene, scores, solution, allowed, options.suggest.temperature)
    give_back_memory()
    suggestions = rank(scene, beliefs, options.queue, options.suggest, skipped, clicks)
    return Update(
        number,
        annotations,
        scene,
        solution,
        tuple(suggestions),
        _changed(last, scene, solution),
        errors,
        beliefs,
        pieces,
        learned,
    )


def _population(scene: Scene, last: Update | None) -> Array:
    """How often each kind of event was chosen last."""
    if last is None:
        return np.zeros(len(Event))
    kinds = last.scene.hypotheses.event[last.solution.chosen]
    return np.bincount(kinds, minlength=len(Event)).astype(np.float64)


def _changed(last: Update | None, scene: Scene, solution: Solution) -> int:
    """Chosen events that were not chosen before."""
    if last is None:
        return 0
    if last.scene.hypotheses is scene.hypotheses:
        return int((solution.chosen & ~last.solution.chosen).sum())
    before = _chosen_keys(last.scene, last.solution)
    return len(_chosen_keys(scene, solution) - before)


def _chosen_keys(scene: Scene, solution: Solution) -> set[tuple[int, ...]]:
    rows = np.flatnonzero(solution.chosen)
    h = scene.hypotheses
    table = np.column_stack([h.event[rows], h.sources[rows], h.targets[rows]])
    return {tuple(row) for row in table.tolist()}
