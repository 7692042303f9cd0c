"""Is an old optimum still one? Asked before anything is solved again."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
