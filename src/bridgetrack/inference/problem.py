"""The set-partitioning problem behind tracking, its exact preprocessing, and a choice in it.

``max_y s'y  subject to  C y = 1, y binary`` (001, eq. 16-18, where energies are
minimised). Slots may also be *optional*: covered once at most. Nothing here knows what a slot or a
column means.
"""

from __future__ import annotations

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

    def _pair_groups(self) -> tuple[Narrow, Narrow]:
        """Group of every two-slot column (H,), and of the pair in a triple without slot k (H, 3).

        -1 for columns of another width, and where there is no such group.
        """
        base = np.int64(self.n_slots + 1)
        pairs = np.flatnonzero(self.width == 2)
        slots = self.slots_of(pairs)
        own = slots[:, 0] * base + slots[:, 1]
        known, number = np.unique(own, return_inverse=True)
        groups = np.full(self.n_columns, -1, dtype=np.int32)
        groups[pairs] = number
        inner = np.full((self.n_columns, 3), -1, dtype=np.int32)
        wide = np.flatnonzero(self.width == 3)
        slots = self.slots_of(wide)
        if len(known):
            for out, (a, b) in enumerate(((1, 2), (0, 2), (0, 1))):
                key = slots[:, a] * base + slots[:, b]
                place = np.minimum(np.searchsorted(known, key), len(known) - 1)
                inner[wide, out] = np.where(known[place] == key, place, -1)
        return groups, inner

    def undominated(self, scores: Array, allowed: Mask) -> Mask:
        """Columns that some optimal solution may need, shape (H,).

        A column is dropped where other allowed columns cover exactly its slots and score at
        least as much; this keeps the optimum exact, and dual prices of the rest stay valid for
        all.
        """
        score = np.where(allowed, scores, -np.inf)
        keep = allowed & self._best_of_cover(score)
        # What the slots of a column are worth when covered one by one, or a pair and a single:
        # a column that does not beat that is never needed.
        single = np.full(self.n_slots + 1, -np.inf)
        one = self.width == 1
        np.maximum.at(single, self.slots_of(one)[:, 0], score[one])
        if self.free is not None:
            single[:-1][self.free] = np.maximum(single[:-1][self.free], 0.0)
        padded = single.copy()
        padded[-1] = 0.0
        groups, inner = self._pair_groups()
        n_groups = int(groups.max()) + 1 if len(groups) else 0
        pair_best = np.full(n_groups + 1, -np.inf)
        two = groups >= 0
        np.maximum.at(pair_best, groups[two], score[two])
        for c in self.pieces():
            own = padded[self.slots_of(c)]
            composed = own.sum(axis=1)
            for k in range(3):
                composed = np.maximum(composed, pair_best[inner[c, k]] + own[:, k])
            keep[c] &= one[c] | (score[c] > composed)
        return np.asarray(keep)

    def _best_of_cover(self, score: Array) -> Mask:
        """The first of the best columns among those that cover the same slots."""
        keep = np.zeros(self.n_columns, dtype=bool)
        for width in range(1, self.widest + 1):  # one after another, which takes less memory
            columns = np.flatnonzero(self.width == width)
            if not len(columns):
                continue
            group = _group(self.slots_of(columns)[:, :width], self.n_slots + 1)
            mine = score[columns]
            best = np.full(int(group.max()) + 1, -np.inf)
            np.maximum.at(best, group, mine)
            top = np.flatnonzero(mine >= best[group])
            keep[columns[top[np.unique(group[top], return_index=True)[1]]]] = True
        return keep


def _group(slots: Narrow, base: int) -> Narrow:
    """Number rows of slots so that equal rows share a number."""
    key, largest = slots[:, 0].astype(np.int64), base
    for column in slots.T[1:]:
        if largest > np.iinfo(np.int64).max // base:  # else all columns are told apart at once
            _, key = np.unique(key, return_inverse=True)
            largest = len(key)
        key *= base
        key += column
        largest *= base
    return np.unique(key, return_inverse=True)[1].astype(np.int32)


def components(incidence: sp.csr_matrix) -> tuple[int, Index, Index]:
    """Connected components of columns x slots.

    Returns
    -------
    count, slots, columns
        How many there are, and the component of every slot, shape (S,), and column, shape (H,).
    """
    if not incidence.shape[1]:
        return 0, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # Tying the first slot of a column to its others is enough.
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
    # per slot, how far the relaxation of its component lies above the choice; 0 where that is whole
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
