"""The best whole cover of a few slots by a few columns: all that are near it are looked at."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STEPS = 2_000


def small_cover(
    rows: sp.csr_matrix, costs: Array, prices: Array, free: Mask | None = None
) -> Mask | None:
    """The cheapest columns that cover every slot once; None where it is not found in a few steps.

    The slot with the fewest columns left is covered first, by the cheapest of them; a start is
    given up as soon as it costs as much as the best cover so far. With the reduced costs of a
    relaxation for costs, few starts get far, and a solver would take longer to begin.

    Parameters
    ----------
    rows
        Slots x columns, shape (S, H).
    costs
        Of the columns, not negative, shape (H,).
    prices
        What it costs to leave an optional slot uncovered, shape (S,).
    free
        Slots that need not be covered, shape (S,); none where None.
    """
    n_slots, n_columns = rows.shape
    by_column = sp.csc_matrix(rows)
    ends, slots = by_column.indptr.tolist(), by_column.indices.tolist()
    # Sets of slots are whole numbers, a bit for each.
    covers = [sum(1 << s for s in slots[a:b]) for a, b in zip(ends, ends[1:], strict=False)]
    cost = costs.tolist()
    if free is not None:
        for slot in np.flatnonzero(free).tolist():
            covers.append(1 << slot)
            cost.append(max(float(prices[slot]), 0.0))
    order = sorted(range(len(covers)), key=cost.__getitem__)
    at = [[c for c in order if covers[c] >> slot & 1] for slot in range(n_slots)]
    best, found = float("inf"), None
    stack: list[tuple[int, float, tuple[int, ...]]] = [((1 << n_slots) - 1, 0.0, ())]
    for _ in range(_STEPS):
        if not stack:
            break
        left, spent, taken = stack.pop()
        if spent >= best:
            continue
        if not left:
            best, found = spent, taken
            continue
        usable = [
            [c for c in at[slot] if not covers[c] & ~left and spent + cost[c] < best]
            for slot in range(n_slots)
            if left >> slot & 1
        ]
        # The cheapest comes last, because the last is looked at first.
        for c in reversed(min(usable, key=len)):
            stack.append((left & ~covers[c], spent + cost[c], (*taken, c)))
    if stack or found is None:
        return None
    out = np.zeros(n_columns, dtype=bool)
    out[[c for c in found if c < n_columns]] = True
    return out
