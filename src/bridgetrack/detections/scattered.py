"""Labels that were given to cells in different places of a frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_FILLED = 0.5
_APART = 1.5


def loose(volume: Array, covariance: Array) -> Index:
    """Cells that fill less than half of the ellipse with their second moments.

    A solid ellipse fills it, two discs a diameter apart fill half of it.

    Parameters
    ----------
    volume
        Areas or volumes in scaled units, shape (n,).
    covariance
        Covariances of the pixels in scaled units, shape (n, ndim, ndim).

    Returns
    -------
    numpy.ndarray
        Their numbers.
    """
    ndim = covariance.shape[1]
    unit = 4.0 * np.pi if ndim == 2 else 4.0 / 3.0 * np.pi * 5.0**1.5
    ellipse = unit * np.sqrt(np.maximum(np.linalg.det(covariance), 0.0))
    return np.flatnonzero(volume < _FILLED * ellipse)


def in_places_apart(index: tuple[Index, ...], owner: Index, suspects: Index, scale: Array) -> Index:
    """Those of the suspects whose pieces lie more than 1.5 of their diameters apart.

    Parameters
    ----------
    index, owner
        Coordinates of the foreground pixels per axis, and the cell of each, shapes (p,).
    suspects
        Numbers of the cells to look at, ascending.
    scale
        Size of a pixel per axis.
    """
    pixels = np.flatnonzero(np.isin(owner, suspects))
    pixels = pixels[np.argsort(owner[pixels], kind="stable")]
    cuts = np.searchsorted(owner[pixels], suspects)[1:]
    coordinates = np.stack([axis[pixels] for axis in index], axis=1)
    cells = np.split(coordinates, cuts) if len(suspects) else []
    return suspects[[_apart(cell, scale) for cell in cells]]


def _apart(coordinates: Index, scale: Array) -> bool:
    """Whether the largest piece of a cell lies far from another of its pieces."""
    n, ndim = coordinates.shape
    pairs = cKDTree(coordinates).query_pairs(np.sqrt(ndim) + 1e-6, output_type="ndarray")
    links = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    count, piece = connected_components(links, directed=False)
    if count < 2:
        return False
    size = np.bincount(piece)
    centre = np.stack([np.bincount(piece, c) / size for c in coordinates.T], axis=1) * scale
    distance = np.linalg.norm(centre - centre[np.argmax(size)], axis=1)
    volume = n * float(np.prod(scale))
    diameter = 2 * np.sqrt(volume / np.pi) if ndim == 2 else np.cbrt(6 * volume / np.pi)
    return bool(distance.max() > _APART * diameter)
