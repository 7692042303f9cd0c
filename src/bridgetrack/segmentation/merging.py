"""Undo cuts of the watershed that follow no real valley."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bridgetrack.segmentation.filters import Image


def merge_shallow(labels: NDArray[np.int32], height: Image, depth: float) -> NDArray[np.int32]:
    """Join neighbours whose common saddle is less than `depth` below the lower of their peaks.

    Elongated cells have several peaks along their ridge; these are joined again.

    Parameters
    ----------
    labels
        Result of a watershed on ``-height``.
    height
        The landscape, same shape.
    depth
        Least depth of a valley, in the unit of `height`.
    """
    n = int(labels.max(initial=0))
    if n < 2 or depth == 0:
        return labels
    first, second, saddle = _saddles(labels, height)
    peak = np.full(n + 1, -np.inf)
    inside = labels > 0
    np.maximum.at(peak, labels[inside], height[inside])
    lower = np.minimum(peak[first], peak[second])
    joined = lower - saddle < depth
    edges = (np.ones(int(joined.sum())), (first[joined], second[joined]))
    graph = sparse.coo_array(edges, shape=(n + 1, n + 1))
    component = connected_components(graph, directed=False)[1].astype(np.int32)
    component = np.where(np.arange(n + 1) == 0, 0, component + 1).astype(np.int32)
    return component[labels]


def _saddles(
    labels: NDArray[np.int32], height: Image
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of labels that touch, and the highest point at which they do."""
    n = np.int64(labels.max()) + 1
    keys, heights = [], []
    for axis in range(labels.ndim):
        near = tuple(slice(None, -1) if a == axis else slice(None) for a in range(labels.ndim))
        far = tuple(slice(1, None) if a == axis else slice(None) for a in range(labels.ndim))
        a, b = labels[near], labels[far]
        touch = (a != b) & (a > 0) & (b > 0)
        low, high = np.minimum(a[touch], b[touch]), np.maximum(a[touch], b[touch])
        keys.append(low * n + high)
        heights.append(np.minimum(height[near][touch], height[far][touch]))
    pairs, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    saddle = np.full(pairs.size, -np.inf)
    np.maximum.at(saddle, inverse, np.concatenate(heights))
    return pairs // n, pairs % n, saddle
