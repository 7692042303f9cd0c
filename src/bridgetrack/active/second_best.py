"""The second best output of many small independent problems, exactly.

With optimal prices every column has a reduced cost of at least 0, chosen ones have 0, and an output
is worse than the best one by the sum of the reduced costs of its columns. So the second best is the
cheapest exchange: drop one chosen column, cover its slots by others, drop what these collide with,
and so on until every slot is covered. Exchanges are searched best first, with the cheapest share
that must still be paid for every open slot as the bound, so the first complete one is the cheapest
(design, section 9).
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.inference.margins import reduced_costs
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_State = tuple[float, int, int, float, frozenset[int], frozenset[int]]


class Exchanges:
    """Cheapest exchanges around the best output.

    Parameters
    ----------
    problem, scores, best
        The problem and its best output, optimal with tight prices (no slack).
    """

    def __init__(self, problem: Problem, scores: Array, best: Solution) -> None:
        self._slots = _rows_of(problem.incidence)
        cost = np.maximum(reduced_costs(problem, scores, best), 0.0)
        self._cost = cost.tolist()
        by_slot = problem.by_slot
        rows = np.repeat(np.arange(problem.n_slots), np.diff(by_slot.indptr))
        columns = by_slot.indices
        other = ~best.chosen[columns]
        rows, columns = rows[other], columns[other]
        order = np.lexsort((cost[columns], rows))
        cut = np.searchsorted(rows[order], np.arange(problem.n_slots + 1))
        listed = columns[order].tolist()
        self._offers = [listed[a:b] for a, b in zip(cut[:-1], cut[1:], strict=True)]
        share = np.full(problem.n_slots, np.inf)
        np.minimum.at(share, rows, cost[columns] / problem.width[columns])
        self._share = share.tolist()
        chosen = np.flatnonzero(best.chosen)
        part = sp.csr_matrix(problem.incidence[chosen])
        owner = np.full(problem.n_slots, -1, dtype=np.int64)
        owner[part.indices] = np.repeat(chosen, np.diff(part.indptr))
        self._owner = owner.tolist()

    def cheapest(self, chosen: list[int]) -> float:
        """Cost of the cheapest exchange that drops one of some chosen columns; infinite if none."""
        heap: list[_State] = []
        ticket = count()
        nothing: frozenset[int] = frozenset()
        for column in chosen:
            slots = frozenset(self._slots[column])
            self._push(heap, ticket, 0.0, slots, nothing)
        while heap:
            _, _, _, cost, still_open, taken = heapq.heappop(heap)
            if not still_open:
                return cost
            slot = max(still_open, key=self._share.__getitem__)
            for column in self._offers[slot]:
                covered = self._slots[column]
                if not taken.isdisjoint(covered):
                    continue
                dropped = {s for c in covered for s in self._slots[self._owner[c]]}
                now_taken = taken.union(covered)
                self._push(
                    heap,
                    ticket,
                    cost + self._cost[column],
                    still_open.union(dropped) - now_taken,
                    now_taken,
                )
        return float("inf")

    def _push(
        self,
        heap: list[_State],
        ticket: count[int],
        cost: float,
        still_open: frozenset[int],
        taken: frozenset[int],
    ) -> None:
        bound = cost + sum(self._share[s] for s in still_open)
        if bound < float("inf"):
            heapq.heappush(heap, (bound, len(still_open), next(ticket), cost, still_open, taken))


def _rows_of(matrix: sp.csr_matrix) -> list[list[int]]:
    indices, cut = matrix.indices.tolist(), matrix.indptr.tolist()
    return [indices[a:b] for a, b in zip(cut[:-1], cut[1:], strict=True)]
