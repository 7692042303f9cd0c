"""The four uncertainties of Table 1.2 (000), for all patches of a pool at once.

==============  ============================================================
random          uniform between 0 and 1
scoring         ``exp(-max_y w'Phi(x, y))``
best_worst      ``exp(-(max_y w'Phi(x, y) - min_y w'Phi(x, y)))``
best_second     ``exp(-(max_y w'Phi(x, y) - max_{y in Y°} w'Phi(x, y)))``
==============  ============================================================

Y° holds every output but the best one, so that the second best differs from the best in at least
one event. It is found exactly, see `Exchanges`; patches whose relaxation is fractional are solved
event by event (`inference.margins.exact_margin`).

With optimal prices every column has a reduced cost of at least 0, chosen ones have 0, and an output
is worse than the best one by the sum of the reduced costs of its columns. So the second best is the
cheapest exchange: drop one chosen column, cover its slots by others, drop what these collide with,
and so on until every slot is covered. Exchanges are searched best first, with the cheapest share
that must still be paid for every open slot as the bound, so the first complete one is the cheapest
(design, section 9).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.inference.margins import exact_margin, reduced_costs
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import solve
from bridgetrack.training.training_set import TrainingSet

_State = tuple[float, int, int, float, frozenset[int], frozenset[int]]


class Exchanges:
    """Cheapest exchanges around the best output, which is optimal with tight prices (no slack)."""

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


_TIGHT = 1e-7
PatchMeasure = Literal["random", "scoring", "best_worst", "best_second"]
MEASURES: tuple[PatchMeasure, ...] = get_args(PatchMeasure)


@dataclass(frozen=True)
class Patches:
    """Patches as parts of one problem that share no slot."""

    problem: Problem  # all of them
    phi: sp.csr_matrix  # features of the columns, shape (H, d)
    # column, slot: patch of every column and slot, both rising, shapes (H,) and (S,)
    column: Index
    slot: Index

    @classmethod
    def of(cls, data: TrainingSet, wanted: Index) -> Patches:
        """Some samples of a training set, numbered in the given (rising) order."""
        columns = np.flatnonzero(np.isin(data.column_sample, wanted))
        slots = np.flatnonzero(np.isin(data.slot_sample, wanted))
        part = sp.csr_matrix(data.incidence[columns][:, slots])
        return cls(
            Problem(part),
            sp.csr_matrix(data.phi[columns]),
            np.searchsorted(wanted, data.column_sample[columns]),
            np.searchsorted(wanted, data.slot_sample[slots]),
        )

    def __len__(self) -> int:
        return int(self.slot.max()) + 1 if len(self.slot) else 0


def uncertainties(
    patches: Patches, w: Array, measure: PatchMeasure, rng: np.random.Generator
) -> Array:
    """Uncertainty q of every patch, shape (n,)."""
    if measure not in MEASURES:
        raise InputError(f"there is no uncertainty {measure!r}; choose one of {MEASURES}")
    n = len(patches)
    if measure == "random" or not n:
        return rng.random(n)
    scores = np.asarray(patches.phi @ w)
    best = solve(patches.problem, scores)
    highest = _by_patch(patches, best, scores)
    if measure == "scoring":
        return _confident(highest)
    if measure == "best_worst":
        worst = solve(patches.problem, -scores)
        return _confident(highest - _by_patch(patches, worst, scores))
    return _confident(second_best_gaps(patches, scores, best))


def _confident(confidence: Array) -> Array:
    """exp(-confidence), bounded so that sums stay finite."""
    return np.asarray(np.exp(-np.clip(confidence, -700.0, None)))


def _by_patch(patches: Patches, solution: Solution, scores: Array) -> Array:
    chosen = np.flatnonzero(solution.chosen)
    total = np.bincount(patches.column[chosen], scores[chosen], minlength=len(patches))
    return np.asarray(total, dtype=np.float64)


def second_best_gaps(patches: Patches, scores: Array, best: Solution) -> Array:
    """Best minus second best score of every patch, exactly; infinite without a second, (n,)."""
    column_cut = np.searchsorted(patches.column, np.arange(len(patches) + 1))
    loose = np.zeros(len(patches), dtype=bool)
    loose[patches.slot[best.slack > _TIGHT]] = True
    exchanges = Exchanges(patches.problem, scores, best)
    out = np.full(len(patches), np.inf)
    for k in range(len(patches)):
        columns = np.arange(column_cut[k], column_cut[k + 1])
        if loose[k]:
            out[k] = _by_solving(patches, scores, k, columns)
        else:
            out[k] = exchanges.cheapest(columns[best.chosen[columns]].tolist())
    return out


def _by_solving(patches: Patches, scores: Array, k: int, columns: Index) -> float:
    """The same where the relaxation is fractional: with the solver, event by event."""
    slots = np.flatnonzero(patches.slot == k)
    part = Problem(sp.csr_matrix(patches.problem.incidence[columns][:, slots]))
    best = solve(part, scores[columns])
    given = part, scores[columns], best
    return min(exact_margin(*given, column) for column in np.flatnonzero(best.chosen).tolist())
