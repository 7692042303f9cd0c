"""Annotations as sets of hypotheses, one slot each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Unused:
    """An annotation that constrains nothing.

    Parameters
    ----------
    id
        The annotation.
    reason
        Why, as a sentence without a full stop.
    """

    id: str
    reason: str


@dataclass(frozen=True)
class Constraints:
    """The sets S_a of the compatible outputs Y* (design of 001, eq. 6): one row per annotation.

    ``sum(y[h] for h in S_a) == 1`` holds for every row a; S_a lies within one slot, so the sum
    never exceeds 1 and the number of rows that it falls short of is the Hamming loss.

    Parameters
    ----------
    slot
        Slot of every row, shape (A,).
    indptr, indices
        ``indices[indptr[a]:indptr[a + 1]]`` are the hypotheses of S_a, rising; shapes (A + 1,)
        and (nnz,).
    left_out
        Hypotheses at the slot that are not in S_a, in the same form.
    left_out_indptr
        Its row pointers, shape (A + 1,).
    annotation
        Index of each row's annotation in ``Anchored.listed``, shape (A,), rising.
    ids
        Id of each row's annotation.
    unused
        Annotations without a row.
    """

    slot: Index
    indptr: Index
    indices: Index
    left_out_indptr: Index
    left_out: Index
    annotation: Index
    ids: tuple[str, ...]
    unused: tuple[Unused, ...] = ()

    def __len__(self) -> int:
        return len(self.slot)

    def allowed(self, a: int) -> Index:
        """Hypotheses of S_a."""
        return self.indices[self.indptr[a] : self.indptr[a + 1]]

    @property
    def row(self) -> Index:
        """Row of every entry of `indices`, shape (nnz,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def forced(self) -> Index:
        """Hypotheses that must hold because they are all of some S_a; rising, unique."""
        single = np.flatnonzero(np.diff(self.indptr) == 1)
        return np.unique(self.indices[self.indptr[single]])

    @property
    def forbidden(self) -> Index:
        """Hypotheses that cannot hold because some S_a leaves them out; rising, unique."""
        return np.unique(self.left_out)

    def take(self, rows: Index) -> Constraints:
        """The constraints of some rows, e.g. of one fold of a cross-validation."""
        rows = np.asarray(rows, dtype=np.int64)
        indptr, indices = _take_rows(self.indptr, self.indices, rows)
        left_indptr, left = _take_rows(self.left_out_indptr, self.left_out, rows)
        ids = tuple(self.ids[r] for r in rows.tolist())
        return Constraints(
            self.slot[rows], indptr, indices, left_indptr, left, self.annotation[rows], ids
        )


def _take_rows(indptr: Index, indices: Index, rows: Index) -> tuple[Index, Index]:
    start, length = indptr[rows], np.diff(indptr)[rows]
    new = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    entries = np.arange(new[-1]) - np.repeat(new[:-1] - start, length)
    return new, indices[entries]


def pins(constraints: Constraints) -> tuple[Index, Index]:
    """What annotations fix outright, for pinning before inference.

    Parameters
    ----------
    constraints
        From `bridgetrack.annotations.compile.compile_constraints`.

    Returns
    -------
    must_one
        Hypotheses that must hold, rising.
    forbid
        Hypotheses that must not hold: those at an annotated slot outside its S_a, rising.
        Setting them to 0 is the same as all constraints, since every slot is covered once.
    """
    return constraints.forced, constraints.forbidden
