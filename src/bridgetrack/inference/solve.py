"""Exact inference: relax first, branch only where the relaxation is fractional.

1. The linear relaxation is solved (`relax`); where it is whole, that is the answer.
2. Elsewhere it is rounded, and the best choice of columns of small reduced cost is found. Only
   columns with a reduced cost below the gap of this choice can change the answer, and branch and
   bound is applied to their components only.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import BridgetrackError, SolverError
from bridgetrack.inference.problem import Problem, Solution, components, members
from bridgetrack.inference.relax import INTEGRAL, SolverLimits, greedy_choice, relax
from bridgetrack.inference.solver import Integral, solve_bounded, solve_integer
from bridgetrack.progress import run

_SMALL = 4_000
"""Columns up to which an integer program is solved in this process."""


def solve(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Solution:
    """Choose columns that cover every required slot once with the largest total score.

    Parameters
    ----------
    problem
        Slots and columns.
    scores
        Score of every column, shape (H,).
    allowed
        Columns that may be used, shape (H,); all if None.
    limits
        When to give up; the best choice so far is returned with its gap.

    Raises
    ------
    SolverError
        If scores are not finite.
    InfeasibleError
        If the allowed columns cannot cover every slot.
    """
    return run(solve_steps(problem, scores, allowed, limits))


def solve_steps(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Generator[float, None, Solution]:
    """As `solve`, yielding the share of the work done."""
    limits = limits or SolverLimits()
    until = time.monotonic() + limits.max_seconds
    relaxed = yield from relax(problem, scores, allowed, limits)
    columns, score, x, duals = relaxed.columns, scores[relaxed.columns], relaxed.x, relaxed.duals
    picked, slack, bound = x > 0.5, np.zeros(problem.n_slots), float(score @ x)

    fractional = (x > INTEGRAL) & (x < 1 - INTEGRAL)
    if fractional.any():  # these components are solved again, by branch and bound
        again = np.zeros(relaxed.count + 1, dtype=bool)  # the last is for columns of no component
        again[relaxed.column_label[fractional]] = True
        part = np.flatnonzero(again[relaxed.column_label])
        slots = np.flatnonzero(again[relaxed.slot_label])
        inside = problem.part(columns[part], slots)
        chosen, part_bound = branch(inside, score[part], x[part], duals[slots], limits, until)
        picked[part] = chosen
        bound = bound - float(score[part] @ x[part]) + part_bound
        lost = score[part] * (x[part] - chosen)
        short = np.bincount(relaxed.column_label[part], lost, minlength=relaxed.count)
        slack[slots] = np.maximum(short, 0.0)[relaxed.slot_label[slots]]
    whole = np.zeros(problem.n_columns, dtype=bool)
    whole[columns[picked]] = True
    value = float(scores[whole].sum())
    solution = Solution(whole, value, max(bound, value), duals, slack, relaxed.slot_label)
    solution.check(problem, scores)
    return solution


_NEAR = 1.0
"""Reduced cost up to which a column is near the relaxed choice."""


def branch(
    problem: Problem, scores: Array, x: Array, duals: Array, limits: SolverLimits, until: float
) -> tuple[Mask, float]:
    """Find the best whole choice of a problem whose relaxation is fractional.

    Any choice y has ``s'y = sum(duals) - reduced'y`` with ``reduced >= 0``, component by component.
    So a column whose reduced cost exceeds the gap between the relaxation and a rounded choice in
    its component cannot be in a better choice and is left out; the rest consists of smaller
    components, and those where the relaxation is whole already are done.

    Parameters
    ----------
    problem, scores
        Slots and columns, and their scores, shape (H,).
    x, duals
        Relaxed values of the columns and prices of the slots, shapes (H,) and (S,).
    limits, until
        Limits of each component, and the time at which all together must be done.

    Returns
    -------
    chosen, bound
        Columns chosen, shape (H,), and an upper bound on any choice.

    Raises
    ------
    SolverError
        If a limit was reached before there was any solution.
    """
    cost = problem.incidence @ duals - scores
    start = greedy_choice(problem, scores, x, duals)
    # A good choice is worth its time, because it decides how many columns are left out.
    near = (cost <= _NEAR) | (x > 1e-9)
    with suppress(BridgetrackError):  # there may be no choice of these alone
        start, _ = _best_of(problem, scores, x, near, start, replace(limits, gap=0.0), until)
    useful = np.ones(len(x), dtype=bool)
    if start is not None:
        useful = (cost <= _gap(problem, scores, duals, start)) | (x > 1e-9)
    return _best_of(problem, scores, x, useful, start, limits, until)


def _best_of(
    problem: Problem,
    scores: Array,
    x: Array,
    some: Mask,
    start: Mask | None,
    limits: SolverLimits,
    until: float,
) -> tuple[Mask, float]:
    """The best choice of some columns and of those of `start`, and an upper bound on it."""
    columns = np.flatnonzero(some if start is None else some | start)
    chosen, bound = np.zeros(len(x), dtype=bool), 0.0
    count, slot_label, column_label = components(problem.incidence[columns])
    slots_of, columns_of = members(slot_label, count), members(column_label, count)
    for slots, part in zip(slots_of, columns_of, strict=True):
        mine = columns[part]
        inside, score = x[mine], scores[mine]
        relaxed = float(score @ inside)
        if ((inside < INTEGRAL) | (inside > 1 - INTEGRAL)).all():
            chosen[mine[inside > 0.5]] = True
            bound += relaxed
            continue
        begin = None if start is None else start[mine]
        worst = relaxed - limits.gap * abs(relaxed)
        if begin is not None and len(mine) > limits.large and score[begin].sum() >= worst:
            chosen[mine[begin]] = True
            bound += relaxed
            continue
        best = _integer(problem.part(mine, slots), score, begin, limits.max_nodes, until)
        chosen[mine[best.x]] = True
        bound += min(best.bound, relaxed + 1e-9)
    return chosen, bound


def _gap(problem: Problem, scores: Array, duals: Array, start: Mask) -> Array:
    """How far `start` lies below the relaxation in every column's component, shape (H,)."""
    count, label, column_label = components(problem.incidence)
    best = np.bincount(label, duals, minlength=count)
    have = np.bincount(column_label[start], scores[start], minlength=count)
    # Prices are right to the solver's tolerance; the gap must not be too small for that.
    tolerance = 1e-7 * (1.0 + np.bincount(label, np.abs(duals), minlength=count))
    return np.asarray((best - have + tolerance)[column_label])


