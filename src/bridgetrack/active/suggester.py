"""Suggest the events that are most worth an answer.

Every open event of a tracked movie is a question. The most uncertain ones come first, weighed by
how rare the kinds of events are that the answer may turn out to be: uncertainty alone asks about
hardly anything but moves, and on touching cells fifty such answers mend half as many errors.
Suggestions of a batch are no neighbours.

A share of them is drawn at random, for an unbiased estimate of the accuracy: slots come in a fixed
random order, so that the answers at its beginning are a fair sample. Slots, not events, are drawn:
they are the same whatever the model. An event is met in proportion to the slots that it covers,
which the estimate weighs out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import NOUN, Kind, Slot
from bridgetrack.detections.table import cell_diameter
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.margins import margin_bounds, reduced_costs
from bridgetrack.inference.problem import Solution
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by, choose_events
from bridgetrack.progress import Progress, Steps, run

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

TEMPERATURE = 1.0
"""Margin at which uncertainty has dropped to 1/e, in units of the task loss."""

ALTERNATIVES = 4
"""Alternatives that a suggestion names at most."""


def random_order(scene: Scene, seed: int) -> Index:
    """Slots of the problem in random order; the same for the same cells and seed, shape (S,)."""
    return np.random.default_rng([seed, 5]).permutation(len(scene.slots))


@dataclass(frozen=True)
class Beliefs:
    """What a model thinks of every hypothesis, given a solution."""

    solution: Solution  # the chosen hypotheses
    # reduced cost of every hypothesis, infinite where annotations exclude it, shape (H,)
    cost: Array
    # sum of ``exp(-cost / TEMPERATURE)`` over the hypotheses of every slot, shape (S,)
    total: Array
    # belief in each kind of event at every slot, rows summing to 1, shape (S, len(Event))
    kinds: Array
    margin: Array  # lower bound on the margin of chosen hypotheses, NaN for others, shape (H,)

    @property
    def uncertainty(self) -> Array:
        """How unsure the model is of every chosen hypothesis, 0 to 1, shape (H,)."""
        return np.exp(-self.margin / TEMPERATURE)


def believe_steps(scene: Scene, weights: Array, solution: Solution | None = None) -> Steps[Beliefs]:
    """Track a movie under its annotations, unless that is done, and say what the model believes.

    Beliefs are ``exp(-cost / TEMPERATURE)``, normalised slot by slot. The reduced cost of a
    hypothesis bounds from below what the whole objective loses when it is forced to hold, so that
    beliefs of the chosen ones are never too small.
    """
    problem, scores, allowed = scene.problem, scene.matrix.scores(weights), allowed_by(scene)
    if solution is None:
        solution = yield from choose_events(scene, scores, allowed)
    yield Progress("Looking for questions", 0.0)
    cost = np.maximum(reduced_costs(problem, scores, solution), 0.0)
    cost[solution.chosen] = 0.0
    cost = np.where(allowed, cost, np.inf)
    weight = np.exp(-cost / TEMPERATURE)
    total = np.asarray(problem.by_slot @ weight)
    kinds = np.empty((problem.n_slots, len(Event)))
    for event in Event:
        rows = scene.matrix.rows[event]
        part = np.zeros(problem.n_columns)
        part[rows] = weight[rows]
        kinds[:, event] = problem.by_slot @ part
    kinds /= np.maximum(total, 1e-12)[:, None]
    margin = margin_bounds(problem, scores, solution, allowed)
    return Beliefs(solution, cost, total, kinds, margin)


def asked_slots(scene: Scene) -> Mask:
    """Slots of the problem that were answered, (S,).

    A confirmed event settles all its slots, alternatives and "cannot tell" count as asked. A
    rejected event leaves its slots open: what is right instead may still be asked.
    """
    anchored = scene.anchored
    n = len(scene.detections)
    answers = np.array([a.kind != Kind.REJECT for a in anchored.listed], dtype=bool)
    keep = answers[anchored.owner] if len(answers) else np.zeros(0, dtype=bool)
    slots = anchored.events.take(keep).slots(n)
    slots = slots[(slots >= 0) & np.isin(slots, scene.slots)]
    out = np.zeros(len(scene.slots), dtype=bool)
    out[np.searchsorted(scene.slots, slots)] = True
    return out


def slot_numbers(scene: Scene, slots: Sequence[Slot]) -> Index:
    """Numbers in the problem of named slots, -1 where there is none such (any more), (n,)."""
    detections = scene.detections
    frame = np.asarray([cell[0] for _, cell in slots], dtype=np.int64)
    label = np.asarray([cell[1] for _, cell in slots], dtype=np.int64)
    late = np.asarray([what == "history" for what, _ in slots], dtype=bool)
    # rows are sorted by frame, then label
    base = max(int(detections.label.max(initial=0)), int(label.max(initial=0))) + 1
    known, wanted = detections.frame * base + detections.label, frame * base + label
    row = np.searchsorted(known, wanted)
    row[row == len(known)] = 0
    there = known[row] == wanted if len(known) else np.zeros(len(wanted), dtype=bool)
    slot = row + late * len(scene.detections)
    place = np.searchsorted(scene.slots, slot)
    place[place == len(scene.slots)] = 0
    there &= scene.slots[place] == slot if len(scene.slots) else False
    return np.where(there, place, -1)


def slot_name(scene: Scene, number: int) -> Slot:
    """The name of a slot of the problem."""
    n = len(scene.detections)
    slot = int(scene.slots[number])
    row = slot % n
    cell = int(scene.detections.frame[row]), int(scene.detections.label[row])
    return ("fate" if slot < n else "history"), cell


def open_questions(scene: Scene, beliefs: Beliefs, asked: Mask) -> tuple[Index, Index]:
    """Chosen events none of whose slots was asked and that have an alternative; shapes (n,).

    With each the number of the slot to ask about: of the event's slots the one where the model
    believes most in something else.
    """
    problem = scene.problem
    touched = problem.incidence @ asked.astype(np.float64) > 0
    column = np.flatnonzero(beliefs.solution.chosen & ~touched)
    column = column[np.isfinite(beliefs.margin[column])]
    # slots are padded with S
    padded, covered = np.append(beliefs.total, -np.inf), problem.slots_of(column)
    best = np.argmax(padded[covered], axis=1) if len(column) else column
    return column, np.asarray(covered[np.arange(len(column)), best], dtype=np.int64)


def choose_batch(
    scene: Scene,
    beliefs: Beliefs,
    questions: tuple[Index, Index],
    k: int,
    options: SuggestOptions,
) -> list[int]:
    """Rows of the k most valuable questions that are no neighbours, the most valuable first."""
    column, slot = questions
    if k < 1 or not len(column):
        return []
    value = beliefs.uncertainty[column] * (beliefs.kinds[slot] @ rarity_of_kinds(scene, beliefs))
    order = np.argsort(-value, kind="stable")
    place, frame = _places(scene, column)
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
    answered
        How many suggestions were answered before: a fixed share is random.

    Raises
    ------
    ModelError
        Where the model was made with other features.
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    weights = model.aligned(scene.matrix.features) if isinstance(model, Model) else model
    beliefs = yield from believe_steps(scene, weights)
    return rank(scene, beliefs, k, options or SuggestOptions(), answered)


def rank(
    scene: Scene,
    beliefs: Beliefs,
    k: int,
    options: SuggestOptions,
    answered: int = 0,
) -> list[Suggestion]:
    """Suggestions from what a model believes."""
    asked = asked_slots(scene)
    questions = open_questions(scene, beliefs, asked)
    # which of the next ones are drawn at random, evenly spread
    share = 1.0 if options.strategy == "random" else options.random_share
    number = np.floor((answered + np.arange(k + 1)) * share + 1e-9)
    turns = np.diff(number) > 0
    order = random_order(scene, options.seed)
    drawn = order[~asked[order]][: int(turns.sum())]
    chance = [_drawn(scene, beliefs, slot) for slot in drawn.tolist()]
    taken = {s.hypothesis for s in chance}
    batch = choose_batch(scene, beliefs, questions, k, options)
    pairs = zip(*(rows[batch].tolist() for rows in questions), strict=True)
    picked = [_picked(scene, beliefs, *pair) for pair in pairs if pair[0] not in taken]
    out: list[Suggestion] = []
    for turn in turns:
        queue = chance if (turn and chance) or not picked else picked
        if queue:
            out.append(queue.pop(0))
    return out


def _drawn(scene: Scene, beliefs: Beliefs, slot: int) -> Suggestion:
    """The random suggestion about a slot."""
    columns = scene.problem.by_slot[slot].indices
    column = int(columns[beliefs.solution.chosen[columns]][0])
    reason = "drawn at random from all cells, to know how accurate the tracking is"
    return _suggestion(scene, beliefs, column, slot, reason, random=True)


def _picked(scene: Scene, beliefs: Beliefs, column: int, slot: int) -> Suggestion:
    """The suggestion that a chosen question makes."""
    kind = Event(int(scene.hypotheses.event[column]))
    reason = _reason(kind, float(beliefs.margin[column]), beliefs.kinds[slot])
    return _suggestion(scene, beliefs, column, slot, reason, random=False)


def _reason(kind: Event, margin: float, kinds: Array) -> str:
    """Why an event is asked about, in plain words."""
    other = kinds.copy()
    other[kind] = 0.0
    rival = Event(int(np.argmax(other)))
    if other[rival] > 0.2:
        return f"it may be {NOUN[rival][0]} instead"
    if margin < 0.5:
        return "another event explains the cell nearly as well"
    return "it is the least certain of what is left"


def _suggestion(
    scene: Scene, beliefs: Beliefs, column: int, slot: int, reason: str, random: bool
) -> Suggestion:
    """A suggestion with the alternatives at its slot, the most plausible first."""
    columns = scene.problem.by_slot[slot].indices.astype(np.int64)
    columns = columns[np.isfinite(beliefs.cost[columns]) & (columns != column)]
    order = columns[np.argsort(beliefs.cost[columns], kind="stable")][:ALTERNATIVES]
    listed = np.concatenate([[column], order]).astype(np.int64)
    refs = event_refs(scene.detections, scene.hypotheses.take(listed))
    belief = np.exp(-beliefs.cost[listed] / TEMPERATURE) / beliefs.total[slot]
    return Suggestion(
        event=refs[0],
        alternatives=tuple(refs[1:]),
        beliefs=tuple(float(b) for b in belief),
        slot=slot_name(scene, slot),
        hypothesis=column,
        margin=float(beliefs.margin[column]),
        uncertainty=float(beliefs.uncertainty[column]),
        reason=reason,
        random=random,
    )
