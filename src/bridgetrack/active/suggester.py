"""Suggest the events that are most worth an answer.

Every open event of a tracked movie is a question. The most uncertain ones come first, weighed by
how rare the kinds of events are that the answer may turn out to be: uncertainty alone asks mostly
about moves, and on touching cells fifty such answers remove half as many errors. Margins are
bounded for all events, and found exactly for those that the bounds put first: many bounds are 0,
which would leave the order to chance. Suggestions of a batch are no neighbours.

A share of them is drawn at random, for an unbiased estimate of the accuracy: slots come in a fixed
random order, so that the answers at its beginning are a fair sample. Slots, not events, are drawn:
they are the same whatever the model. An event is met in proportion to the slots that it covers,
which the estimate weighs out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import FATE, HISTORY, EventRef, Kind, Slot
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import cell_diameter
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.margins import exact_margin, margin_bounds, reduced_costs, too_hard
from bridgetrack.inference.problem import Solution
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import choose_events
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.tracks.table import certainty_of

DOUBTFUL = float(np.log(9))
"""Margin of an event that is 90 % certain."""

TRIED = 3
"""Times as many questions as are wanted whose margins are found."""

ALTERNATIVES = 4
"""Alternatives that a suggestion names at most."""


def random_order(scene: Scene, seed: int) -> Index:
    """Slots of the problem in random order; the same for the same cells and seed, shape (S,)."""
    return np.random.default_rng([seed, 5]).permutation(len(scene.slots))


@dataclass(frozen=True)
class Beliefs:
    """Beliefs of a model about every hypothesis, given a solution."""

    solution: Solution  # the chosen hypotheses
    # reduced cost of every hypothesis, infinite where annotations exclude it, shape (H,)
    cost: Array
    total: Array  # sum of ``exp(-cost)`` over the hypotheses of every slot, shape (S,)
    # belief in each kind of event at every slot, rows summing to 1, shape (S, len(Event))
    kinds: Array
    margin: Array  # lower bound on the margin of chosen hypotheses, NaN for others, shape (H,)
    scores: Array  # of every hypothesis, shape (H,)


def believe_steps(scene: Scene, weights: Array, solution: Solution | None = None) -> Steps[Beliefs]:
    """Track a movie under its annotations, unless that is done, and compute the beliefs.

    Beliefs are ``exp(-cost)``, normalised slot by slot. The reduced cost of a
    hypothesis bounds from below what the whole objective loses when it is forced to hold, so that
    beliefs of the chosen ones are never too small.
    """
    problem, scores = scene.problem, scene.matrix.scores(weights)
    allowed = scene.constraints.allowed
    if solution is None:
        solution = yield from choose_events(scene, scores, allowed)
    yield Progress("Looking for questions", 0.0)
    cost = np.maximum(reduced_costs(problem, scores, solution), 0.0)
    cost[solution.chosen] = 0.0
    cost = np.where(allowed, cost, np.inf)
    weight = np.exp(-cost)
    total = np.asarray(problem.by_slot @ weight)
    of_kind = scene.hypotheses.event[:, None] == np.arange(len(Event))
    kinds = np.asarray(problem.by_slot @ (weight[:, None] * of_kind))
    kinds /= np.maximum(total, 1e-12)[:, None]
    margin = margin_bounds(problem, scores, solution, allowed)
    return Beliefs(solution, cost, total, kinds, margin, scores)


def places(scene: Scene, events: Events) -> Index:
    """Numbers in the problem of the slots that events cover, -1 for none, shape (n, 5)."""
    slots = events.slots(len(scene.detections))
    number = np.searchsorted(scene.slots, slots)
    return np.where(np.append(scene.slots, -2)[number] == slots, number, -1)


def asked_slots(scene: Scene) -> Mask:
    """Slots of the problem that were answered, (S,).

    A confirmed event settles all its slots, alternatives and "cannot tell" count as asked. A
    rejected event leaves its slots open: what is right instead may still be asked.
    """
    anchored = scene.anchored
    answers = np.array([a.kind != Kind.REJECT for a in anchored.listed], dtype=bool)
    slots = places(scene, anchored.events.take(answers[anchored.owner]))
    out = np.zeros(len(scene.slots), dtype=bool)
    out[slots[slots >= 0]] = True
    return out


def slot_name(scene: Scene, number: int) -> Slot:
    """The name of a slot of the problem."""
    n = len(scene.detections)
    slot = int(scene.slots[number])
    row = slot % n
    cell = int(scene.detections.frame[row]), int(scene.detections.label[row])
    return ("fate" if slot < n else "history"), cell


def open_questions(scene: Scene, beliefs: Beliefs, asked: Mask) -> tuple[Index, Index]:
    """Chosen events none of whose slots was asked and that have an alternative; shapes (n,).

    Also the slot to ask about: that of the event where the model believes most in an alternative.
    """
    problem = scene.problem
    touched = problem.incidence @ asked.astype(np.float64) > 0
    column = np.flatnonzero(beliefs.solution.chosen & ~touched)
    column = column[np.isfinite(beliefs.margin[column])]
    # slots are padded with S
    padded, covered = np.append(beliefs.total, -np.inf), problem.slots_of(column)
    best = np.argmax(padded[covered], axis=1) if len(column) else column
    return column, np.asarray(covered[np.arange(len(column)), best], dtype=np.int64)


def apart(scene: Scene, column: Index, k: int, separation: float) -> Index:
    """Rows of the first k events that are not neighbours within some cell diameters, (<= k,)."""
    place, frame = _places(scene, column)
    nearest = separation * cell_diameter(scene.detections)
    picked: list[int] = []
    for row in range(len(column)):
        if len(picked) == k:
            break
        near = np.linalg.norm(place[picked] - place[row], axis=1) < nearest
        if not (near & (np.abs(frame[picked] - frame[row]) <= 1)).any():
            picked.append(row)
    return np.array(picked, dtype=np.int64)


def exact_steps(scene: Scene, beliefs: Beliefs, columns: Index) -> Steps[Beliefs]:
    """Compute the margins of some chosen events; if that is too hard, keep the bounds."""
    margin, given = beliefs.margin.copy(), (scene.problem, beliefs.scores, beliefs.solution)
    hard, allowed = too_hard(scene.problem, beliefs.solution), scene.constraints.allowed
    for k, column in enumerate(() if hard else columns.tolist()):
        yield Progress("Looking for questions", k / len(columns))
        margin[column] = exact_margin(*given, column, allowed)
    return replace(beliefs, margin=margin)


def n_doubtful(scene: Scene, beliefs: Beliefs) -> int:
    """How many open events may be less than 90 % certain."""
    column, _ = open_questions(scene, beliefs, asked_slots(scene))
    return int((beliefs.margin[column] < DOUBTFUL).sum())


def rarity_of_kinds(scene: Scene, beliefs: Beliefs) -> Array:
    """Worth of an answer of each kind, 1 for the most common one, shape (len(Event),).

    Inversely proportional to the root of the number of answers of a kind, in which every tenth of
    the tracking that it makes up counts as one more.
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
        If the model was made with other features.
    ContradictionError
        If annotations exclude each other; the message names them.
    """
    weights = model.aligned(scene.matrix.features) if isinstance(model, Model) else model
    beliefs = yield from believe_steps(scene, weights)
    return (yield from rank_steps(scene, beliefs, k, options or SuggestOptions(), answered))


def rank_steps(
    scene: Scene, beliefs: Beliefs, k: int, options: SuggestOptions, answered: int = 0
) -> Steps[list[Suggestion]]:
    """Suggestions from what a model believes."""
    asked = asked_slots(scene)
    # which of the next ones are drawn at random, evenly spread
    number = np.floor((answered + np.arange(k + 1)) * options.random_share + 1e-9)
    turns = np.diff(number) > 0
    order = random_order(scene, options.seed)
    drawn = order[~asked[order]][: int(turns.sum())]
    chosen = _chosen_at(scene, beliefs, drawn)
    column, slot = open_questions(scene, beliefs, asked)
    rarity = beliefs.kinds[slot] @ rarity_of_kinds(scene, beliefs)
    # Among events with the same bound, those with more probable alternatives come first.
    best = np.lexsort((-beliefs.total[slot], -np.exp(-beliefs.margin[column]) * rarity))
    best = best[apart(scene, column[best], TRIED * k, options.separation)]
    column, slot, rarity = column[best], slot[best], rarity[best]
    beliefs = yield from exact_steps(scene, beliefs, np.union1d(column, chosen))
    order = np.argsort(-np.exp(-beliefs.margin[column]) * rarity, kind="stable")
    order = order[np.isfinite(beliefs.margin[column[order]])]
    order = order[~np.isin(column[order], chosen)][:k]
    chance, picked = (
        [_suggestion(scene, beliefs, *pair, random) for pair in zip(*pairs, strict=True)]
        for pairs, random in (
            ((chosen.tolist(), drawn.tolist()), True),
            ((column[order].tolist(), slot[order].tolist()), False),
        )
    )
    out: list[Suggestion] = []
    for turn in turns:
        queue = chance if (turn and chance) or not picked else picked
        if queue:
            out.append(queue.pop(0))
    return out


def _chosen_at(scene: Scene, beliefs: Beliefs, slots: Index) -> Index:
    """The chosen event that covers each of some slots."""
    here = scene.problem.by_slot[slots].multiply(beliefs.solution.chosen).tocsr()
    here.eliminate_zeros()
    return here.indices.astype(np.int64)


def _reason(kind: Event, margin: float, kinds: Array, words: Mapping[Event, str]) -> str:
    """Why an event is asked about, in plain words."""
    other = kinds.copy()
    other[kind] = 0.0
    rival = Event(int(np.argmax(other)))
    if other[rival] > 0.2:
        return f"perhaps it {words[rival]} instead"
    if margin < 0.5:
        return "another event explains the cell nearly as well"
    return "it is the least certain event left"


def _suggestion(scene: Scene, beliefs: Beliefs, column: int, slot: int, random: bool) -> Suggestion:
    """A suggestion with the alternatives at its slot, the most plausible first."""
    columns = scene.problem.by_slot[slot].indices.astype(np.int64)
    cost, margins = beliefs.cost[columns], beliefs.margin[columns]
    found = ranked(scene, columns, cost, columns == column, margins, 1 + ALTERNATIVES)
    found = [one for one in found if not one.excluded]
    margin, event = float(beliefs.margin[column]), found[0].event
    reason = "drawn at random from all cells, to know how accurate the tracking is"
    name = slot_name(scene, slot)
    if not random:
        words = HISTORY if name[0] == "history" else FATE
        reason = _reason(event.event, margin, beliefs.kinds[slot], words)
    return Suggestion(
        event=event,
        alternatives=tuple(one.event for one in found[1:]),
        beliefs=tuple(one.confidence for one in found),
        slot=name,
        hypothesis=column,
        margin=margin,
        reason=reason,
        random=random,
    )


# ---------------------------------------------------------------------- what else could be


@dataclass(frozen=True)
class Proposal:
    """One event that could explain a cell's fate or history."""

    event: EventRef  # with its cells
    confidence: float  # share of belief among the alternatives of the same cell, 0 to 1
    cost: float  # how much the movie's score would drop at least, 0 for the present choice
    chosen: bool  # whether it is part of the present tracking
    excluded: bool  # whether an annotation rules it out


