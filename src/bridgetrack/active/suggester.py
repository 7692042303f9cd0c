"""Suggest the events that are most worth an answer.

Pure uncertainty collects odd and ambiguous cases and can make a model worse with every click
(design, section 5). So a suggestion's value is its uncertainty times the rarity of what the answer
may turn out to be, times how new it is in feature space; suggestions of a batch are no neighbours;
and a share of them is drawn at random from all cells, which keeps the estimate of accuracy honest.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import (
    Beliefs,
    Unanswered,
    asked_slots,
    believe,
    next_random,
    open_questions,
    runner_up,
    slot_name,
)
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Slot
from bridgetrack.annotations.words import NOUN
from bridgetrack.detections.table import cell_diameter
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.problem import Solution
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by, choose_events
from bridgetrack.progress import Progress, Steps, run

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


_SHORTLIST = 300
_TINY = 1e-12


def rarity_of_kinds(scene: Scene, beliefs: Beliefs, exponent: float) -> Array:
    """Worth of an answer of each kind, 1 for the commonest, shape (len(Event),).

    In inverse proportion to how often a kind was answered, where a kind is taken to have been
    answered once for every tenth of the tracking that it makes up.
    """
    kinds = scene.hypotheses.event
    chosen = np.bincount(kinds[beliefs.solution.chosen], minlength=len(Event)).astype(np.float64)
    answered = np.bincount(kinds[scene.constraints.forced], minlength=len(Event))
    count = 1.0 + 10.0 * chosen / max(chosen.sum(), 1.0) + answered
    return np.asarray((count.max() / count) ** exponent)


def directions(scene: Scene, beliefs: Beliefs, column: Index, slot: Index) -> Array:
    """Features of events minus those of the best alternative at their slot, shape (n, d).

    What an answer teaches the model lies in this direction.
    """
    other = runner_up(scene, beliefs, slot)
    features = np.zeros((len(column), len(scene.matrix.features)))
    for sign, rows in ((1.0, column), (-1.0, other)):
        for event in Event:
            mine = np.flatnonzero((rows >= 0) & (scene.hypotheses.event[rows] == event))
            place = np.searchsorted(scene.matrix.rows[event], rows[mine])
            block = scene.matrix.features.block(event)
            features[mine, block] += sign * scene.matrix.blocks[event][place]
    return features


def answered_directions(scene: Scene, beliefs: Beliefs) -> Array:
    """The same for events that were confirmed, shape (A, d)."""
    constraints = scene.constraints
    single = np.flatnonzero(np.diff(constraints.indptr) == 1)
    column = constraints.indices[constraints.indptr[single]]
    slot = np.searchsorted(scene.slots, constraints.slot[single])
    return directions(scene, beliefs, column, slot)


def choose_batch(
    scene: Scene, beliefs: Beliefs, questions: Unanswered, k: int, options: SuggestOptions
) -> list[tuple[int, float]]:
    """Greedily choose the questions of the largest value, the best first: rows and their values.

    ``value = uncertainty x rarity ** exponent x novelty ** exponent``, where novelty is the
    distance, in feature space, to the nearest event answered or chosen before, relative to the
    distance usual among the candidates, 1 at most.
    """
    worth = questions.uncertainty * (
        questions.kinds @ rarity_of_kinds(scene, beliefs, options.rarity)
    )
    short = np.argsort(-worth, kind="stable")[: max(_SHORTLIST, 10 * k)]
    if not len(short) or k < 1:
        return []
    place, frame = _places(scene, questions.column[short])
    reach = options.separation * cell_diameter(scene.detections)
    novelty = _Novelty(
        directions(scene, beliefs, questions.column[short], questions.slot[short]),
        answered_directions(scene, beliefs),
    )
    free = np.ones(len(short), dtype=bool)
    picked: list[tuple[int, float]] = []
    while len(picked) < k and free.any():
        value = worth[short] * novelty.value**options.diversity
        best = int(np.argmax(np.where(free, value, -np.inf)))
        picked.append((int(short[best]), float(value[best])))
        near = np.linalg.norm(place - place[best], axis=1) < reach
        free &= ~(near & (np.abs(frame - frame[best]) <= 1))
        free[best] = False
        novelty.add(best)
    return picked


class _Novelty:
    """Distance of candidates to what was seen, 0 to 1."""

    def __init__(self, candidates: Array, seen: Array) -> None:
        spread = candidates.std(axis=0)
        scale = np.where(spread > _TINY, 1.0 / np.maximum(spread, _TINY), 0.0)
        self._points = candidates * scale
        usual = np.sqrt(2.0 * np.count_nonzero(scale))
        self._usual = max(float(usual), _TINY)
        self._nearest = np.full(len(candidates), np.inf)
        if len(seen):
            self._nearest = _distances(self._points, seen * scale).min(axis=1)

    @property
    def value(self) -> Array:
        """Novelty of every candidate, shape (n,)."""
        return np.minimum(self._nearest / self._usual, 1.0)

    def add(self, chosen: int) -> None:
        """Count a candidate as seen."""
        far = _distances(self._points, self._points[[chosen]])[:, 0]
        self._nearest = np.minimum(self._nearest, far)


def _distances(points: Array, others: Array) -> Array:
    square = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None]
    return np.sqrt(np.maximum(square - 2.0 * points @ others.T, 0.0))


def _places(scene: Scene, column: Index) -> tuple[Array, Index]:
    """Position in the movie's unit and earlier frame of events."""
    source, target = scene.hypotheses.sources[column, 0], scene.hypotheses.targets[column, 0]
    cell = np.where(source >= 0, source, target)
    frame = scene.detections.frame[cell] - (source < 0)
    return scene.detections.position[cell], frame


