"""Suggest the events that are most worth an answer.

The most uncertain ones come first, weighed by how rare the kinds of events are that the answer may
turn out to be: uncertainty alone asks about hardly anything but moves, and on touching cells fifty
such answers mend half as many errors. Suggestions of a batch are no neighbours. A share of
them is drawn at random from all cells, for an unbiased estimate of the accuracy.
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
    slot_name,
)
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import NOUN, Slot
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


def choose_batch(
    scene: Scene, beliefs: Beliefs, questions: Unanswered, k: int, options: SuggestOptions
) -> list[int]:
    """Rows of the k most valuable questions that are no neighbours, the most valuable first."""
    if k < 1 or not len(questions.column):
        return []
    value = questions.uncertainty * (questions.kinds @ rarity_of_kinds(scene, beliefs))
    order = np.argsort(-value, kind="stable")
    place, frame = _places(scene, questions.column)
    separation = options.separation * cell_diameter(scene.detections)
    picked: list[int] = []
    for row in order.tolist():
        near = np.linalg.norm(place[picked] - place[row], axis=1) < separation
        if not (near & (np.abs(frame[picked] - frame[row]) <= 1)).any():
            picked.append(row)
        if len(picked) == k:
            break
    return picked


def rarity_of_kinds(scene: Scene, beliefs: Beliefs) -> Array:
    """Worth of an answer of each kind, 1 for the most common one, shape (len(Event),).

    In inverse proportion to the root of how often a kind was answered, where a kind is taken to
    have been answered once for every tenth of the tracking that it makes up.
    """
    kinds = scene.hypotheses.event
    chosen = np.bincount(kinds[beliefs.solution.chosen], minlength=len(Event)).astype(np.float64)
    answered = np.bincount(kinds[scene.constraints.forced], minlength=len(Event))
    count = 1.0 + 10.0 * chosen / max(chosen.sum(), 1.0) + answered
    return np.asarray(np.sqrt(count.max() / count))


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
        How many suggestions were answered before: a fixed share is random.

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
    questions = open_questions(scene, beliefs, asked, options)
    # which of the next ones are drawn at random, evenly spread
    share = 1.0 if options.strategy == "random" else options.random_share
    number = np.floor((answered + np.arange(k + 1)) * share + 1e-9)
    turns = np.diff(number) > 0
    drawn = next_random(scene, asked, int(turns.sum()), options.seed)
    chance = [_drawn(scene, beliefs, slot, options) for slot in drawn.tolist()]
    taken = {s.hypothesis for s in chance}
    picked = [
        _picked(scene, beliefs, questions, row, options)
        for row in choose_batch(scene, beliefs, questions, k, options)
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
        reason="drawn at random from all cells, to know how accurate the tracking is",
        random=True,
    )


def _picked(
    scene: Scene,
    beliefs: Beliefs,
    questions: Unanswered,
    row: int,
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
        reason=_reason(kind, float(beliefs.margin[column]), questions.kinds[row]),
        random=False,
    )


def _reason(kind: Event, margin: float, kinds: Array) -> str:
    """Why an event is asked about, in plain words."""
    other = kinds.copy()
    other[kind] = 0.0
    rival = Event(int(np.argmax(other)))
    instead = f"it may be {NOUN[rival][0]} instead" if other[rival] > 0.2 else ""
    if instead:
        return instead
    if margin < 0.5:
        return "another event explains the cell nearly as well"
    return "it is the least certain of what is left"


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
