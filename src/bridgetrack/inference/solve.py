"""Exact inference: relax first, branch only where the relaxation is fractional.

1. Columns that others beat on the same slots are dropped (`Problem.undominated`).
2. What is left falls into connected components; they are packed into linear programs of a few
   thousand columns and solved side by side.
3. Only columns with a reduced cost below the gap of a rounded choice can change the answer;
   branch and bound sees nothing but the components of those that are fractional.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.branch import branch, greedy_choice
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solver import Program, Relaxed

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TOLERANCE = 1e-6
_INTEGRAL = 1e-5


@dataclass(frozen=True)
class Limits:
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
    problem: Problem,
    scores: Array,
    allowed: Mask | None = None,
    limits: Limits | None = None,
) -> Solution:
    """Choose columns that cover every slot once with the largest total score.

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
        Where the allowed columns cannot cover every slot once.
    """
    solution = None
    for step in solve_steps(problem, scores, allowed, limits):
        solution = step
    if not isinstance(solution, Solution):
        raise SolverError("inference was stopped before it had an answer")
    return solution


def solve_steps(
    problem: Problem,
    scores: Array,
    allowed: Mask | None = None,
    limits: Limits | None = None,
) -> Iterator[float | Solution]:
    """As `solve`, yielding the share of the work done and, last, the solution."""
    limits = limits or Limits()
    allowed = np.ones(problem.n_columns, dtype=bool) if allowed is None else allowed
    if not np.isfinite(scores).all():
        raise SolverError("a score is not a finite number; check the model's weights and features")
    uncovered = np.flatnonzero(problem.by_slot @ allowed.astype(np.float64) == 0)
    if len(uncovered):
        raise InfeasibleError(f"no allowed event explains slot {int(uncovered[0])}")
    columns = np.flatnonzero(problem.undominated(scores, allowed))
    incidence = problem.incidence[columns]
    label, n_components = _components(incidence)
    x = np.zeros(len(columns))
    duals = np.zeros(problem.n_slots)
    done = 0
    for part, slots, relaxed in _relax(incidence, label, n_components, scores[columns], limits):
        x[part] = relaxed.x
        duals[slots] = relaxed.duals
        done += len(part)
        yield done / max(len(columns), 1)
    yield _finish(problem, scores, columns, incidence, label, x, duals, limits)


def _components(incidence: sp.csr_matrix) -> tuple[Index, int]:
    """Connected component of every slot, shape (S,)."""
    if not incidence.shape[1]:
        return np.zeros(0, dtype=np.int64), 0
    count, label = connected_components(incidence.T @ incidence, directed=False)
    return label.astype(np.int64), int(count)


def _batches(size: Index, limit: int) -> Index:
    """Pack components of the given sizes, in order, into batches; batch of each component."""
    return np.asarray(np.cumsum(size) // max(limit, 1), dtype=np.int64)


def _relax(
    incidence: sp.csr_matrix, label: Index, n_components: int, scores: Array, limits: Limits
) -> Iterator[tuple[Index, Index, Relaxed]]:
    """Solve the relaxation batch by batch: (columns, slots, solution)."""
    component = label[incidence.indices[incidence.indptr[:-1]]]
    batch_of = _batches(np.bincount(component, minlength=n_components), limits.batch)
    column_batch, slot_batch = batch_of[component], batch_of[label]
    column_order = np.argsort(column_batch, kind="stable")
    slot_order = np.argsort(slot_batch, kind="stable")
    numbers = np.unique(column_batch)
    column_cut = np.searchsorted(column_batch[column_order], [numbers, numbers + 1])
    slot_cut = np.searchsorted(slot_batch[slot_order], [numbers, numbers + 1])
    by_slot = incidence.T.tocsr()

    def one(k: int) -> tuple[Index, Index, Relaxed]:
        part = column_order[column_cut[0][k] : column_cut[1][k]]
        slots = slot_order[slot_cut[0][k] : slot_cut[1][k]]
        rows = by_slot[slots][:, part]
        relaxed = Program(rows).relax(scores[part])
        if not relaxed.optimal:
            raise SolverError("the linear solver stopped before the optimum; scale the scores")
        return part, slots, relaxed

    with ThreadPoolExecutor(limits.workers) as pool:
        yield from pool.map(one, range(len(numbers)))


def _finish(
    problem: Problem,
    scores: Array,
    columns: Index,
    incidence: sp.csr_matrix,
    label: Index,
    x: Array,
    duals: Array,
    limits: Limits,
) -> Solution:
    """Make the relaxed solution whole and say how far from the optimum it can be."""
    score = scores[columns]
    relaxed_value = float(score @ x)
    picked = x > 0.5
    slack = np.zeros(problem.n_slots)
    bound = relaxed_value
    fractional = (x > _INTEGRAL) & (x < 1 - _INTEGRAL)
    if fractional.any():
        component = label[incidence.indices[incidence.indptr[:-1]]]
        torn = np.isin(component, np.unique(component[fractional]))
        part = np.flatnonzero(torn)
        slots = np.flatnonzero(np.isin(label, np.unique(component[fractional])))
        rows = sp.csr_matrix(incidence[part][:, slots].T.tocsr())
        start = greedy_choice(rows, score[part], x[part], duals[slots])
        chosen, part_bound = branch(
            rows, score[part], x[part], duals[slots], start, limits.max_nodes, limits.max_seconds
        )
        picked[part] = chosen
        bound = relaxed_value - float(score[part] @ x[part]) + part_bound
        short = np.zeros(int(label.max()) + 1)
        np.add.at(short, component[part], score[part] * (x[part] - chosen))
        slack[slots] = np.maximum(short, 0.0)[label[slots]]
    chosen = np.zeros(problem.n_columns, dtype=bool)
    chosen[columns[picked]] = True
    value = float(scores[chosen].sum())
    solution = Solution(chosen, value, max(bound, value), duals, slack, label)
    solution.check(problem, scores)
    return solution
