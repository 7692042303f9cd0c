"""How far outlines go: what people draw in general, and what corrected outlines teach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from bridgetrack.regions.describe import FEATURES
from bridgetrack.regions.regions import Array, Index, Mask, Regions, overlaps

FEW_OUTLINES = 5
"""Fewer corrected outlines are no habit."""
_SHARE = 0.03
"""Share of the cells in areas found right that must have been corrected: 3 to 10 % on PSC, whose
cells are drawn too small, 1 to 2 % on HeLa, where only wrong cells are mended."""
_AGREE = 0.8
"""Share of them that must be larger, or smaller, than what was shown."""
_ALIKE = 1.1
"""A ratio of areas nearer to 1 is none."""
_WITHIN = 0.9  # of the smaller of two outlines, so that it lies within the larger
_TAKEN = 0.25  # of the smaller of two, from which an outline takes a part of a cell
_SAME_CELL = 0.45  # overlap from which two outlines may be of one cell
_ALIKE_CELL = 0.6  # overlap from which they surely are
USUAL_LEVEL = 0.3
"""Share of a cell's brightness down to which people draw it: 0.37 on HeLa, 0.22 on PSC (median)."""
_PER_LEVEL = 10.0
_MOST_DOUBT = 6.0


def doubt_of_tight(features: Array) -> Array:
    """What too tight an outline takes off the log-odds of candidates, shape (R,).

    Only where a candidate much like it reaches farther down: cells that touch cannot.

    Parameters
    ----------
    features
        As `describe` gives them, shape (R, F).
    """
    level, least = (features[:, list(FEATURES).index(name)] for name in ("level", "least level"))
    return np.clip(_PER_LEVEL * (level - np.maximum(USUAL_LEVEL, least)), 0.0, _MOST_DOUBT)


def usual_ratio(ratios: Sequence[float], checked: int = 0, few: int = FEW_OUTLINES) -> float:
    """How many times as large corrected outlines are as those shown before.

    Parameters
    ----------
    ratios
        Area of each corrected outline, divided by that of the one in whose place it came.
    checked
        Cells in areas that were found right; a habit shows in one of thirty of them at least.
    few
        How many there must be.

    Returns
    -------
    float
        The quartile of them that is nearer to 1, since people correct the worst; 1.0 where they
        are too few, do not agree, or are much like those before.
    """
    if len(ratios) < max(few, _SHARE * checked):
        return 1.0
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    side = 1 if np.median(logs) > 0 else -1
    usual = float(np.quantile(side * logs, 0.25))
    agree = float((side * logs > 0).mean())
    return float(np.exp(side * usual)) if agree >= _AGREE and usual > np.log(_ALIKE) else 1.0


def redrawn(cells: sp.csr_matrix, candidates: sp.csr_matrix, ratio: float) -> Index:
    """The candidate that is each cell with an outline so much larger or smaller.

    Parameters
    ----------
    cells, candidates
        Sets of pixels as rows, shapes (K, P) and (R, P).
    ratio
        Area of the outline wanted, divided by the cell's.

    Returns
    -------
    numpy.ndarray
        Rows of candidates that contain the cell (or lie within it), and no other of the cells,
        and whose area is nearest to the one wanted; -1 where there is none, shape (K,).
    """
    size, area = _sizes(cells), _sizes(candidates)
    shared = sp.coo_matrix(cells @ candidates.T)
    cell, row, both = shared.row, shared.col, shared.data.astype(np.float64)
    within = both > _WITHIN * (size[cell] if ratio > 1 else area[row])
    # Larger outlines of two cells that lie close, e.g. after a division, may be of both.
    takes = both > _TAKEN * np.minimum(size[cell], area[row])
    alone = np.bincount(row[takes], minlength=len(area)) < 2
    fits = within & alone[row] & (both > _SAME_CELL * (size[cell] + area[row] - both))
    cell, row = cell[fits], row[fits]
    off = np.abs(np.log(area[row] / (ratio * size[cell])))
    found = np.full(cells.shape[0], -1, dtype=np.int64)
    worst_first = np.lexsort((-row, -off))  # what is written last stays
    found[cell[worst_first]] = row[worst_first]
    return found


def redrawn_rows(regions: Regions, rows: Mask, ratio: float) -> Mask:
    """The same cells of one frame among its candidates, with outlines so much larger or smaller.

    Parameters
    ----------
    regions
        Candidates of the frame.
    rows
        Which of them are cells, shape (R,).
    ratio
        As in `redrawn`; a cell that has no such candidate stays as it is.
    """
    if ratio == 1.0 or not rows.any():
        return rows
    member = regions.membership(int(regions.frame[0]))
    now = np.flatnonzero(rows)
    found = redrawn(member[now], member, ratio)
    other = np.zeros_like(rows)
    other[np.where(found >= 0, found, now)] = True
    return other


def much_alike(regions: Regions, rows: Mask) -> Mask:
    """Some of the candidates of a frame, and all that are much like one of them, shape (R,)."""
    shared, area = overlaps(regions).tocoo(), regions.area
    alike = shared.data > _ALIKE_CELL * (area[shared.row] + area[shared.col] - shared.data)
    found = rows.copy()
    found[shared.row[alike & rows[shared.col]]] = True
    return found


def _sizes(sets: sp.csr_matrix) -> Array:
    return np.asarray(sets.sum(axis=1), dtype=np.float64).ravel()
