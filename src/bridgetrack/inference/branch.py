"""Branch and bound on the few columns that can still change the answer."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError, SolverError
from bridgetrack.inference.cover import small_cover
from bridgetrack.inference.problem import components, members
from bridgetrack.inference.solver import Integral, solve_bounded, solve_integer

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SMALL = 4_000
"""Columns up to which a program is solved in this process."""
_FEW = 100
"""Columns up to which a program is solved by looking at all choices, as far as that is quick."""
_REACH = 1.0
"""Reduced cost up to which a column may be part of a repair."""
_LARGEST = 3_000
"""Columns up to which a choice is repaired."""


def greedy_choice(
    rows: sp.csr_matrix, scores: Array, x: Array, duals: Array, free: Mask | None = None
) -> Mask | None:
    """Round a fractional cover (arguments as in `branch`); None where it led into a dead end.

    Columns are taken in the order of their fraction, then of their reduced cost, wherever all
    their slots are still free.
    """
    by_column = rows.T.tocsr()
    reduced = by_column @ duals - scores
    still = np.ones(rows.shape[0], dtype=bool)
    chosen = np.zeros(len(x), dtype=bool)
    # Rounded, because fractions that differ by the solver's tolerance are equal.
    for column in np.lexsort((reduced, -np.round(x, 6))):
        slots = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        if still[slots].all():
            chosen[column] = True
            still[slots] = False
    return None if (still if free is None else still & ~free).any() else chosen


def repair(
    rows: sp.csr_matrix,
    scores: Array,
    x: Array,
    duals: Array,
    start: Mask | None,
    max_nodes: int,
    free: Mask | None = None,
) -> Mask | None:
    """Improve a rounded choice by branching around the fractions only.

    Slots of fractional columns, and those that columns of small reduced cost tie to them, are
    solved anew; everywhere else the relaxation is whole and stays. The better of the result and
    `start` (a feasible choice, or None) is returned. A good choice is worth its time, because it
    decides how many columns `branch` can leave out.
    """
    by_column = sp.csr_matrix(rows.T.tocsr())
    reduced = by_column @ duals - scores
    whole = x > 1 - 1e-5
    fractional = (x > 1e-5) & ~whole
    region = _touched(rows, fractional)
    best, value = start, -np.inf if start is None else float(scores[start].sum())
    # Where the part is too small to have a whole choice, it grows by what is near, three times.
    for _ in range(3):
        near = (reduced <= _REACH) | fractional
        region = region | _touched(rows, near & (by_column @ region > 0))
        region = region | _touched(rows, whole & (by_column @ region > 0))
        inside = by_column @ region.astype(np.float64) == np.diff(by_column.indptr)
        columns, slots = np.flatnonzero(inside), np.flatnonzero(region)
        if len(columns) > _LARGEST:
            break
        try:
            part = sp.csr_matrix(rows[slots][:, columns])
            optional = None if free is None else free[slots]
            local = solve_integer(part, scores[columns], None, max_nodes, 10.0, optional)
        except BridgetrackError:
            continue
        chosen = whole.copy()
        chosen[columns] = local.x
        if float(scores[chosen].sum()) > value:
            best = chosen
        break
    return best


def _touched(rows: sp.csr_matrix, columns: Mask) -> Mask:
    """Slots that some of the columns cover, shape (S,)."""
    return np.asarray(rows @ columns.astype(np.float64) > 0)


def branch(
    rows: sp.csr_matrix,
    scores: Array,
    x: Array,
    duals: Array,
    start: Mask | None,
    max_nodes: int,
    max_seconds: float,
    free: Mask | None = None,
) -> tuple[Mask, float]:
    """Find the best whole choice of a problem whose relaxation is fractional.

    Any choice y has ``s'y = sum(duals) - reduced'y`` with ``reduced >= 0``, component by
    component. So a column whose reduced cost exceeds the gap between the relaxation and `start`
    in its component cannot be in a better choice and is left out; what remains falls into
    smaller components, and those where the relaxation is whole already are done.

    Parameters
    ----------
    rows
        Slots x columns, shape (S, H).
    scores, x
        Scores and relaxed values of the columns, shapes (H,).
    duals
        Prices of the slots, shape (S,).
    start
        A feasible choice, or None.
    max_nodes, max_seconds
        Limits per component, and of all together.
    free
        Slots that need not be covered, shape (S,); none where None.

    Returns
    -------
    chosen, bound
        Columns chosen, shape (H,), and an upper bound on any choice.

    Raises
    ------
    SolverError
        Where a limit struck before there was any answer.
    """
    useful = np.arange(len(x))
    start = repair(rows, scores, x, duals, start, max_nodes, free)
    if start is not None:
        near = rows.T @ duals - scores <= _gap(rows, scores, duals, start)
        useful = np.flatnonzero(near | start | (x > 1e-9))
    chosen = np.zeros(len(x), dtype=bool)
    bound = 0.0
    deadline = time.monotonic() + max_seconds
    count, slot_label, column_label = components(sp.csr_matrix(rows[:, useful].T))
    slots_of, columns_of = members(slot_label, count), members(column_label, count)
    for slots, part in zip(slots_of, columns_of, strict=True):
        columns = useful[part]
        inside = x[columns]
        if ((inside < 1e-5) | (inside > 1 - 1e-5)).all():
            chosen[columns[inside > 0.5]] = True
            bound += float(scores[columns] @ inside)
            continue
        sub = sp.csr_matrix(rows[slots][:, columns])
        optional = None if free is None else free[slots]
        if len(columns) <= _FEW:
            few = _looked_at(sub, scores[columns], duals[slots], optional)
            if few is not None:
                chosen[columns[few]] = True
                bound += float(scores[columns[few]].sum())
                continue
        begin = start[columns] if start is not None else None
        left = deadline - time.monotonic()
        if left <= 0 and begin is not None:
            best = Integral(begin, float(scores[columns][begin].sum()), np.inf)
        else:
            best = _integer(sub, scores[columns], begin, max_nodes, max(0.1, left), optional)
        chosen[columns[best.x]] = True
        bound += min(best.bound, float(scores[columns] @ inside) + 1e-9)
    return chosen, bound


def _looked_at(rows: sp.csr_matrix, scores: Array, duals: Array, free: Mask | None) -> Mask | None:
    """The best choice of a very small program, or None where that takes long."""
    costs = np.maximum(rows.T @ duals - scores, 0.0)
    return small_cover(rows, costs, duals, free)


def _integer(
    rows: sp.csr_matrix,
    scores: Array,
    start: Mask | None,
    max_nodes: int,
    max_seconds: float,
    free: Mask | None,
) -> Integral:
    """A small program is solved here; a large one in a process that can be ended."""
    if len(scores) <= _SMALL:
        return solve_integer(rows, scores, start, max_nodes, max_seconds, free)
    answer = solve_bounded(rows, scores, start, max_nodes, max_seconds, free)
    if answer is not None:
        return answer
    if start is None:
        raise SolverError(
            f"the solver had no answer within {max_seconds:.0f} s; allow more time or annotate "
            "some of the cells where many events are equally good"
        )
    return Integral(start, float(scores[start].sum()), np.inf)


def _gap(rows: sp.csr_matrix, scores: Array, duals: Array, start: Mask) -> Array:
    """How far `start` lies below the relaxation in every column's component, shape (H,)."""
    count, label, column_label = components(sp.csr_matrix(rows.T))
    best = np.bincount(label, duals, minlength=count)
    have = np.bincount(column_label[start], scores[start], minlength=count)
    # Prices are right to the solver's tolerance; the gap must not be too small for that.
    tolerance = 1e-7 * (1.0 + np.bincount(label, np.abs(duals), minlength=count))
    return np.asarray((best - have + tolerance)[column_label])
