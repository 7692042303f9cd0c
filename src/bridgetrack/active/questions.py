"""Every open event of a tracked movie as a question, with what the model thinks of it.

Some questions are drawn at random: slots come in a fixed random order, so that the answers at its
beginning are a fair sample. Slots, not events, are drawn: they are the same whatever the model. An
event is met in proportion to the slots that it covers, which the estimate of accuracy weighs out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.options import SuggestOptions
from bridgetrack.annotations.annotation import Kind, Slot
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.margins import margin_bounds, reduced_costs
from bridgetrack.inference.problem import Solution
from bridgetrack.pipeline.scene import Scene

Index = NDArray[np.int64]
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TINY = 1e-12


def random_order(scene: Scene, seed: int) -> Index:
    """Slots of the problem in random order; the same for the same cells and seed, shape (S,)."""
    return np.random.default_rng([seed, 5]).permutation(len(scene.slots))


def next_random(scene: Scene, asked: Mask, count: int, seed: int) -> Index:
    """The first slots of the random order that were not asked, shape (count,) at most."""
    order = random_order(scene, seed)
    return order[~asked[order]][:count]


@dataclass(frozen=True)
class Beliefs:
    """What a model thinks of every hypothesis, given a solution."""

    solution: Solution  # the chosen hypotheses
    # reduced cost of every hypothesis, infinite where annotations exclude it, shape (H,)
    cost: Array
    # sum of ``exp(-cost / temperature)`` over the hypotheses of every slot, shape (S,)
    total: Array
    # belief in each kind of event at every slot, rows summing to 1, shape (S, len(Event))
    kinds: Array
    margin: Array  # lower bound on the margin of chosen hypotheses, NaN for others, shape (H,)


@dataclass(frozen=True)
class Unanswered:
    """Chosen events that nobody has answered, one row each."""

    column: Index  # hypothesis, shape (n,)
    # number in the problem of the slot to ask about: of the event's slots the one where the model
    # believes most in something else, shape (n,)
    slot: Index
    uncertainty: Array  # shape (n,)
    kinds: Array  # belief in each kind of event at the slot, shape (n, len(Event))


def believe(
    scene: Scene, scores: Array, solution: Solution, allowed: Mask, temperature: float
) -> Beliefs:
    """Beliefs ``exp(-cost / temperature)``, normalised slot by slot.

    The reduced cost of a hypothesis bounds from below what the whole objective loses when it is
    forced to hold, so that beliefs of the chosen ones are never too small.
    """
    problem = scene.problem
    cost = np.maximum(reduced_costs(problem, scores, solution), 0.0)
    cost[solution.chosen] = 0.0
    cost = np.where(allowed, cost, np.inf)
    weight = np.exp(-cost / temperature)
    total = np.asarray(problem.by_slot @ weight)
    kinds = np.empty((problem.n_slots, len(Event)))
    for event in Event:
        rows = scene.matrix.rows[event]
        part = np.zeros(problem.n_columns)
        part[rows] = weight[rows]
        kinds[:, event] = problem.by_slot @ part
    kinds /= np.maximum(total, _TINY)[:, None]
    margin = margin_bounds(problem, scores, solution, allowed)
    return Beliefs(solution, cost, total, kinds, margin)


def asked_slots(
    scene: Scene, skipped: Collection[Slot] = (), frames: tuple[int, int] | None = None
) -> Mask:
    """Slots of the problem that were answered, passed over or are out of bounds, shape (S,).

    A confirmed event settles all its slots, alternatives and "cannot tell" count as asked. A
    rejected event leaves its slots open: what is right instead may still be asked.
    """
    anchored = scene.anchored
    n = len(scene.detections)
    settled = np.array([k != Kind.REJECT for k in anchored.kind], dtype=bool)
    keep = settled[anchored.owner] if len(settled) else np.zeros(0, dtype=bool)
    slots = anchored.events.take(keep).slots(n)
    slots = slots[(slots >= 0) & np.isin(slots, scene.slots)]
    out = ~within(scene, frames)
    out[np.searchsorted(scene.slots, slots)] = True
    passed = slot_numbers(scene, list(skipped))
    out[passed[passed >= 0]] = True
    return out


def within(scene: Scene, frames: tuple[int, int] | None) -> Mask:
    """Slots between some frames, fates in the last and histories in the first left out, (S,)."""
    if frames is None:
        return np.ones(len(scene.slots), dtype=bool)
    n = len(scene.detections)
    frame = scene.detections.frame[scene.slots % n]
    earlier = frame - (scene.slots >= n)
    return np.asarray((earlier >= frames[0]) & (earlier < frames[1]))


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


def open_questions(
    scene: Scene, beliefs: Beliefs, asked: Mask, options: SuggestOptions
) -> Unanswered:
    """All chosen events none of whose slots was asked and for which there is an alternative."""
    problem = scene.problem
    touched = problem.incidence @ asked.astype(np.float64) > 0
    column = np.flatnonzero(beliefs.solution.chosen & ~touched)
    column = column[np.isfinite(beliefs.margin[column])]
    # of each event's slots (padded with S) the one with the largest total belief
    padded, covered = np.append(beliefs.total, -np.inf), problem.slots_of(column)
    best = np.argmax(padded[covered], axis=1) if len(column) else column
    slot = np.asarray(covered[np.arange(len(column)), best], dtype=np.int64)
    kinds = beliefs.kinds[slot]
    uncertainty = np.exp(-beliefs.margin[column] / options.temperature)
    return Unanswered(column, slot, uncertainty, kinds)
