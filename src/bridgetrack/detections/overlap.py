"""Overlap of masks between two frames after every cell is shifted by its own prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.foreground import count_pairs, foreground

Index = NDArray[np.int64]


def shifted_overlap(
    before: NDArray[Any], after: NDArray[Any], label_of: Index, shift: NDArray[np.float64]
) -> tuple[Index, Index, Index]:
    """Count the pixels that shifted cells of one frame share with cells of the next.

    Parameters
    ----------
    before, after
        Label images of the same shape.
    label_of
        Labels of `before`, ascending, shape (n,).
    shift
        Shift of each of them in pixels, shape (n, ndim); rounded to whole pixels.

    Returns
    -------
    row, label, pixels
        Index into `label_of`, label in `after` and shared pixels, for every pair that shares
        any; shapes (p,).
    """
    cells = foreground(before)
    owner = np.searchsorted(label_of, cells.labels)[cells.owner]
    whole = np.rint(shift).astype(np.int64)
    inside = np.ones(len(owner), dtype=bool)
    place = np.zeros(len(owner), dtype=np.int64)
    for k, (coordinate, size) in enumerate(zip(cells.index, after.shape, strict=True)):
        moved = coordinate + whole[:, k][owner]
        inside &= (moved >= 0) & (moved < size)
        place = place * size + moved
    hit = np.ascontiguousarray(after).reshape(-1)[place[inside]]
    mine = owner[inside][hit > 0]
    return count_pairs(mine, hit[hit > 0].astype(np.int64), len(label_of))
