"""Margins of a choice: the drop of the objective if a chosen column is forbidden.

Everything here uses the prices of the slots, the duals of the linear relaxation. The *reduced
cost* of a column is the price of its slots minus its score; it is at least 0 for every allowed
column, and any feasible choice y is worth ``sum(prices) - sum of the reduced costs of its
columns``, less the prices of optional slots that it leaves free. So reduced costs say how much a
choice must lose if it uses a column, without solving anything again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import resolve

_TRIED = 200
"""Most columns examined for the smallest margins."""
_FAR = 3.0
"""Largest gap to the relaxation that an alternative may regain; beyond this none is computed."""
_TOLERANCE = 1e-6


def reduced_costs(problem: Problem, scores: Array, solution: Solution) -> Array:
    """Price of a column's slots minus its score, never negative for allowed ones, shape (H,)."""
    return np.asarray(problem.incidence @ solution.duals - scores)


def margin_bounds(
    problem: Problem, scores: Array, solution: Solution, allowed: Mask | None = None
) -> Array:
    """Lower bounds on the margins of all chosen columns at once.

    If column h is forbidden, every slot r of h is covered by another column h', and a choice
    is worse than the optimum by at least the reduced costs of its columns. A column that covers
    m slots of h is charged once, 1/m per slot, so that

        margin(h) >= sum over slots r of h of min over h' covering r, h' != h, of rc(h') / m

    (an optional slot may be left free at its price instead), minus the gap between the choice and
    the relaxation of its component. A column that reaches into other components saves at most their
    gaps, which are subtracted from its reduced cost.

    Returns
    -------
    numpy.ndarray
        Shape (H,); NaN for columns that are not chosen, infinite if nothing else is allowed.
    """
    incidence = problem.incidence
    # Rounding makes reduced costs of optimal columns slightly negative; a bound must not use that.
    cost = np.maximum(reduced_costs(problem, scores, solution), 0.0)
    if allowed is not None:
        cost = np.where(allowed, cost, np.inf)
    chosen = np.flatnonzero(solution.chosen)
    covered = incidence[chosen]
    owner = np.full(problem.n_slots + 1, -2, dtype=np.int64)
    owner[covered.indices] = np.repeat(chosen, problem.width[chosen])
    best = np.full(problem.n_slots, np.inf)
    for piece in problem.pieces():
        slots, width = problem.slots_of(piece), problem.width[piece]
        mine = owner[slots]
        # m: how many slots of the same chosen column a column covers, for each of its slots.
        together = _alike(mine, width)
        saved = _elsewhere(slots, width, solution)
        share = np.maximum(cost[piece, None] - saved, 0.0) / together
        column = np.arange(piece.start, piece.start + len(slots))[:, None]
        other = (np.arange(slots.shape[1]) < width[:, None]) & (mine != column)
        np.minimum.at(best, slots[other], share[other])
    if problem.free is not None:
        prices = np.maximum(solution.duals[problem.free], 0.0)
        best[problem.free] = np.minimum(best[problem.free], prices)
    # Infinity times zero is NaN in a product with the matrix, so infinite values are kept apart.
    impossible = covered @ (~np.isfinite(best)).astype(np.float64) > 0
    sums = covered @ np.where(np.isfinite(best), best, 0.0)
    # Slack is the same for all slots of a component; the mean over a column's slots is its own.
    short = np.asarray(covered @ solution.slack) / np.maximum(problem.width[chosen], 1)
    bounds = np.full(problem.n_columns, np.nan)
    bounds[chosen] = np.where(impossible, np.inf, np.maximum(sums - short, 0.0))
    return bounds


def _alike(owner: Index, width: NDArray[np.integer]) -> Index:
    """How many of the first entries of its row equal each of them, itself included, (H, W)."""
    out = np.ones(owner.shape, dtype=np.int64)
    for b in range(1, len(owner.T)):
        wide = np.flatnonzero(width > b)  # few columns are as wide as the widest
        mine = owner[wide]
        for a in range(b):
            equal = mine[:, a] == mine[:, b]
            out[wide, a] += equal
            out[wide, b] += equal
    return out


