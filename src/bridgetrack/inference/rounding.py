"""A feasible choice from a fractional one."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def greedy_choice(rows: sp.csr_matrix, scores: Array, x: Array, duals: Array) -> Mask | None:
    """Round a fractional cover.

    Columns are taken in the order of their fraction, then of their reduced cost, wherever all
    their slots are still free.

    Parameters
    ----------
    rows
        Slots x columns, shape (S, H).
    scores, x
        Scores and fractional values of the columns, shapes (H,).
    duals
        Prices of the slots, shape (S,).

    Returns
    -------
    numpy.ndarray or None
        Chosen columns, shape (H,); None where the order led into a dead end.
    """
    by_column = rows.T.tocsr()
    reduced = by_column @ duals - scores
    order = np.lexsort((reduced, -np.round(x, 6)))
    free = np.ones(rows.shape[0], dtype=bool)
    chosen = np.zeros(len(x), dtype=bool)
    for column in order:
        slots = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        if free[slots].all():
            chosen[column] = True
            free[slots] = False
    return None if free.any() else chosen
