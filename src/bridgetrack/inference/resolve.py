"""Is an old optimum still one? Asked before anything is solved again.

Solve again only what a change of constraints touches, with the optimum of a full solve.

The old prices stay dual feasible for every column that was allowed before. Growing the part
that is solved until the combined prices are feasible for all allowed columns (column generation)
proves the combined choice optimal for the whole problem: any choice y has the value
``sum(duals) - reduced'y`` with ``reduced >= 0``. Where the relaxation of a part lies G above its
choice, a better choice must use a column with a reduced cost below G that reaches out of the
part; such columns are taken in too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import SolverError
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import Limits, solve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def still_optimal(
    by_column: sp.csr_matrix, scores: Array, x: Array, duals: Array, tolerance: float = 1e-9
) -> bool:
    """Whether a whole choice is still optimal under new scores, by repaired prices.

    The prices are shifted so that the chosen columns pay for their slots exactly; where every
    other column's price still covers its score, they prove the old choice optimal. A negative
    answer proves nothing.

    Parameters
    ----------
    by_column
        Columns x slots, shape (H, S).
    scores
        New scores, shape (H,).
    x, duals
        Old choice and prices, shapes (H,) and (S,).
    tolerance
        Largest reduced cost violation, relative to the largest score.
    """
    chosen = np.flatnonzero(x > 0.5)
    if np.abs(x - np.rint(x)).max(initial=0.0) > 1e-7:
        return False
    part = sp.csr_matrix(by_column[chosen])
    width = np.diff(part.indptr)
    short = (scores[chosen] - part @ duals) / width
    prices = duals.copy()
    prices[part.indices] += np.repeat(short, width)
    room = by_column @ prices - scores
    return bool(
        room.min(initial=0.0) >= -tolerance * max(1.0, float(np.abs(scores).max(initial=0)))
    )


_TOLERANCE = 1e-7


@dataclass
class _State:
    """A choice with prices, improved part by part."""

    chosen: Mask
    duals: Array
    slack: Array
    component: NDArray[np.int64]
    gap: float

    @property
    def torn(self) -> float:
        """How far the relaxation lies above the choice, over all components."""
        _, first = np.unique(self.component, return_index=True)
        return float(self.slack[first].sum())


def resolve(
    problem: Problem,
    scores: Array,
    allowed: Mask,
    chosen: Mask,
    previous: Solution,
    limits: Limits | None = None,
) -> tuple[Solution, int]:
    """Solve a problem whose solution was known before some columns were forbidden or added.

    Parameters
    ----------
    problem, scores, allowed
        The problem as it is now; shapes (H,) for scores and allowed.
    chosen
        The old choice among the present columns, shape (H,); it may leave slots uncovered and
        contain columns that are forbidden now.
    previous
        The old solution, for its prices; its slots are the present ones.
    limits
        When to give up, for each part.

    Returns
    -------
    Solution, int
        As from `solve`, and how many slots were solved again.

    Raises
    ------
    SolverError
        Where the allowed columns cannot cover every slot.
    """
    state = _State(
        chosen & allowed,
        previous.duals.copy(),
        previous.slack.copy(),
        previous.component.astype(np.int64),
        previous.gap,
    )
    inside = _uncovered(problem, state.chosen) | _too_cheap(problem, scores, allowed, state)
    touched = 0
    region: Mask | None = _grow(problem, state, inside) if inside.any() else None
    while region is not None:
        touched = int(region.sum())
        region = _solve_region(problem, scores, allowed, state, region, limits)
    value = float(scores[state.chosen].sum())
    relaxed = max(float(state.duals.sum()), value)
    bound = min(value + state.gap, relaxed)
    solution = Solution(state.chosen, value, bound, state.duals, state.slack, state.component)
    solution.check(problem, scores)
    return solution, touched


def _uncovered(problem: Problem, chosen: Mask) -> Mask:
    return np.asarray(problem.by_slot @ chosen.astype(np.float64) != 1)


def _too_cheap(problem: Problem, scores: Array, allowed: Mask, state: _State) -> Mask:
    """Slots of allowed columns that score more than their slots cost, shape (S,)."""
    columns = allowed & (_reduced(problem, scores, state) < -_scale(scores))
    return _slots_of(problem, columns)


def _needed(problem: Problem, scores: Array, allowed: Mask, state: _State, region: Mask) -> Mask:
    """Slots outside a region that columns reach which might make its choice better."""
    limit = state.torn - _scale(scores) if state.torn > 0 else -_scale(scores)
    inside = problem.incidence @ region.astype(np.float64)
    crossing = (inside > 0) & (inside < problem.width)
    cheap = _reduced(problem, scores, state) < limit
    wrong = _too_cheap(problem, scores, allowed, state)
    return (_slots_of(problem, allowed & crossing & cheap) | wrong) & ~region


def _reduced(problem: Problem, scores: Array, state: _State) -> Array:
    return np.asarray(problem.incidence @ state.duals - scores)


def _scale(scores: Array) -> float:
    return _TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))


def _slots_of(problem: Problem, columns: Mask) -> Mask:
    slots = np.zeros(problem.n_slots, dtype=bool)
    slots[problem.incidence[np.flatnonzero(columns)].indices] = True
    return slots


def _grow(problem: Problem, state: _State, slots: Mask) -> Mask:
    """The slots with those that their chosen columns cover, and torn components whole."""
    while True:
        columns = state.chosen & (problem.incidence @ slots.astype(np.float64) > 0)
        grown = slots | (problem.by_slot @ columns.astype(np.float64) > 0)
        torn = np.unique(state.component[grown & (state.slack > 0)])
        grown |= np.isin(state.component, torn)
        if (grown == slots).all():
            return slots
        slots = grown


def _neighbours(problem: Problem, allowed: Mask, slots: Mask) -> Mask:
    """The slots with all that share an allowed column with them."""
    columns = allowed & (problem.incidence @ slots.astype(np.float64) > 0)
    return slots | (problem.by_slot @ columns.astype(np.float64) > 0)


def _solve_region(
    problem: Problem,
    scores: Array,
    allowed: Mask,
    state: _State,
    region: Mask,
    limits: Limits | None,
) -> Mask | None:
    """Solve a region in place; returns the larger region that is needed, None when done."""
    within = problem.incidence @ region.astype(np.float64) == problem.width
    columns, slots = np.flatnonzero(allowed & within), np.flatnonzero(region)
    part = sp.csr_matrix(problem.incidence[columns][:, slots])
    try:
        answer = solve(Problem(part), scores[columns], limits=limits)
    except SolverError:
        larger = _grow(problem, state, _neighbours(problem, allowed, region))
        if (larger == region).all():
            raise
        return larger
    touching = problem.incidence @ region.astype(np.float64) > 0
    duals = state.duals.copy()
    duals[slots] = answer.duals
    slack, component = state.slack.copy(), state.component.copy()
    slack[slots] = answer.slack
    component[slots] = answer.component + int(component.max(initial=-1)) + 1
    trial = _State(state.chosen, duals, slack, component, state.gap + answer.gap)
    outside = _needed(problem, scores, allowed, trial, region)
    if outside.any():
        return _grow(problem, state, region | outside)
    state.duals, state.slack, state.component, state.gap = duals, slack, component, trial.gap
    state.chosen[touching] = False
    state.chosen[columns[answer.chosen]] = True
    return None
