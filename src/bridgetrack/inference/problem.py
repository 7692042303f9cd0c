"""The set-partitioning problem behind tracking, its exact preprocessing, and a choice in it.

``max_y s'y  subject to  C y = 1, y binary`` (001, eq. 16-18, where energies are minimised). Slots
may also be *optional*: covered once at most. Nothing depends on what slots and columns mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import SolverError
from bridgetrack.progress import in_parts

Narrow = NDArray[np.int32]


@dataclass(frozen=True)
class Problem:
    """Slots and the columns that cover them.

    Parameters
    ----------
    incidence
        Columns x slots, entries 0 or 1, shape (H, S); every column covers some slot.
    free
        Slots that may stay uncovered, shape (S,); None: every slot must be covered exactly once.
    """

    incidence: sp.csr_matrix
    free: Mask | None = None

    def __post_init__(self) -> None:
        if self.n_columns and np.diff(self.incidence.indptr).min() < 1:
            raise SolverError("every column must cover a slot")

    @property
    def n_columns(self) -> int:
        """Number of columns H."""
        return int(self.incidence.shape[0])

    @property
    def n_slots(self) -> int:
        """Number of slots S."""
        return int(self.incidence.shape[1])

    @cached_property
    def width(self) -> Narrow:
        """Slots covered by every column, shape (H,)."""
        return np.diff(self.incidence.indptr).astype(np.int32)

    @cached_property
    def widest(self) -> int:
        """Slots that a column covers at most."""
        return int(self.width.max(initial=0))

    def slots_of(self, columns: Index | Mask | slice) -> Narrow:
        """Slots of some columns (n,), ascending, padded with S, shape (n, 3) or wider."""
        start, width = self.incidence.indptr[:-1][columns], self.width[columns]
        out = np.full((len(start), max(3, self.widest)), self.n_slots, dtype=np.int32)
        for k in range(self.widest):
            has = np.flatnonzero(width > k)
            out[has, k] = self.incidence.indices[start[has] + k]
        out.sort(axis=1)
        return out

    def pieces(self) -> list[slice]:
        """All columns, some at a time, for work that takes much memory for each."""
        return list(in_parts(max(self.n_columns, 1)))

    def covered(self, columns: Mask) -> Array:
        """How many of the columns cover every slot, shape (S,)."""
        return np.asarray(self.incidence.T @ columns.astype(np.float64))

    @cached_property
    def by_slot(self) -> sp.csr_matrix:
        """Slots x columns, shape (S, H)."""
        return sp.csr_matrix(self.incidence.T.tocsr())

    @cached_property
    def required(self) -> Mask:
        """Slots that must be covered, shape (S,)."""
        return np.ones(self.n_slots, dtype=bool) if self.free is None else ~self.free

    def part(self, columns: Index, slots: NDArray[np.integer]) -> Problem:
        """The problem of some columns, cut to some slots."""
        incidence = sp.csr_matrix(self.incidence[columns][:, slots])
        return Problem(incidence, None if self.free is None else self.free[slots])

    def undominated(self, scores: Array, allowed: Mask) -> Mask:
        """Columns that some optimal solution may need, shape (H,).

        A column is dropped if other allowed columns cover exactly its slots and score at least as
        much; this keeps the optimum exact, and dual prices of the rest stay valid for all.
        """
        score = np.where(allowed, scores, -np.inf)
        keep = allowed & self._best_of_cover(score)
        # The best total score when the slots of a column are covered singly, or as a pair and a
        # single: a column that does not exceed it is never needed.
        single = np.full(self.n_slots + 1, -np.inf)
        one = self.width == 1
        np.maximum.at(single, self.slots_of(one)[:, 0], score[one])
        if self.free is not None:
            single[:-1][self.free] = np.maximum(single[:-1][self.free], 0.0)
        padded = single.copy()
        padded[-1] = 0.0
        worth = self._worth_of_pairs(score)
        for c in self.pieces():
            slots, wide = self.slots_of(c), self.width[c] == 3
            own = padded[slots]
            composed = own.sum(axis=1)
            for k, (i, j) in enumerate(((1, 2), (0, 2), (0, 1))):
                pair = worth(slots[wide, i], slots[wide, j]) + own[wide, k]
                composed[wide] = np.maximum(composed[wide], pair)
            keep[c] &= one[c] | (score[c] > composed)
        return np.asarray(keep)

    def _best_of_cover(self, score: Array) -> Mask:
        """The first of the best columns among those that cover the same slots."""
        keep = np.zeros(self.n_columns, dtype=bool)
        for width in range(1, self.widest + 1):  # one after another, which takes less memory
            columns = np.flatnonzero(self.width == width)
            slots = self.slots_of(columns)[:, :width]
            order = np.lexsort((-score[columns], *slots.T))
            slots = slots[order]
            first = np.ones(len(order), dtype=bool)
            first[1:] = (slots[1:] != slots[:-1]).any(axis=1)
            keep[columns[order[first]]] = True
        return keep

    def _worth_of_pairs(self, score: Array) -> Callable[[Narrow, Narrow], Array]:
        """The best score of the columns that cover two slots, i < j, alone; -inf without any."""
        columns = np.flatnonzero(self.width == 2)
        slots, base = self.slots_of(columns).astype(np.int64), self.n_slots + 1
        key, number = np.unique(slots[:, 0] * base + slots[:, 1], return_inverse=True)
        best = np.full(len(key), -np.inf)
        np.maximum.at(best, number, score[columns])

        def worth(i: Narrow, j: Narrow) -> Array:
            wanted = i.astype(np.int64) * base + j
            if not len(key):
                return np.full(len(i), -np.inf)
            place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            return np.where(key[place] == wanted, best[place], -np.inf)

        return worth


def components(incidence: sp.csr_matrix) -> tuple[int, Index, Index]:
    """Connected components of columns x slots.

    Returns
    -------
    count, slots, columns
        How many there are, and the component of every slot, shape (S,), and column, shape (H,).
    """
    if not incidence.shape[1]:
        return 0, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # Linking the first slot of a column to its others is enough.
    first = incidence.indices[incidence.indptr[:-1]]
    ends = np.repeat(first, np.diff(incidence.indptr)), incidence.indices
    others = ends[0] != ends[1]
    ends = ends[0][others], ends[1][others]
    shape = (incidence.shape[1], incidence.shape[1])
    ties = sp.csr_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), shape=shape)
    count, label = connected_components(ties, directed=False)
    return int(count), label.astype(np.int64), label[incidence.indices[incidence.indptr[:-1]]]


def members(label: Index, count: int) -> list[Index]:
    """Places of each of the labels 0..count-1, ascending."""
    order = np.argsort(label, kind="stable")
    cut = np.searchsorted(label[order], np.arange(count + 1))
    return [order[cut[k] : cut[k + 1]] for k in range(count)]


@dataclass(frozen=True)
class Solution:
    """Chosen columns with the evidence for their optimality."""

    chosen: Mask  # whether each column is chosen, shape (H,)
    value: float  # objective of the choice
    bound: float  # no feasible choice is better than this
    # prices of the slots with ``C' duals >= scores`` for every allowed column, shape (S,); those of
    # optional slots are not negative
    duals: Array
    # per slot, how far the relaxation of its component lies above the choice; 0 if that is whole
    slack: Array
    component: Index  # number of the slot's component among the undominated columns, shape (S,)

    @property
    def gap(self) -> float:
        """How much better an unknown choice could be; 0 for a proven optimum."""
        return max(0.0, self.bound - self.value)

    @property
    def integrality_gap(self) -> float:
        """How far the relaxation lies above the choice, in all components together."""
        first = np.unique(self.component, return_index=True)[1]
        return float(self.slack[first].sum())

    def check(self, problem: Problem, scores: Array, tolerance: float = 1e-6) -> None:
        """Verify the choice from scratch.

        Raises
        ------
        SolverError
            If a slot is not covered as often as it must be, or the objective or bound is wrong.
        """
        covered = problem.incidence[np.flatnonzero(self.chosen)].indices
        count = np.bincount(covered, minlength=problem.n_slots)
        wrong = np.flatnonzero((count > 1) | (problem.required & (count == 0)))
        if len(wrong):
            raise SolverError(
                f"slot {int(wrong[0])} is covered {int(count[wrong[0]])} times instead of once"
            )
        scale = tolerance * max(1.0, abs(self.value))
        value = float(scores[self.chosen].sum())
        if abs(value - self.value) > scale:
            raise SolverError(f"the objective is {value}, not {self.value} as reported")
        if self.bound < self.value - scale:
            raise SolverError(f"the bound {self.bound} is below the objective {self.value}")
