"""Solve again only what a change of constraints touches, with the optimum of a full solve.

The old prices stay dual feasible for every column that was allowed before. Growing the part
that is solved until the combined prices are feasible for all allowed columns (column generation)
proves the combined choice optimal for the whole problem: any choice y has the value
``sum(duals) - reduced'y`` with ``reduced >= 0``. Where the relaxation of a part lies G above its
choice, a better choice must use a column with a reduced cost below G that reaches out of the
part; such columns are taken in too.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import SolverError
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import SolverLimits, solve

Array = NDArray[np.float64]
Index = NDArray[np.int64]
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
    scores, x, duals
        New scores, old choice and old prices, shapes (H,), (H,) and (S,).
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
"""By how much a reduced cost may be negative, relative to the largest score."""


def resolve(
    problem: Problem,
    scores: Array,
    allowed: Mask,
    chosen: Mask,
    previous: Solution,
    limits: SolverLimits | None = None,
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
    chosen = chosen & allowed
    duals, slack, component = previous.duals, previous.slack, previous.component
    gap, touched = previous.gap, 0
    tolerance = _TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))
    wrong = allowed & (problem.incidence @ duals - scores < -tolerance)
    count = problem.covered(chosen)
    # An optional slot that may have lost its column is free at no price, or decided again.
    owed = problem.required | (duals > tolerance)
    region = np.where(owed, count != 1, count > 1)
    region |= _slots_of(problem, wrong)
    while region.any():
        region = _closed(problem, chosen, slack, component, region)
        touched = int(region.sum())
        inside = problem.incidence @ region.astype(np.float64)
        columns, slots = np.flatnonzero(allowed & (inside == problem.width)), np.flatnonzero(region)
        part = problem.part(columns, slots)
        try:
            answer = solve(part, scores[columns], limits=limits)
        except SolverError:
            # The part alone may have no choice; its surroundings may lend it one.
            around = region | (_slots_of(problem, allowed & (inside > 0)))
            larger = _closed(problem, chosen, slack, component, around)
            if (larger == region).all():
                raise
            region = larger
            continue
        new_duals, new_slack, new_component = duals.copy(), slack.copy(), component.copy()
        new_duals[slots] = answer.duals
        new_slack[slots] = answer.slack
        new_component[slots] = answer.component + int(component.max(initial=-1)) + 1
        # Where the relaxation is torn, a column of small reduced cost that reaches out of the part
        # may still win; elsewhere only one that scores more than its slots cost.
        reduced = problem.incidence @ new_duals - scores
        crossing = (inside > 0) & (inside < problem.width)
        cheap = crossing & (reduced < _torn(new_slack, new_component) - tolerance)
        outside = _slots_of(problem, allowed & (cheap | (reduced < -tolerance))) & ~region
        if outside.any():
            region = region | outside
            continue
        duals, slack, component, gap = new_duals, new_slack, new_component, gap + answer.gap
        chosen[inside > 0] = False
        chosen[columns[answer.chosen]] = True
        break
    value = float(scores[chosen].sum())
    bound = min(value + gap, max(float(duals.sum()), value))
    solution = Solution(chosen, value, bound, duals, slack, component)
    solution.check(problem, scores)
    return solution, touched


def _slots_of(problem: Problem, columns: Mask) -> Mask:
    """Slots that some of the columns cover, shape (S,)."""
    return problem.covered(columns) > 0


def _torn(slack: Array, component: Index) -> float:
    """How far the relaxation lies above the choice, over all components."""
    _, first = np.unique(component, return_index=True)
    return float(slack[first].sum())


def _closed(problem: Problem, chosen: Mask, slack: Array, component: Index, slots: Mask) -> Mask:
    """The slots with those that their chosen columns cover, and torn components whole."""
    while True:
        columns = chosen & (problem.incidence @ slots.astype(np.float64) > 0)
        grown = slots | _slots_of(problem, columns)
        grown |= np.isin(component, np.unique(component[grown & (slack > 0)]))
        if (grown == slots).all():
            return slots
        slots = grown