def _elsewhere(
    slots: NDArray[np.integer], width: NDArray[np.integer], solution: Solution
) -> Array | float:
    """Slack of the other components that a column reaches, per column and slot, shape (H, W)."""
    if not solution.slack.any():
        return 0.0
    out = np.zeros(slots.shape)
    slack = np.append(solution.slack, 0.0)[slots]
    fractional = np.flatnonzero(slack.sum(axis=1) > 0)
    slack = slack[fractional]
    component = np.append(solution.component, -1)[slots[fractional]]
    # Slack is the same for all slots of a component, so its own part is a product.
    own = slack * _alike(component, width[fractional])
    out[fractional] = np.maximum(slack.sum(axis=1)[:, None] - own, 0.0)
    return out


def smallest_first(margins: Array, columns: Index) -> Index:
    """Places of margins from the smallest up; among equal ones the first column comes first."""
    return np.lexsort((columns, np.round(margins, 9)))


def smallest_margins(
    problem: Problem,
    scores: Array,
    solution: Solution,
    bounds: Array,
    count: int,
    allowed: Mask | None = None,
) -> tuple[Index, Array, bool]:
    """The chosen columns with the smallest margins, smallest first.

    They are examined in the order of their bounds, until the next bound is larger than the margins
    found, or `_TRIED` were examined. If the choice is far from its relaxation, the best alternative
    of a column may take as long as the whole problem, and the bounds are returned instead.

    Parameters
    ----------
    problem, scores, solution, allowed
        See `best_without`.
    bounds
        Bounds by `margin_bounds`; columns without a finite one are left out.
    count
        Number of columns wanted.

    Returns
    -------
    columns, margins, exact
        `count` columns at most, their margins or, if not exact, the bounds.
    """
    order = np.flatnonzero(np.isfinite(bounds) & solution.chosen)
    order = order[np.argsort(bounds[order], kind="stable")]
    if too_hard(problem, solution):
        best = smallest_first(bounds[order], order)[:count]
        return order[best], bounds[order[best]], False
    found: list[float] = []
    for column in order[:_TRIED].tolist():
        if len(found) >= count and sorted(found)[count - 1] < bounds[column] - _TOLERANCE:
            break
        found.append(exact_margin(problem, scores, solution, column, allowed))
    margins = np.asarray(found, dtype=np.float64)
    best = smallest_first(margins, order[: len(found)])[:count]
    best = best[np.isfinite(margins[best])]
    return order[best], margins[best], True


def exact_margin(
    problem: Problem, scores: Array, solution: Solution, column: int, allowed: Mask | None = None
) -> float:
    """The margin of a chosen column; infinite without an alternative. See `best_without`."""
    try:
        return best_without(problem, scores, solution, column, (column,), allowed)[0]
    except InfeasibleError:
        return np.inf


def too_hard(problem: Problem, solution: Solution) -> bool:
    """Whether the best alternative of a column may take as long as the whole problem.

    An alternative may regain the gap to the relaxation, in as many components as a column has
    slots.
    """
    return int(problem.width.max(initial=1)) * float(solution.slack.max(initial=0.0)) > _FAR


def best_without(
    problem: Problem,
    scores: Array,
    solution: Solution,
    column: int,
    banned: Sequence[int] | NDArray[np.integer],
    allowed: Mask | None = None,
) -> tuple[float, Index, Index]:
    """The best choice without a chosen column and others like it.

    Parameters
    ----------
    problem, scores, solution
        The problem and its best choice.
    column
        A chosen column.
    banned
        Columns that must not be chosen, `column` among them; all cover one of its slots.
    allowed
        Columns that may be used at all; all if None.

    Returns
    -------
    cost, added, dropped
        The drop of the objective and the columns that enter and leave the choice.

    Raises
    ------
    SolverError
        If the column is not chosen.
    InfeasibleError
        If nothing else is allowed.
    """
    if not solution.chosen[column]:
        raise SolverError("margins are defined for chosen events only")
    free = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed.copy()
    free[np.asarray(banned, dtype=np.int64)] = False
    for slot in problem.incidence[column].indices.tolist():
        if problem.required[slot] and not free[problem.by_slot[slot].indices].any():
            raise InfeasibleError("nothing else can explain these cells")
    other, _ = resolve(problem, scores, free, solution.chosen, solution)
    added = np.flatnonzero(other.chosen & ~solution.chosen)
    dropped = np.flatnonzero(solution.chosen & ~other.chosen)
    drop = float(scores[dropped].sum()) - float(scores[added].sum())
    return max(drop, 0.0), added, dropped
