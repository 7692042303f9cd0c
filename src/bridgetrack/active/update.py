"""One update of an annotator's session: learn from the answers, track, and find the next questions.

It works on a snapshot and touches nothing of the session, so that it may run in another thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.annotated_part import Pieces
from bridgetrack.active.learner import Learned, LearnOptions, Start, learn
from bridgetrack.active.memory import give_back_memory
from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import Beliefs, believe
from bridgetrack.active.rejudge import Judged, rejudge
from bridgetrack.active.suggester import rank
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Slot
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solution import Solution
from bridgetrack.inference.solve import solve_steps
from bridgetrack.models.model import Model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, allowed_by
from bridgetrack.tracks.build import build_tracks

Array = NDArray[np.float64]


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
