"""What a cell is part of, and what it is made of, in the frames before and after.

Where a mask draws one cell as two, these are one again some frames later; where it draws two cells
as one, these were two some frames before. Daughters stay two, and a mother was one: so what lies
beyond an event tells a wrong mask from a division. A cell *lies in* one of a neighbouring frame
that covers more than half of it, after the shift that is expected; there is one at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]
Index = NDArray[np.int64]

STEPS = 3
"""Frames that are looked at beyond an event: as many as windows of a movie overlap by."""

_MOSTLY = 0.5


@dataclass(frozen=True)
class Held:
    """In which cell of a neighbouring frame every cell lies.

    Parameters
    ----------
    cell
        Its row, -1 where there is none, shape (n,).
    share
        How much of the cell lies in it, 0 where there is none, shape (n,).
    """

    cell: Index
    share: Array

    @classmethod
    def of(cls, inner: Index, outer: Index, share: Array, n: int) -> Held:
        """From the share of one cell that lies in another, for some pairs of n cells."""
        mostly = share > _MOSTLY
        cell, most = np.full(n, -1, dtype=np.int64), np.zeros(n)
        cell[inner[mostly]], most[inner[mostly]] = outer[mostly], share[mostly]
        return cls(cell, np.minimum(most, 1.0))

    @cached_property
    def second(self) -> Array:
        """Of the cells that lie in one, how much of the second does; 0 with fewer, shape (n,)."""
        out = np.zeros(len(self.cell))
        order = np.lexsort((-self.share, self.cell))
        outer = self.cell[order]
        again = np.r_[False, outer[1:] == outer[:-1]] & (outer >= 0)
        second = again & ~np.r_[False, again[:-1]]
        out[outer[second]] = self.share[order][second]
        return out


@dataclass(frozen=True)
class Chains:
    """What lies before and after every cell of a movie with masks.

    Parameters
    ----------
    before, after
        In which cell of the frame before, and after, every cell lies.
    """

    before: Held
    after: Held

    @classmethod
    def none(cls, n: int) -> Chains:
        """Of n cells of which nothing is said."""
        nothing = np.zeros(0, dtype=np.int64)
        held = Held.of(nothing, nothing, np.zeros(0), n)
        return cls(held, held)

    @classmethod
    def of(cls, evidence: Evidence) -> Chains:
        """From the overlaps of neighbouring frames."""
        n = len(evidence.detections)
        area = evidence.detections.table["area"].to_numpy(dtype=np.float64)
        i, j = np.divmod(evidence.overlap_key, max(n, 1))
        pixels = evidence.overlap_pixels
        return cls(Held.of(j, i, pixels / area[j], n), Held.of(i, j, pixels / area[i], n))

    def one_again(self, a: Index, b: Index, *, after: bool) -> Array:
        """How much of each of two cells a later (earlier) one covers: of that which it covers less.

        Of two cells of a frame, shape (h,); 0 where none does within `STEPS` frames.
        """
        held, out = self.after if after else self.before, np.zeros(len(a))
        for _ in range(STEPS):
            one, two = held.cell[a], held.cell[b]
            there = (one >= 0) & (two >= 0) & (a >= 0) & (b >= 0)
            share = np.minimum(held.share[a], held.share[b])
            out = np.where(there & (one == two), np.maximum(out, share), out)
            on = there & (one != two)
            a, b = np.where(on, one, -1), np.where(on, two, -1)
        return out

    def two_again(self, whole: Index, *, after: bool) -> Array:
        """How much of each of two later (earlier) cells one covers: of that which it covers less.

        Of any cells, shape (h,); 0 where it covers no two within `STEPS` frames.
        """
        held, inner = (self.after, self.before) if after else (self.before, self.after)
        second, out = inner.second, np.zeros(len(whole))
        for _ in range(STEPS):
            out = np.where(whole >= 0, np.maximum(out, second[whole]), out)
            whole = np.where(whole >= 0, held.cell[whole], -1)
        return out
