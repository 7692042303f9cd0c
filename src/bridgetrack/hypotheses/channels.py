"""Rows of cells in narrow channels, as in a mother machine, where none overtakes another.

Cells that grow push all those beyond them, so that a cell far from the closed end moves by more
than its length and is nearest to where another was. Which is which follows from their order, and
from sizes, which add up where a cell divides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections, cell_diameter

_LEAST = 3
"""Cells that a row has, on average over the frames that hold any."""
_TOUCHING = 1.1
"""Cells of a row lie at most so many of their lengths apart."""
_SPREAD, _UNEVEN = 0.12, 0.3
"""Standard deviations of the logarithm of growth, and of the daughters' ratio."""
_DIVIDES, _WORST, _LEAVES, _NEW = 0.7, 2.5, 0.4, 3.0
"""Costs of a division, at most of a size, of leaving at either end, and of all other losses."""
_SHIFT = 0.15
"""Cost of a shift by a cell's length: rows stay where they are if nothing speaks against it."""


@dataclass(frozen=True)
class Rows:
    """The cells of a movie, all of which lie in narrow rows."""

    detections: Detections
    row: Index  # in which row every cell lies, shape (n,)
    axis: int  # along which rows run

    @classmethod
    def of(cls, detections: Detections) -> Rows | None:
        """The rows of a movie; None unless all its cells lie in rows and nearly touch."""
        table = detections.table
        if detections.geometry.ndim != 2 or "major" not in table.columns or len(table) < _LEAST:
            return None
        position, diameter = detections.position, cell_diameter(detections)
        length = table["major"].to_numpy(dtype=np.float64)
        for axis in (0, 1):
            across = position[:, 1 - axis]
            order = np.argsort(across, kind="stable")
            cuts = np.flatnonzero(np.diff(across[order]) > 0.5 * diameter) + 1
            if any(np.ptp(part) > diameter for part in np.split(across[order], cuts)):
                continue
            row = np.zeros(len(order), dtype=np.int64)
            row[order[cuts]] = 1
            row[order] = np.cumsum(row[order])
            place = np.lexsort((position[:, axis], row, detections.frame))
            one, two = place[:-1], place[1:]
            same = (row[one] == row[two]) & (detections.frame[one] == detections.frame[two])
            one, two = one[same], two[same]
            if len(place) < _LEAST * (len(place) - len(one)):
                continue
            apart = position[two, axis] - position[one, axis]
            if np.median(2 * apart / (length[one] + length[two])) < _TOUCHING:
                return cls(detections, row, axis)
        return None

    def shifts(self, t: int, later: int) -> Array:
        """By how much the cells of a frame move to a later one, shape (n, ndim)."""
        here, there = self.detections.rows(t), self.detections.rows(later)
        shift = np.zeros((here.stop - here.start, 2))
        for row in np.unique(self.row[here]).tolist():
            (mine, before), (_, after) = (self._cells(rows, row) for rows in (here, there))
            shift[mine, self.axis] = row_shifts(before, after)
        return shift

    def _cells(self, rows: slice, row: int) -> tuple[Index, tuple[Array, Array]]:
        """Cells of a row in a frame in order, numbered in it, with their places and areas."""
        along = self.detections.position[rows, self.axis]
        area = self.detections.table["area"].to_numpy(dtype=np.float64)[rows]
        mine = np.flatnonzero(self.row[rows] == row)
        mine = mine[np.argsort(along[mine], kind="stable")]
        return mine, (along[mine], area[mine])


def row_shifts(before: tuple[Array, Array], after: tuple[Array, Array]) -> Array:
    """By how much the cells of a row move along it, shape (n,).

    Parameters
    ----------
    before, after
        Places along the row, ascending, and areas, in one frame and the next, shapes (n,) and (m,).
    """
    growth, shifts = 0.0, np.zeros(len(before[0]))
    for _ in range(2):
        pairs = _aligned(before, after, growth)
        if not pairs:
            break
        grown = [np.log(after[1][j:k].sum() / before[1][i]) for i, j, k in pairs]
        growth = float(np.median(grown))
        known = np.array([i for i, _, _ in pairs])
        moved = [
            np.average(after[0][j:k], weights=after[1][j:k]) - before[0][i] for i, j, k in pairs
        ]
        shifts = np.interp(np.arange(len(shifts)), known, moved)
    return shifts


def _aligned(
    before: tuple[Array, Array], after: tuple[Array, Array], growth: float
) -> list[tuple[int, int, int]]:
    """Cells i of the best alignment, in order, each with its next ones j to k - 1.

    Dynamic programming over the first cells of both rows: the last of them leaves, goes on or
    divides, or is new.
    """
    (place, area), (there, size) = before, after
    n, m = len(place), len(there)
    length = float(np.median(np.diff(place))) if n > 1 else np.inf
    best, came = np.full((n + 1, m + 1), np.inf), np.zeros((n + 1, m + 1), dtype=np.int64)
    best[0, 0] = 0.0

    def cost(i: int, j: int, k: int) -> float:
        """That cell i becomes the cells j to k - 1."""
        change = np.log(size[j:k].sum() / area[i]) - growth
        middle = np.average(there[j:k], weights=size[j:k])
        uneven = np.log(size[j] / size[k - 1])
        divides = 0.0 if k == j + 1 else _DIVIDES + min((uneven / _UNEVEN) ** 2 / 2, _WORST)
        known = min((change / _SPREAD) ** 2 / 2, _WORST) + divides
        return float(known + _SHIFT * abs(middle - place[i]) / length)

    for i, j in np.ndindex(n + 1, m + 1):
        options = [(best[i, j], int(came[i, j]))]
        if i:
            options.append((best[i - 1, j] + (_LEAVES if j in (0, m) else _NEW), 0))
            options += [(best[i - 1, j - k] + cost(i - 1, j - k, j), k) for k in (1, 2) if j >= k]
        if j:
            options.append((best[i, j - 1] + _NEW, -1))
        best[i, j], came[i, j] = min(options)
    pairs, i, j = [], n, m
    while i or j:
        k = int(came[i, j])
        i, j = (i, j - 1) if k < 0 else (i - 1, j - k)
        if k > 0:
            pairs.append((i, j, j + k))
    return pairs[::-1]
