"""Exact inference: relax first, branch only where the relaxation is fractional.

1. Columns that others beat on the same slots are dropped (`Problem.undominated`).
2. What is left falls into connected components; they are packed into linear programs of a few
   thousand columns and solved side by side.
3. Only columns with a reduced cost below the gap of a rounded choice can change the answer;
   branch and bound sees nothing but the components of those that are fractional.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.branch import branch, greedy_choice
from bridgetrack.inference.problem import Problem, Solution, components, members
from bridgetrack.inference.solver import Program, Relaxed, check_scores
from bridgetrack.progress import run

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_INTEGRAL = 1e-5
"""How far from 0 and 1 the simplex method leaves values that are whole."""


@dataclass(frozen=True)
class SolverLimits:
    """When the solver gives up; the defaults prove optimality on every movie seen so far.

    Parameters
    ----------
    max_nodes
        Branch-and-bound nodes per component; decides what comes back, so that results repeat.
    max_seconds
        Wall-clock seconds for all branch and bound together; a safety net.
    batch
        Columns per linear program.
    workers
        Linear programs solved side by side.
    """

    max_nodes: int = 20_000
    max_seconds: float = 600.0
    batch: int = 5_000
    workers: int = 2


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
        Columns that may be used, shape (H,); all where None.
    limits
        When to give up; the best choice so far is returned with its gap.

    Raises
    ------
    SolverError
        Where scores are not finite.
    InfeasibleError
        Where the allowed columns cannot cover every slot.
    """
    return run(solve_steps(problem, scores, allowed, limits))


def solve_steps(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Generator[float, None, Solution]:
    """As `solve`, yielding the share of the work done."""
    limits = limits or SolverLimits()
    columns, x, duals, (count, slot_label, column_label) = yield from _relaxed(
        problem, scores, allowed, limits
    )
    incidence, score = problem.incidence[columns], scores[columns]

    # The relaxed choice is made whole, and its distance from the relaxation told per component.
    picked, slack = x > 0.5, np.zeros(problem.n_slots)
    bound = float(score @ x)
    fractional = (x > _INTEGRAL) & (x < 1 - _INTEGRAL)
    if fractional.any():
        torn = np.zeros(count, dtype=bool)
        torn[column_label[fractional]] = True
        part, slots = np.flatnonzero(torn[column_label]), np.flatnonzero(torn[slot_label])
        rows = sp.csr_matrix(incidence[part][:, slots].T.tocsr())
        free = None if problem.free is None else problem.free[slots]
        start = greedy_choice(rows, score[part], x[part], duals[slots], free)
        nodes, seconds = limits.max_nodes, limits.max_seconds
        chosen, part_bound = branch(
            rows, score[part], x[part], duals[slots], start, nodes, seconds, free
        )
        picked[part] = chosen
        bound = bound - float(score[part] @ x[part]) + part_bound
        short = np.bincount(column_label[part], score[part] * (x[part] - chosen), minlength=count)
        slack[slots] = np.maximum(short, 0.0)[slot_label[slots]]
    whole = np.zeros(problem.n_columns, dtype=bool)
    whole[columns[picked]] = True
    value = float(scores[whole].sum())
    solution = Solution(whole, value, max(bound, value), duals, slack, slot_label)
    solution.check(problem, scores)
    return solution


def prices(
    problem: Problem, scores: Array, allowed: Mask | None = None, limits: SolverLimits | None = None
) -> Array:
    """Prices of the slots whose sum no choice exceeds, the least such sum; shape (S,).

    The price of its slots is at least the score of every allowed column. Raises as `solve`.
    """
    duals: Array = run(_relaxed(problem, scores, allowed, limits or SolverLimits()))[2]
    return duals


def _relaxed(
    problem: Problem, scores: Array, allowed: Mask | None, limits: SolverLimits
) -> Generator[float, None, tuple[Index, Array, Array, tuple[int, Index, Index]]]:
    """Undominated columns, their relaxed values, the prices of the slots, and the components."""
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    check_scores(scores)
    covered = problem.covered(allowed) > 0
    uncovered = np.flatnonzero(problem.required & ~covered)
    if len(uncovered):
        raise InfeasibleError(f"no allowed event explains slot {int(uncovered[0])}")
    columns = np.flatnonzero(problem.undominated(scores, allowed))
    incidence, score = problem.incidence[columns], scores[columns]
    count, slot_label, column_label = components(incidence)
    x, duals = np.zeros(len(columns)), np.zeros(problem.n_slots)
    done = 0
    # Components are packed in order into programs of about as many columns as the limit says.
    size = np.bincount(column_label, minlength=count)
    batch = np.cumsum(size) // max(limits.batch, 1)
    useful = Problem(incidence, problem.free)
    parts = _relax(useful, batch[column_label], batch[slot_label], score, limits)
    for part, slots, relaxed in parts:
        x[part] = relaxed.x
        duals[slots] = relaxed.duals
        done += len(part)
        yield done / max(len(columns), 1)
    return columns, x, duals, (count, slot_label, column_label)


def _relax(
    problem: Problem, column_batch: Index, slot_batch: Index, scores: Array, limits: SolverLimits
) -> Iterator[tuple[Index, Index, Relaxed]]:
    """Solve the relaxation batch by batch: (columns, slots, solution)."""
    by_slot, optional = problem.by_slot, problem.free
    count = int(column_batch.max(initial=-1)) + 1
    parts = zip(members(column_batch, count), members(slot_batch, count), strict=True)

    def one(part: tuple[Index, Index]) -> tuple[Index, Index, Relaxed]:
        columns, slots = part
        free = None if optional is None else optional[slots]
        relaxed = Program(by_slot[slots][:, columns], free=free).relax(scores[columns])
        if not relaxed.optimal:
            raise SolverError("the linear solver stopped before the optimum; scale the scores")
        return columns, slots, relaxed

    with ThreadPoolExecutor(limits.workers) as pool:
        # A batch number that a large component jumped over has no members.
        yield from pool.map(one, [part for part in parts if len(part[0])])
