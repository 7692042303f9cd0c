"""Kept linear programs over consecutive samples, reused while their content stays the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.inference.solver import Program, Relaxed
from bridgetrack.inference.still import still_optimal
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIZE = 4_000
"""Columns of a program at most, where samples are not larger."""


class KeptProgram:
    """A program and its last optimum: solving starts there, or is spared where it still holds.

    Parameters
    ----------
    rows
        Slots x columns.
    keep
        Columns that may be chosen, shape (columns,); all where None.
    """

    def __init__(self, rows: sp.csr_matrix, keep: Mask | None) -> None:
        self.kept = np.arange(rows.shape[1]) if keep is None else np.flatnonzero(keep)
        self._width = rows.shape[1]
        self._rows = sp.csr_matrix(rows[:, self.kept])
        self._by_column = sp.csr_matrix(self._rows.T.tocsr())
        self._program: Program | None = None
        self._last: Relaxed | None = None
        self._lock = Lock()

    def solve(self, scores: Array) -> Array:
        """Fractions of the columns at the optimum, shape (columns,)."""
        with self._lock:
            mine = scores[self.kept]
            last = self._last
            if last is None or not still_optimal(self._by_column, mine, last.x, last.duals):
                if self._program is None:
                    self._program = Program(self._rows)
                self._last = last = self._program.relax(mine)
            x = np.zeros(self._width)
            x[self.kept] = last.x
            return x


@dataclass(frozen=True)
class Chunk:
    """Some consecutive samples of a training set and their program."""

    columns: slice
    program: KeptProgram

    def solve(self, scores: Array) -> Array:
        """Fractions of the chunk's columns at the optimum for the scores of all columns."""
        return self.program.solve(scores[self.columns])


@dataclass(frozen=True)
class Programs:
    """Programs of all samples of a training set.

    Parameters
    ----------
    free
        Over all outputs.
    compatible
        Over those that agree with the annotations.
    known
        All of them by their content, for the next training set.
    """

    free: tuple[Chunk, ...]
    compatible: tuple[Chunk, ...]
    known: Mapping[Hashable, KeptProgram]

    @classmethod
    def of(cls, data: TrainingSet, earlier: Programs | None = None) -> Programs:
        """Cut samples into programs, and take over what an earlier training set had the same."""
        known: dict[Hashable, KeptProgram] = {}
        old = {} if earlier is None else earlier.known
        by_slot = _Sliced(data)
        free: list[Chunk] = []
        compatible: list[Chunk] = []
        for begin, end in _groups(by_slot.columns):
            columns = slice(int(by_slot.columns[begin]), int(by_slot.columns[end]))
            allowed = data.allowed[columns]
            name = data.names[begin:end] if data.names else (begin, end)
            for chunks, keep in ((free, None), (compatible, allowed)):
                key = (name, None if keep is None else keep.tobytes())
                program = old.get(key) if data.names else None
                known[key] = program or KeptProgram(by_slot.rows(begin, end), keep)
                chunks.append(Chunk(columns, known[key]))
        return cls(tuple(free), tuple(compatible), known)


class _Sliced:
    """Slots x columns of some samples of a training set, built when first needed."""

    def __init__(self, data: TrainingSet) -> None:
        numbers = np.arange(len(data.samples) + 1)
        self.columns = np.searchsorted(data.column_sample, numbers)
        self._slots = np.searchsorted(data.slot_sample, numbers)
        self._incidence = data.incidence

    def rows(self, begin: int, end: int) -> sp.csr_matrix:
        """Slots x columns of the samples from one to before another."""
        part = self._incidence[self.columns[begin] : self.columns[end]]
        return sp.csr_matrix(part[:, self._slots[begin] : self._slots[end]].T.tocsr())


def _groups(cut: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Consecutive samples with at most `SIZE` columns together, as (first, after the last)."""
    out, begin, n = [], 0, len(cut) - 1
    for end in range(1, n + 1):
        if end == n or cut[end + 1] - cut[begin] > SIZE:
            out.append((begin, end))
            begin = end
    return out
