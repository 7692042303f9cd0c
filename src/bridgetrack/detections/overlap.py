"""Overlap of masks between two frames after every cell is shifted by its own prediction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def shifted_overlap(
    before: Index, after: Index, label_of: Index, shift: NDArray[np.float64]
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
    index = np.nonzero(before)
    owner = np.searchsorted(label_of, before[index])
    whole = np.rint(shift).astype(np.int64)
    moved = [c + whole[owner, k] for k, c in enumerate(index)]
    inside = np.ones(len(owner), dtype=bool)
    for coordinate, size in zip(moved, after.shape, strict=True):
        inside &= (coordinate >= 0) & (coordinate < size)
    hit = after[tuple(c[inside] for c in moved)]
    mine = owner[inside][hit > 0]
    theirs = hit[hit > 0].astype(np.int64)
    if not len(mine):
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty, empty
    width = int(theirs.max()) + 1
    key, pixels = np.unique(mine.astype(np.int64) * width + theirs, return_counts=True)
    return key // width, key % width, pixels.astype(np.int64)
