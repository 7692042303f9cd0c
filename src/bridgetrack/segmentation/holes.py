"""Fill holes in cells; what lies between cells stays background."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.segmentation.filters import Sampling


def small_holes(mask: NDArray[np.bool_], diameter: float, sampling: Sampling) -> NDArray[np.bool_]:
    """Pixels of enclosed holes that are smaller than a cell.

    Parameters
    ----------
    mask
        Foreground, shape ([Z,] Y, X).
    diameter
        Of a typical cell, in pixels along x.
    sampling
        Pixel size per axis relative to x.
    """
    holes, n = ndi.label(ndi.binary_fill_holes(mask) & ~mask)
    if n == 0:
        return np.zeros(mask.shape, dtype=bool)
    sizes = np.bincount(holes.ravel()) * float(np.prod(sampling))
    small = sizes < 0.25 * diameter**mask.ndim
    small[0] = False
    return np.asarray(small[holes])


def fill_cells(labels: NDArray[np.int32], diameter: float, sampling: Sampling) -> NDArray[np.int32]:
    """Give small holes that lie within one cell to that cell.

    Parameters
    ----------
    labels
        Labels, shape ([Z,] Y, X).
    diameter, sampling
        As in `small_holes`.
    """
    holes, n = ndi.label(small_holes(labels > 0, diameter, sampling))
    if n == 0:
        return labels
    cross = ndi.generate_binary_structure(labels.ndim, 1)
    none = np.iinfo(labels.dtype).max
    numbers = np.arange(1, n + 1)
    highest = ndi.maximum(ndi.maximum_filter(labels, footprint=cross), holes, numbers)
    around = ndi.minimum_filter(np.where(labels > 0, labels, none), footprint=cross)
    lowest = ndi.minimum(around, holes, numbers)
    owner = np.concatenate([[0], np.where(highest == lowest, highest, 0)]).astype(np.int32)
    return np.where(labels > 0, labels, owner[holes])
