"""How far what was learned may reach beyond the answers.

A few answers about doubtful events say little of ordinary ones, and can move weights so far that,
elsewhere in the movie, the learned weights overturn what the starting ones are sure of and nobody
spoke of. Nothing that is held near answers (`sure`) sees that.

Where two choices differ, the events that differ fall into parts, joined by the fates and histories
that they share. The *regret* of a part is by how much the starting weights prefer the one choice
there. Parts that learning overturns at a regret of `SURE` or more are counted; so are those that
the answers themselves overturn. Both are counted by what they bring (`TELLING`): a part that takes
two moves for a speck, an end and a beginning brings a speck, one that takes a move for an end and
a beginning breaks a track. The rule:

1. Every part that the answers overturn vouches for nine others that bring the same, and for more
   where they are many (`kinds.vouched`).
2. Every two of them vouch for one that brings something else (`UNLIKE`).
3. Where more answers overturn something in one way than confirm anything that the starting weights
   are sure of, these are wrong there, and all that brings the same is vouched for. The same holds
   for kinds of which several answers contradict them, and most do (`SureEvents.wrong`); what
   learning overturns of such a kind vouches, as what the answers overturn, by rule 2.
4. Answers that are probably slips (`sure`) vouch for nothing: what they say is learned, but what
   they alone overturn counts for no other part.

Of the way from the starting to the learned weights,

    w = w0 + step (w_learned - w0),

the longest of `STEPS` is gone that overturns no more than is vouched for. For every step that is
looked at the whole movie is chosen anew, so it is found by halving: a longer one may be missed only
where a shorter one overturns more. The way stays whole where the starting weights are sure of less
than half of the movie.

At every step, kinds of events that no answer speaks of are kept from growing (`kinds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.annotations.words import NOUN
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.resolve import resolve
from bridgetrack.inference.solve import solve
from bridgetrack.notes import Note, NoteKind
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by, choose_events
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.kinds import STAGE, most_of_each, price_kinds, vouched
from bridgetrack.training.sure import SURE, SureEvents

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
There = TypeVar("There")

UNLIKE = 0.5
"""Parts that learning may overturn for every one that the answers overturn in another way."""

STEPS = (1.0, 3 / 4, 1 / 2, 3 / 8, 1 / 4, 3 / 16, 1 / 8, 1 / 16)
"""Shares of the way that may be gone; the last is in any case."""

TELLING = (
    Event.FALSE,
    Event.SPLIT,
    Event.MERGE,
    Event.DIVIDE,
    Event.SKIP,
    Event.APPEAR,
    Event.DISAPPEAR,
    Event.MOVE,
)
"""Kinds of events, those first that bring others with them: a part is named by the first of which
it has more than before, by moves where there is none."""

MOSTLY = 0.5
"""Share of a movie that the starting weights have to be sure of to have a say. Where cells touch
they are sure of little, and much of that is wrong."""


@dataclass(frozen=True)
class Reached:
    """Weights that overturn no more than the answers vouch for."""

    weights: Array  # shape (d,)
    chosen: Sequence[Mask]  # what they choose in every movie under its annotations
    solutions: tuple[Solution, ...] = ()  # the same with prices, where it was solved
    step: float = 1.0  # share of the way from the starting to the learned weights
    overturned: int = 0  # parts that the whole way overturns
    rarer: tuple[Event, ...] = ()  # kinds that cost more than was learned
    price: Array | None = None  # what was added to the weights for these, shape (d,)

    def alike(self, start: Array, learned: Array) -> Array:
        """Other learned weights (d,), taken as far and at the same prices as these were."""
        weights = start + self.step * (learned - start)
        return weights if self.price is None else weights + self.price

    @property
    def as_learned(self) -> bool:
        """Whether the weights are those that were learned."""
        return self.step == 1 and not self.rarer

    @property
    def notes(self) -> tuple[Note, ...]:
        """Remarks where what was learned was not taken as it was."""
        notes = []
        if self.step < 1:
            places = "place" if self.overturned == 1 else "places"
            notes.append(
                f"what was learned would overturn what the starting model is sure of in "
                f"{self.overturned} {places} that no annotation is about; {100 * self.step:.0f} % "
                "of the change of the weights was kept; if the starting model is "
                "wrong there, annotate some of these events"
            )
        if self.rarer:
            kinds = " and ".join(NOUN[kind][1] for kind in self.rarer)
            notes.append(
                f"what was learned would find more {kinds} than the starting model, with too few "
                "annotations that say so, and was changed to find no more; if there are more, "
                "annotate some of them"
            )
        return tuple(Note(NoteKind.REMARK, words) for words in notes)


def within_reach(
    scenes: Sequence[Scene],
    start: Array,
    learned: Array,
    before: Sequence[Mask],
    sure: SureEvents | None,
    free: Sequence[Solution] | None = None,
    *,
    sources: Sequence[Scene] = (),
    priced: bool = True,
) -> Steps[Reached]:
    """Go from starting towards learned weights (d,) as far as the answers vouch for.

    Parameters
    ----------
    scenes
        The movies with their annotations.
    start, learned
        Weights, shape (d,).
    before
        What the starting weights choose in every movie under its annotations.
    sure
        What the annotations say of the starting weights; None: go all the way.
    free
        What these choose without annotations, where that is known.
    sources
        Earlier movies that were learned from, too.
    priced
        Whether kinds of events that no answer speaks of are kept from growing.
    """
    most = most_of_each(scenes, before, sources) if priced else np.full(len(Event), np.inf)

    def gone(step: float) -> Steps[Reached]:
        weights = start + step * (learned - start)
        solutions = yield from _solved(scenes, weights)
        priced = yield from price_kinds(scenes, weights, solutions, most)
        chosen = [one.chosen for one in priced.solutions]
        price = priced.weights - weights
        return Reached(priced.weights, chosen, priced.solutions, step, 0, priced.kinds, price)

    reached = yield from gone(1.0)
    if sure is None:
        return reached
    scores = [scene.matrix.scores(start) for scene in scenes]
    found = _overturned(scenes, scores, before, reached.chosen)
    if not found:
        return reached
    if free is None:
        free = [solve(s.problem, mine) for s, mine in zip(scenes, scores, strict=True)]
    first = found.total()
    if _sure_share(scenes, scores, free) < MOSTLY:
        return replace(reached, overturned=first)
    believed = before
    if sure.suspected:
        believed = _without(scenes, scores, free, sure.suspected)
    vouching = _overturned(scenes, scores, [one.chosen for one in free], believed)
    if _vouched_for(found, vouching, sure):
        return replace(reached, overturned=first)

    def allowed(there: Reached) -> bool:
        found = _overturned(scenes, scores, before, there.chosen)
        return _vouched_for(found, vouching, sure)

    shorter = yield from longest(STEPS, gone, allowed)
    return replace(shorter, overturned=first)


def longest(
    steps: Sequence[float],
    gone: Callable[[float], Steps[There]],
    allowed: Callable[[There], bool],
) -> Steps[There]:
    """Where the longest step leads that is allowed; what is shorter than such a step is, too.

    The first of the falling steps is known not to be allowed, and the last is gone in any case. Of
    eight steps three are looked at, at most.
    """
    low, high, found = 0, len(steps) - 1, None
    while high - low > 1:
        # the larger half is that whose longest step is looked at already
        middle = (low + high + 1) // 2
        there = yield from gone(steps[middle])
        if allowed(there):
            high, found = middle, there
        else:
            low = middle
    return (yield from gone(steps[-1])) if found is None else found


def _solved(scenes: Sequence[Scene], weights: Array) -> Steps[tuple[Solution, ...]]:
    """What weights choose in every movie under its annotations."""
    found = []
    for scene in scenes:
        steps = choose_events(scene, scene.matrix.scores(weights), allowed_by(scene))
        solution = yield from relayed(steps, lambda step: Progress(STAGE, step.done))
        found.append(solution)
    return tuple(found)


def _vouched_for(found: Counter[Event], vouching: Counter[Event], sure: SureEvents) -> bool:
    """Whether what the answers overturn, and confirm, vouches for what learning overturns."""
    wrong = sure.wrong | {kind for kind in found if vouching[kind] > sure.vouching}
    limited = {kind: n for kind, n in found.items() if kind not in wrong}
    others = sum(max(0.0, n - float(vouched(vouching[kind]))) for kind, n in limited.items())
    said = vouching | Counter({kind: found[kind] for kind in sure.wrong})
    return others <= UNLIKE * said.total()


def _without(
    scenes: Sequence[Scene],
    scores: Sequence[Array],
    free: Sequence[Solution],
    rows: Sequence[int],
) -> list[Mask]:
    """What scores choose in every movie under all annotations but those of some rows."""
    chosen, first = [], 0
    for scene, mine, one in zip(scenes, scores, free, strict=True):
        said = scene.constraints
        kept = said.take(np.setdiff1d(np.arange(len(said)), np.asarray(rows) - first))
        allowed = np.ones(len(mine), dtype=bool)
        allowed[kept.forbidden] = False
        chosen.append(resolve(scene.problem, mine, allowed, one.chosen, one)[0].chosen)
        first += len(said)
    return chosen


def _sure_share(
    scenes: Sequence[Scene], scores: Sequence[Array], free: Sequence[Solution]
) -> float:
    """Share of the events of all movies that the starting weights are sure of."""
    parts = zip(scenes, scores, free, strict=True)
    margins = [margin_bounds(s.problem, mine, one)[one.chosen] for s, mine, one in parts]
    return float((np.concatenate(margins) >= SURE).mean())


def _overturned(
    scenes: Sequence[Scene],
    scores: Sequence[Array],
    better: Sequence[Mask],
    other: Sequence[Mask],
) -> Counter[Event]:
    """Parts of all movies in which the one choice is better by `SURE` or more, by kind."""
    found: Counter[Event] = Counter()
    for scene, mine, one, two in zip(scenes, scores, better, other, strict=True):
        lost = regrets(scene.problem, mine, one, two)
        brought = brings(scene.problem, one, two, scene.hypotheses.event)
        found.update(Event(kind) for kind in brought[lost >= SURE].tolist())
    return found


def brings(problem: Problem, before: Mask, after: Mask, event: NDArray[np.int8]) -> Index:
    """What every part in which two choices differ brings, by the kinds ``event`` (H,) of events."""
    columns, part = _parts(problem, before, after)
    more = np.zeros((part.max(initial=-1) + 1, len(Event)), dtype=np.int64)
    np.add.at(more, (part, event[columns]), np.where(after[columns], 1, -1))
    kinds = np.asarray(TELLING)
    gained = more[:, kinds] > 0
    gained[:, -1] = True
    return np.asarray(kinds[gained.argmax(axis=1)])


def regrets(problem: Problem, scores: Array, better: Mask, other: Mask) -> Array:
    """By how much one choice of events is better than another, in every part where they differ."""
    columns, part = _parts(problem, better, other)
    gain = np.where(better[columns], scores[columns], -scores[columns])
    return np.bincount(part, gain).astype(np.float64)


def _parts(problem: Problem, one: Mask, other: Mask) -> tuple[Index, Index]:
    """Columns in which two choices differ, and the number of each one's part."""
    columns = np.flatnonzero(one != other)
    if not len(columns):
        return columns, columns
    incidence = sp.csr_matrix(problem.incidence[columns])
    _, part = connected_components(incidence @ incidence.T, directed=False)
    return columns, part.astype(np.int64)
