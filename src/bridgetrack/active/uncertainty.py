"""The four uncertainties of Table 1.2 (000), for all patches of a pool at once.

==============  ============================================================
random          uniform between 0 and 1
scoring         ``exp(-max_y w'Phi(x, y))``
best_worst      ``exp(-(max_y w'Phi(x, y) - min_y w'Phi(x, y)))``
best_second     ``exp(-(max_y w'Phi(x, y) - max_{y in Y°} w'Phi(x, y)))``
==============  ============================================================

Y° holds every output but the best one, so that the second best differs from the best in at least
one event. It is found exactly, see `second_best`; patches whose relaxation is fractional are solved
event by event (`inference.flip`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.active.second_best import Exchanges
from bridgetrack.errors import InputError
from bridgetrack.inference.flip import cheapest_flip
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solution import Solution
from bridgetrack.inference.solve import solve
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_TIGHT = 1e-7
PatchMeasure = Literal["random", "scoring", "best_worst", "best_second"]
MEASURES: tuple[PatchMeasure, ...] = get_args(PatchMeasure)


@dataclass(frozen=True)
class Patches:
    """Patches as parts of one problem that share no slot.

    Parameters
    ----------
    problem
        All of them.
    phi
        Features of the columns, shape (H, d).
    column, slot
        Patch of every column and slot, both rising, shapes (H,) and (S,).
    """

    problem: Problem
    phi: sp.csr_matrix
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
    """Uncertainty q of every patch, shape (n,).

    Raises
    ------
    InputError
        Where there is no such measure.
    """
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
    single = sp.csr_matrix(sp.identity(len(columns), format="csr")[np.flatnonzero(best.chosen)])
    second = cheapest_flip(part, scores[columns], single)
    if second is None:
        return float("inf")
    return max(best.value - float(scores[columns][second].sum()), 0.0)
