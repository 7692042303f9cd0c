"""A good whole choice near a fractional one, by branching around the fractions only."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError
from bridgetrack.inference.solver import solve_integer

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_REACH = 1.0
_LARGEST = 3_000


def repair(
    rows: sp.csr_matrix, scores: Array, x: Array, duals: Array, start: Mask | None, max_nodes: int
) -> Mask | None:
    """Improve a rounded choice.

    Slots of fractional columns, and those that columns of small reduced cost tie to them, are
    solved anew; everywhere else the relaxation is whole and stays. The better of the result and
    `start` is returned.

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
    max_nodes
        Limit of the branch and bound.
    """
    by_column = sp.csr_matrix(rows.T.tocsr())
    reduced = by_column @ duals - scores
    whole = x > 1 - 1e-5
    fractional = (x > 1e-5) & ~whole
    free = _touched(rows, fractional)
    best, value = start, -np.inf if start is None else float(scores[start].sum())
    for _ in range(3):
        near = (reduced <= _REACH) | fractional
        free = free | _touched(rows, near & (by_column @ free > 0))
        free = free | _touched(rows, whole & (by_column @ free > 0))
        inside = by_column @ free.astype(np.float64) == np.diff(by_column.indptr)
        columns, slots = np.flatnonzero(inside), np.flatnonzero(free)
        if len(columns) > _LARGEST:
            break
        try:
            part = sp.csr_matrix(rows[slots][:, columns])
            local = solve_integer(part, scores[columns], None, max_nodes, 10.0)
        except BridgetrackError:
            continue
        chosen = whole.copy()
        chosen[columns] = local.x
        if float(scores[chosen].sum()) > value:
            best, value = chosen, float(scores[chosen].sum())
        break
    return best


def _touched(rows: sp.csr_matrix, columns: Mask) -> Mask:
    """Slots that some of the columns cover, shape (S,)."""
    return np.asarray(rows @ columns.astype(np.float64) > 0)
