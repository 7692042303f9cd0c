"""Branch and bound on the few columns that can still change the answer."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.errors import SolverError
from bridgetrack.inference.bounded import solve_bounded
from bridgetrack.inference.solver import Integral, solve_integer

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SMALL = 4_000
"""Columns up to which a program is solved in this process."""


def branch(
    rows: sp.csr_matrix,
    scores: Array,
    x: Array,
    duals: Array,
    start: Mask | None,
    max_nodes: int,
    max_seconds: float,
) -> tuple[Mask, float]:
    """Find the best whole choice of a problem whose relaxation is fractional.

    Columns whose reduced cost exceeds the gap between the relaxation and `start` cannot be in
    a better choice and are left out; what remains falls into components, and components where
    the relaxation is whole already are done.

    Returns
    -------
    chosen, bound
        Columns chosen, shape (H,), and an upper bound on any choice.
    """
    reduced = rows.T @ duals - scores
    relaxed = float(scores @ x)
    if start is None:
        useful = np.arange(len(x))
    else:
        gap = relaxed - float(scores[start].sum())
        useful = np.flatnonzero(
            (reduced <= gap + 1e-7 * max(1.0, abs(relaxed))) | start | (x > 1e-9)
        )
    chosen = np.zeros(len(x), dtype=bool)
    bound = 0.0
    deadline = time.monotonic() + max_seconds
    for slots, part in _components(rows[:, useful]):
        columns = useful[part]
        inside = x[columns]
        if ((inside < 1e-5) | (inside > 1 - 1e-5)).all():
            chosen[columns[inside > 0.5]] = True
            bound += float(scores[columns] @ inside)
            continue
        sub = sp.csr_matrix(rows[slots][:, columns])
        begin = start[columns] if start is not None else None
        left = max(0.1, deadline - time.monotonic())
        best = _integer(sub, scores[columns], begin, max_nodes, left)
        chosen[columns[best.x]] = True
        bound += min(best.bound, float(scores[columns] @ inside) + 1e-9)
    return chosen, bound


def _integer(
    rows: sp.csr_matrix, scores: Array, start: Mask | None, max_nodes: int, max_seconds: float
) -> Integral:
    if len(scores) <= _SMALL:
        return solve_integer(rows, scores, start, max_nodes, max_seconds)
    answer = solve_bounded(rows, scores, start, max_nodes, max_seconds)
    if answer is not None:
        return answer
    if start is None:
        raise SolverError(
            f"the solver had no answer after {max_seconds:.0f} s; allow more time or annotate "
            "some of the cells where many events are equally good"
        )
    return Integral(start, float(scores[start].sum()), np.inf)


def _components(rows: sp.csr_matrix) -> list[tuple[Index, Index]]:
    """Slots and columns of every connected component."""
    count, label = connected_components(rows @ rows.T, directed=False)
    by_column = rows.T.tocsr()
    column_label = label[by_column.indices[by_column.indptr[:-1]]]
    slot_order, column_order = (
        np.argsort(label, kind="stable"),
        np.argsort(column_label, kind="stable"),
    )
    slot_cut = np.searchsorted(label[slot_order], np.arange(count + 1))
    column_cut = np.searchsorted(column_label[column_order], np.arange(count + 1))
    return [
        (slot_order[slot_cut[k] : slot_cut[k + 1]], column_order[column_cut[k] : column_cut[k + 1]])
        for k in range(count)
    ]