def _integer(
    problem: Problem, scores: Array, start: Mask | None, max_nodes: int, until: float
) -> Integral:
    """Solve a small program here, a large one in a process that can be ended."""
    left, answer = until - time.monotonic(), None
    if left > 0 or start is None:
        given = (problem, scores, start, max_nodes, max(0.1, left))
        if len(scores) <= _SMALL:
            return solve_integer(*given)
        answer = solve_bounded(*given)
    if answer is not None:
        return answer
    if start is None:
        raise SolverError(
            f"the solver had no answer within {max(0.1, left):.0f} s; allow more time or annotate "
            "some of the cells where many events are equally good"
        )
    return Integral(start, float(scores[start].sum()), np.inf)


# --- solving again ---------------------------------------------------------------------------


def resolve(
    problem: Problem,
    scores: Array,
    allowed: Mask,
    chosen: Mask,
    previous: Solution,
    limits: SolverLimits | None = None,
) -> tuple[Solution, int]:
    """Solve a problem whose solution was known before some columns were forbidden or added.

    The old prices stay dual feasible for every column that was allowed before. Growing the part
    that is solved until the combined prices are feasible for all allowed columns proves the
    combined choice optimal for the whole problem. If the relaxation of a part is G above its
    choice, a better choice must use a column with a reduced cost below G that reaches out of the
    part; such columns are added too.

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
        The solution as by `solve`, and the number of slots that were solved again.

    Raises
    ------
    SolverError
        If the allowed columns cannot cover every slot.
    """
    chosen = chosen & allowed
    incidence, by_slot = problem.incidence, problem.by_slot
    found, touched, gap = previous, 0, previous.gap
    tolerance = 1e-7 * max(1.0, float(np.abs(scores).max(initial=0.0)))
    wrong = np.flatnonzero(allowed & (incidence @ previous.duals - scores < -tolerance))
    count = np.bincount(incidence[np.flatnonzero(chosen)].indices, minlength=problem.n_slots)
    # An optional slot that may have lost its column is free at no price, or decided again.
    needed = problem.required | (previous.duals > tolerance)
    region = np.where(needed, count != 1, count > 1)
    region[incidence[wrong].indices] = True
    while region.any():
        region = _closed(problem, chosen, previous, region)
        touched = int(region.sum())
        slots = np.flatnonzero(region)
        near, inside = np.unique(by_slot[slots].indices, return_counts=True)
        near, inside = near[allowed[near]], inside[allowed[near]]
        whole = inside == problem.width[near]
        columns = near[whole]
        try:
            answer = solve(problem.part(columns, slots), scores[columns], limits=limits)
        except SolverError:
            # The part alone may have no choice, but a larger part may.
            larger = _closed(problem, chosen, previous, _with_slots_of(problem, region, near))
            if (larger == region).all():
                raise
            region = larger
            continue
        duals, slack = previous.duals.copy(), previous.slack.copy()
        component = previous.component.copy()
        duals[slots], slack[slots] = answer.duals, answer.slack
        component[slots] = answer.component + int(component.max(initial=-1)) + 1
        found = replace(previous, duals=duals, slack=slack, component=component)
        # If the relaxation is fractional, a column of small reduced cost that reaches out of the
        # part may still be better; otherwise only one that scores more than its slots cost.
        reduced = incidence[near] @ duals - scores[near]
        least = np.where(whole, -tolerance, found.integrality_gap - tolerance)
        outside = _with_slots_of(problem, region, near[reduced < least])
        if (outside != region).any():
            region = outside
            continue
        gap += answer.gap
        chosen[near] = False
        chosen[columns[answer.chosen]] = True
        break
    value = float(scores[chosen].sum())
    bound = min(value + gap, max(float(found.duals.sum()), value))
    solution = replace(found, chosen=chosen, value=value, bound=bound)
    solution.check(problem, scores)
    return solution, touched


def _with_slots_of(problem: Problem, slots: Mask, columns: Index) -> Mask:
    """The slots, and those of some columns."""
    grown = slots.copy()
    grown[problem.incidence[columns].indices] = True
    return grown


def _closed(problem: Problem, chosen: Mask, known: Solution, slots: Mask) -> Mask:
    """The slots, those that their chosen columns cover, and all of fractional components."""
    while True:
        near = problem.by_slot[np.flatnonzero(slots)].indices
        grown = _with_slots_of(problem, slots, near[chosen[near]])
        fractional = np.unique(known.component[grown & (known.slack > 0)])
        grown |= np.isin(known.component, fractional)
        if (grown == slots).all():
            return slots
        slots = grown
