"""The best choice that breaks at least one of some promises (the space Y°).

If the best choice breaks one already, it is the answer. Otherwise exactly one promise is broken,
where that costs least; promises are tried in the order of a lower bound on that cost, until no
untried one can be cheaper (design after 001, section 3).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.margins import best_without, margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def cheapest_flip(problem: Problem, scores: Array, sets: sp.csr_matrix) -> Mask | None:
    """Maximise the score over the choices that pick no column of at least one set.

    Parameters
    ----------
    problem
        Slots and columns.
    scores
        Shape (H,).
    sets
        Promises x columns, 1 where a column is in the set; every set lies within one slot,
        shape (A, H).

    Returns
    -------
    numpy.ndarray or None
        Chosen columns, shape (H,); None where every choice keeps all promises.
    """
    best = solve(problem, scores)
    kept = np.asarray(sets @ best.chosen.astype(np.float64)).ravel()
    if (kept < 0.5).any():
        return best.chosen
    bounds = margin_bounds(problem, scores, best)
    held = [int(c) for c in _held(sets, best.chosen)]
    found: Mask | None = None
    cheapest = np.inf
    for a in np.argsort(bounds[held], kind="stable"):
        if bounds[held[a]] >= cheapest:
            break
        members = sets.indices[sets.indptr[a] : sets.indptr[a + 1]]
        try:
            cost, added, dropped = best_without(problem, scores, best, held[a], members)
        except InfeasibleError:
            continue
        if cost < cheapest:
            cheapest = cost
            found = best.chosen.copy()
            found[dropped] = False
            found[added] = True
    return found


def _held(sets: sp.csr_matrix, chosen: Mask) -> NDArray[np.int64]:
    """The chosen column of every set, shape (A,)."""
    picked = sets.multiply(chosen.astype(np.float64)).tocsr()
    picked.eliminate_zeros()
    return picked.indices.astype(np.int64)
