"""How far what was learned may reach beyond the answers.

A few answers about doubtful events say little of ordinary ones, and can move weights so far that,
elsewhere in the movie, the learned weights overturn what the starting ones are sure of and nobody
spoke of. Nothing that is held near answers (`sure`) sees that.

Where two choices differ, the events that differ fall into parts, joined by the fates and histories
that they share. The *regret* of a part is by how much the starting weights prefer the one choice
there. Parts that learning overturns at a regret of `SURE` or more are counted; so are those that
the answers themselves overturn. Each of these vouches for `REACH` of those. While there are more,
the step from the starting weights is halved:

    w = w0 + step (w_learned - w0),    step = 1, 1/2, 1/4, ...

Where the starting weights are sure of less than half of the movie, it stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import solve
from bridgetrack.notes import Note, NoteKind
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.outcome import choices
from bridgetrack.training.sure import SURE

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

REACH = 10
"""Parts that learning may overturn for every one that the answers overturn."""

MOSTLY = 0.5
"""Share of a movie that the starting weights have to be sure of to have a say. Where cells touch
they are sure of little, and much of that is wrong."""

LEAST = 1 / 16
"""The shortest step tried."""


@dataclass(frozen=True)
class Reached:
    """Weights that overturn no more than the answers vouch for."""

    weights: Array  # shape (d,)
    chosen: tuple[Mask, ...]  # what they choose in every movie under its annotations
    step: float = 1.0  # share of the way from the starting to the learned weights
    overturned: int = 0  # parts that the whole way overturns

    @property
    def notes(self) -> tuple[Note, ...]:
        """A remark where less than the whole way was gone."""
        if self.step == 1:
            return ()
        places = "place" if self.overturned == 1 else "places"
        words = (
            f"what was learned would overturn what the starting model is sure of in "
            f"{self.overturned} {places} that no annotation is about; {100 * self.step:.0f} % of "
            "the change of the weights was kept; if the starting model is "
            "wrong there, annotate some of these events"
        )
        return (Note(NoteKind.REMARK, words),)


def within_reach(
    scenes: Sequence[Scene], start: Array, learned: Array, before: Sequence[Mask]
) -> Reached:
    """Go from starting towards learned weights (d,) as far as the answers vouch for.

    ``before`` is what the starting weights choose in every movie under its annotations.
    """
    scores = [scene.matrix.scores(start) for scene in scenes]

    def overturned(after: Sequence[Mask]) -> int:
        parts = zip(scenes, scores, before, after, strict=True)
        return sum(_sure_parts(scene.problem, mine, one, two) for scene, mine, one, two in parts)

    step, weights, after = 1.0, learned, choices(scenes, learned)
    first = found = overturned(after)
    if not found:
        return Reached(weights, tuple(after), step, 0)
    free = [solve(s.problem, mine) for s, mine in zip(scenes, scores, strict=True)]
    if _sure_share(scenes, scores, free) < MOSTLY:
        return Reached(weights, tuple(after), step, first)
    parts = zip(scenes, scores, free, before, strict=True)
    vouching = sum(_sure_parts(s.problem, mine, one.chosen, two) for s, mine, one, two in parts)
    while found > REACH * vouching and step > LEAST:
        step /= 2
        weights = start + step * (learned - start)
        after = choices(scenes, weights)
        found = overturned(after)
    return Reached(weights, tuple(after), step, first)


def _sure_share(
    scenes: Sequence[Scene], scores: Sequence[Array], free: Sequence[Solution]
) -> float:
    """Share of the events of all movies that the starting weights are sure of."""
    parts = zip(scenes, scores, free, strict=True)
    margins = [margin_bounds(s.problem, mine, one)[one.chosen] for s, mine, one in parts]
    return float((np.concatenate(margins) >= SURE).mean())


def _sure_parts(problem: Problem, scores: Array, better: Mask, other: Mask) -> int:
    """Parts in which the one choice is better by `SURE` or more."""
    return int((regrets(problem, scores, better, other) >= SURE).sum())


def regrets(problem: Problem, scores: Array, better: Mask, other: Mask) -> Array:
    """By how much one choice of events is better than another, in every part where they differ."""
    columns = np.flatnonzero(better != other)
    if not len(columns):
        return np.zeros(0)
    incidence = sp.csr_matrix(problem.incidence[columns])
    n, part = connected_components(incidence @ incidence.T, directed=False)
    gain = np.where(better[columns], scores[columns], -scores[columns])
    return np.bincount(part, gain, minlength=n).astype(np.float64)