def ranked(
    scene: Scene, columns: Index, cost: Array, chosen: Mask, margin: Array, limit: int
) -> list[Proposal]:
    """Events that could explain a slot: the chosen one first, then by what they would cost.

    The confidence of the chosen event is that of the tables (`certainty_of` its margin); the others
    share what is left by ``exp(-cost)``.

    `columns` are all hypotheses at the slot, with their reduced costs, whether they are chosen, and
    their margins where they are, all of shape (k,).
    """
    excluded = ~scene.constraints.allowed[columns]
    weight = np.where(excluded, 0.0, np.exp(-np.where(chosen, 0.0, cost)))
    share, rest = weight / max(float(weight.sum()), 1e-12), float(weight[~chosen].sum())
    if chosen.sum() == 1 and rest > 0 and not np.isnan(margin[chosen]).any():
        sure = certainty_of(margin[chosen])[0]
        share = np.where(chosen, sure, (1.0 - sure) * weight / rest)
    order = np.lexsort((cost, excluded, ~chosen))[:limit]
    refs = event_refs(scene.detections, scene.hypotheses.take(columns[order]))
    known = (share[order], cost[order], chosen[order], excluded[order])
    return [
        Proposal(ref, *values)
        for ref, *values in zip(refs, *(each.tolist() for each in known), strict=True)
    ]
