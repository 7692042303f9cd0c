"""Linear programs over the samples of a training set, kept as long as their content is the same.

Of these the objective alone changes between calls, so every call starts from the last optimum.
Where that optimum depends on the calls before, so may the last digits of the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.inference.relax import still_optimal
from bridgetrack.inference.solver import Basis, Program, Relaxed
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

SIZE = 4_000
"""Columns of a program at most, where samples are not larger."""

OPEN = 40
"""Programs whose solver stays open; one of `SIZE` columns takes some 3.5 MB, larger ones are not
kept open."""


class KeptProgram:
    """A program and its last optimum: solving starts there, or is spared where it still holds.

    Parameters
    ----------
    by_column
        Columns x slots.
    keep
        Columns that may be chosen; all where None.
    """

    def __init__(self, by_column: sp.csr_matrix, keep: Mask | None) -> None:
        self.kept = np.arange(by_column.shape[0]) if keep is None else np.flatnonzero(keep)
        self.width = by_column.shape[0]
        self._by_column = sp.csr_matrix(by_column[self.kept])
        # An open solver takes ten times the memory of what is kept otherwise; without it solving
        # takes a quarter longer.
        self.stays_open = False
        self._program: Program | None = None
        self._last: Relaxed | None = None
        self._basis: Basis | None = None
        self._lock = Lock()

    def solve(self, scores: Array) -> Array:
        """Fractions of the columns at the optimum, shape (columns,)."""
        with self._lock:
            mine = scores[self.kept]
            last = self._last
            if last is None or not still_optimal(self._by_column, mine, last.x, last.duals):
                last = self._last = self._relax(mine)
            x = np.zeros(self.width)
            x[self.kept] = last.x
            return x

    def _relax(self, scores: Array) -> Relaxed:
        """Solve, starting from the last optimum."""
        if self._program is not None:
            return self._program.relax(scores)
        program = Program(sp.csr_matrix(self._by_column.T.tocsr()))
        if self._basis is not None:
            program.start_from(self._basis)
        found = program.relax(scores)
        if self.stays_open:
            self._program, self._basis = program, None
        else:
            self._basis = program.basis()
        return found


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
    """Programs of all samples of a training set."""

    free: tuple[Chunk, ...]  # over all outputs
    compatible: tuple[Chunk, ...]  # over those that agree with the annotations
    known: Mapping[Hashable, KeptProgram]  # all of them by their content, for the next training set

    @classmethod
    def of(cls, data: TrainingSet, earlier: Programs | None = None) -> Programs:
        """Cut samples into programs, and take over what an earlier training set had the same."""
        old = {} if earlier is None else earlier.known
        known: dict[Hashable, KeptProgram] = {}
        chunks: tuple[list[Chunk], list[Chunk]] = ([], [])
        cut, slots = data.cut, data.slot_cut
        for begin, end in _groups(cut):
            columns = slice(int(cut[begin]), int(cut[end]))
            allowed = data.allowed[columns]
            name = data.names[begin:end] if data.names else (begin, end)
            for listed, keep in zip(chunks, (None, allowed), strict=True):
                key = (name, None if keep is None else keep.tobytes())
                program = old.get(key) if data.names else None
                if program is None:
                    part = data.incidence[columns][:, slots[begin] : slots[end]]
                    program = KeptProgram(sp.csr_matrix(part), keep)
                known[key] = program
                listed.append(Chunk(columns, program))
        # those that were taken over with an open solver first
        room = OPEN - sum(program.stays_open for program in known.values())
        closed = [p for p in known.values() if not p.stays_open and p.width <= SIZE]
        for program in closed[: max(room, 0)]:
            program.stays_open = True
        return cls(tuple(chunks[0]), tuple(chunks[1]), known)


def _groups(cut: Index) -> list[tuple[int, int]]:
    """Consecutive samples with at most `SIZE` columns together, as (first, after the last)."""
    out, begin, n = [], 0, len(cut) - 1
    for end in range(1, n + 1):
        if end == n or cut[end + 1] - cut[begin] > SIZE:
            out.append((begin, end))
            begin = end
    return out