def weights_of(scene: Scene, model: Model | Array) -> Array:
    """Weights in the order of the scene's features, shape (d,)."""
    return model.aligned(scene.matrix.features) if isinstance(model, Model) else model


def suggest(
    scene: Scene,
    model: Model | Array,
    k: int = 1,
    options: SuggestOptions | None = None,
    **more: Any,
) -> list[Suggestion]:
    """As `suggest_steps`, in one go."""
    return run(suggest_steps(scene, model, k, options, **more))


def suggest_steps(
    scene: Scene,
    model: Model | Array,
    k: int = 1,
    options: SuggestOptions | None = None,
    *,
    skipped: Collection[Slot] = (),
    solution: Solution | None = None,
    answered: int = 0,
) -> Steps[list[Suggestion]]:
    """Suggest `k` events to answer, the most valuable first; close the generator to cancel.

    Parameters
    ----------
    scene
        A prepared movie with its annotations: what they settle is not asked again.
    model
        The model, or its weights in the order of ``scene.matrix.features``, shape (d,).
    k
        How many; fewer come back where nothing else is open.
    options
        How they are ranked.
    skipped
        Slots that are not to be asked (`Suggestion.slot`).
    solution
        What inference chose for this scene and model, where it is known (it is
        ``Tracking.solution``): then the answer is there at once (0.3 s for 100 frames of 300
        cells). Solved where None.
    answered
        How many suggestions were answered before: every so-maniest is a random one.

    Raises
    ------
    ModelError
        Where the model was made with other features.
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    options = options or SuggestOptions()
    weights = weights_of(scene, model)
    beliefs = yield from believe_steps(scene, weights, options, solution)
    return rank(scene, beliefs, k, options, skipped, answered)


def believe_steps(
    scene: Scene, weights: Array, options: SuggestOptions, solution: Solution | None = None
) -> Steps[Beliefs]:
    """Track a movie under its annotations, unless that is done, and say what the model believes."""
    scores, allowed = scene.matrix.scores(weights), allowed_by(scene)
    if solution is None:
        solution = yield from choose_events(scene, scores, allowed)
    yield Progress("Looking for questions", 0.0)
    return believe(scene, scores, solution, allowed, options.temperature)


def rank(
    scene: Scene,
    beliefs: Beliefs,
    k: int,
    options: SuggestOptions,
    skipped: Collection[Slot] = (),
    answered: int = 0,
) -> list[Suggestion]:
    """Suggestions from what a model believes; see `suggest_steps`."""
    asked = asked_slots(scene, skipped, options.frames)
    questions = open_questions(scene, beliefs, asked, options, options.seed + answered)
    # which of the next ones are drawn at random, evenly spread
    number = np.floor((answered + np.arange(k + 1)) * options.random_share + 1e-9)
    turns = np.diff(number) > 0
    drawn = next_random(scene, asked, int(turns.sum()), options.seed)
    chance = [_drawn(scene, beliefs, slot, options) for slot in drawn.tolist()]
    taken = {s.hypothesis for s in chance}
    picked = [
        _picked(scene, beliefs, questions, row, value, options)
        for row, value in choose_batch(scene, beliefs, questions, k, options)
        if questions.column[row] not in taken
    ]
    out: list[Suggestion] = []
    for turn in turns:
        queue = chance if (turn and chance) or not picked else picked
        if queue:
            out.append(queue.pop(0))
    return out


def _drawn(scene: Scene, beliefs: Beliefs, slot: int, options: SuggestOptions) -> Suggestion:
    """The random suggestion about a slot."""
    columns = scene.problem.by_slot[slot].indices
    column = int(columns[beliefs.solution.chosen[columns]][0])
    return _suggestion(
        scene,
        beliefs,
        column,
        slot,
        options,
        uncertainty=float(np.exp(-beliefs.margin[column] / options.temperature)),
        value=0.0,
        reason="drawn at random from all cells, to know how accurate the tracking is",
        random=True,
    )


def _picked(
    scene: Scene,
    beliefs: Beliefs,
    questions: Unanswered,
    row: int,
    value: float,
    options: SuggestOptions,
) -> Suggestion:
    """The suggestion that a chosen question makes."""
    column = int(questions.column[row])
    kind = Event(int(scene.hypotheses.event[column]))
    return _suggestion(
        scene,
        beliefs,
        column,
        int(questions.slot[row]),
        options,
        uncertainty=float(questions.uncertainty[row]),
        value=value,
        reason=_reason(kind, float(beliefs.margin[column]), questions.kinds[row]),
        random=False,
    )


def _reason(kind: Event, margin: float, kinds: Array) -> str:
    """Why an event is asked about, in plain words."""
    other = kinds.copy()
    other[kind] = 0.0
    rival = Event(int(np.argmax(other)))
    instead = f"it may be {NOUN[rival][0]} instead" if other[rival] > 0.2 else ""
    if kind != Event.MOVE:
        rare = f"{NOUN[kind][1]} are rare, and each one teaches much"
        return f"{instead}; {rare}" if instead else rare
    if instead:
        return instead
    if margin < 0.5:
        return "another event explains the cell nearly as well"
    return "it is unlike what you answered so far"


def _suggestion(
    scene: Scene, beliefs: Beliefs, column: int, slot: int, options: SuggestOptions, **more: Any
) -> Suggestion:
    """A suggestion with the alternatives at its slot, the most plausible first."""
    columns = scene.problem.by_slot[slot].indices.astype(np.int64)
    columns = columns[np.isfinite(beliefs.cost[columns]) & (columns != column)]
    order = columns[np.argsort(beliefs.cost[columns], kind="stable")][: options.alternatives]
    listed = np.concatenate([[column], order]).astype(np.int64)
    refs = event_refs(scene.detections, scene.hypotheses.take(listed))
    belief = np.exp(-beliefs.cost[listed] / options.temperature) / beliefs.total[slot]
    return Suggestion(
        event=refs[0],
        alternatives=tuple(refs[1:]),
        beliefs=tuple(float(b) for b in belief),
        slot=slot_name(scene, slot),
        hypothesis=column,
        margin=float(beliefs.margin[column]),
        **more,
    )
