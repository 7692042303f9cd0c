"""From a signal to labelled cells: threshold, seeds, watershed and clean-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from skimage.filters import threshold_otsu
from skimage.measure import label
from skimage.segmentation import clear_border, relabel_sequential, watershed

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Image, Sampling, Signal, gaussian

Labels = NDArray[np.int32]

_EDGE = 0.3
"""A cell is cut back to pixels above this share of its own bright level."""
SEPARATION = 0.25
"""Least distance between the seeds of two cells, in diameters."""
_BRIGHT_SHARE = 0.85


def foreground_mask(
    signal: Signal, settings: SegmentationSettings, diameter: float, sampling: Sampling
) -> Mask:
    """Pixels of cells, shape of the frame."""
    mask = opened((signal.values > least_signal(signal, settings)) & ~signal.invalid)
    return (mask | (_small_holes(mask, diameter, sampling)[0] > 0)) & ~signal.invalid


def least_signal(signal: Signal, settings: SegmentationSettings) -> float:
    """Level above which pixels are of cells.

    It is the sensitivity times the noise for bright cells. Around others the background is rarely
    even: there it is at least Otsu's threshold of the frame.
    """
    values, least = signal.values, settings.sensitivity * signal.noise
    if settings.foreground in ("bright", "auto") or not (values > least).any():
        return least
    return max(float(threshold_otsu(values)), least)


def distance_landscape(mask: Mask, diameter: float, sampling: Sampling) -> Image:
    """The distance to the outline, smoothed, in radii."""
    distance = ndi.distance_transform_edt(mask, sampling=sampling).astype(np.float32)
    return gaussian(distance, 0.05 * diameter, sampling) * (2 / diameter)


def split_cells(mask: Mask, height: Image, separation: float, sampling: Sampling) -> Labels:
    """Watershed of `mask` from the peaks of `height` that are `separation` pixels apart."""
    if not mask.any():
        return np.zeros(mask.shape, dtype=np.int32)
    window = [2 * max(1, int(separation / s)) + 1 for s in sampling]
    window = [min(w, 2 * n - 1) for w, n in zip(window, mask.shape, strict=True)]
    peaks = (height == ndi.maximum_filter(height, size=window, mode="nearest")) & mask
    markers = ndi.label(peaks, ndi.generate_binary_structure(mask.ndim, mask.ndim))[0]
    labels: Labels = watershed(-height, markers, mask=mask).astype(np.int32)
    return labels


def cut_edges(labels: Labels, values: Image) -> Labels:
    """Keep of each cell the pixels above a share of its own bright level (85th percentile)."""
    if not labels.any():
        return labels
    inside = labels > 0
    ids, pixels = labels[inside], values[inside]
    order = order_within(ids, pixels)
    counts = np.bincount(ids)
    starts = np.cumsum(counts) - counts
    positions = starts + (_BRIGHT_SHARE * np.maximum(counts - 1, 0)).astype(np.intp)
    bright = pixels[order][np.minimum(positions, ids.size - 1)]
    kept = np.zeros_like(labels)
    kept[inside] = np.where(pixels > _EDGE * bright[ids], ids, 0)
    return kept


def order_within(owner: NDArray[np.integer], values: NDArray[np.floating]) -> NDArray[np.intp]:
    """Order by owner, and by value among those of one; equal values in any order."""
    order = np.argsort(values)
    return order[stable_order(owner[order])]


def stable_order(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Order of whole numbers, none of them negative; equal ones stay in order."""
    # small ones are sorted by counting
    kind = np.uint16 if int(numbers.max(initial=0)) < 2**16 else numbers.dtype
    return np.argsort(numbers.astype(kind), kind="stable")


def weighted_median(values: Array, weights: Array) -> Array:
    """Along the last axis, shape of the others."""
    order = np.argsort(values, axis=-1)
    total = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1)
    place = (total < total[..., -1:] / 2).sum(axis=-1, keepdims=True)
    middle = np.take_along_axis(order, np.minimum(place, values.shape[-1] - 1), -1)
    return np.asarray(np.take_along_axis(values, middle, -1)[..., 0])


def clean_cells(
    labels: Labels, settings: SegmentationSettings, diameter: float, sampling: Sampling
) -> Labels:
    """The largest piece of every cell, if its size is right, numbered from 1."""
    labels = _largest_pieces(labels)
    labels = fill_cells(labels, diameter, sampling)
    unit = usual_size(diameter, labels.shape, sampling)
    return numbered(of_right_size(labels, settings, unit), settings)


def usual_size(diameter: float, shape: tuple[int, ...], sampling: Sampling) -> float:
    """Number of pixels of a cell of some diameter (in pixels along x) in a frame of some shape."""
    ball = np.pi / (4 if len(shape) == 2 else 6)
    unit = ball * diameter ** len(shape) / float(np.prod(sampling))
    if len(shape) == 3:  # a stack thinner than the cells holds slices of them only
        unit *= min(1.0, 1.5 * (shape[0] * sampling[0]) / diameter)
    return unit


def of_right_size(labels: Labels, settings: SegmentationSettings, unit: float) -> Labels:
    """Remove cells that are too small or too large; ``unit`` is a typical size in pixels."""
    sizes = np.bincount(labels.ravel())
    wrong = (sizes < settings.min_size * unit) | (sizes > settings.max_size * unit)
    wrong[0] = False
    return np.where(wrong[labels], 0, labels).astype(np.int32)


def numbered(labels: Labels, settings: SegmentationSettings) -> Labels:
    """Number cells from 1, without those at the border if they are not wanted."""
    if settings.clear_border:
        labels = clear_border(labels)
    result: Labels = relabel_sequential(labels)[0].astype(np.int32)
    return result


def _largest_pieces(labels: Labels) -> Labels:
    """The largest connected piece of every label."""
    # touching labels stay apart
    pieces = label(labels, background=0, connectivity=1).astype(np.int32)
    counts = np.bincount(pieces.ravel())
    owner = np.zeros(counts.size, dtype=np.intp)
    owner[pieces.ravel()] = labels.ravel()
    best = np.zeros(int(labels.max(initial=0)) + 1, dtype=np.intp)
    order = np.argsort(counts, kind="stable")
    best[owner[order]] = order
    keep = np.zeros(counts.size, dtype=bool)
    keep[best[1:]] = True
    keep[0] = False
    return np.where(keep[pieces], labels, 0).astype(np.int32)


def opened(mask: Mask) -> Mask:
    """Opening by a cross within each plane; planes of tiny frames stay as they are."""
    cross = ndi.generate_binary_structure(2, 1)
    structure = cross if mask.ndim == 2 else cross[np.newaxis]
    padded = np.pad(mask, 1, mode="edge")
    opened = ndi.binary_opening(padded, structure)
    return np.asarray(opened[(slice(1, -1),) * mask.ndim])


def _small_holes(mask: Mask, diameter: float, sampling: Sampling) -> tuple[Labels, int]:
    """Enclosed holes that are smaller than a cell, numbered from 1, and how many there are."""
    gaps, n = ndi.label(~mask)
    sizes = np.bincount(gaps.ravel(), minlength=n + 1) * float(np.prod(sampling))
    small = sizes < 0.25 * diameter**mask.ndim
    for axis in range(mask.ndim):
        small[gaps.take((0, -1), axis)] = False
    small[0] = False
    number = np.cumsum(small) * small
    return number.astype(np.int32)[gaps], int(np.count_nonzero(small))


def fill_cells(labels: Labels, diameter: float, sampling: Sampling) -> Labels:
    """Give small holes that lie within one cell to that cell; gaps between cells stay open."""
    holes, n = _small_holes(labels > 0, diameter, sampling)
    if n == 0:
        return labels
    inside = np.nonzero(holes)
    number = holes[inside]
    lowest, highest = np.full(n + 1, np.iinfo(labels.dtype).max), np.zeros(n + 1, dtype=np.int32)
    for axis in range(labels.ndim):
        for step in (-1, 1):  # holes do not reach the edge
            beside = labels[tuple(p + step * (a == axis) for a, p in enumerate(inside))]
            cell = beside > 0
            np.maximum.at(highest, number[cell], beside[cell])
            np.minimum.at(lowest, number[cell], beside[cell])
    owner = np.where(highest == lowest, highest, 0).astype(np.int32)
    return np.where(labels > 0, labels, owner[holes])


def merge_shallow(labels: Labels, height: Image, depth: float) -> Labels:
    """Join neighbours whose common saddle is less than `depth` below the lower of their peaks.

    Elongated cells have several peaks along their ridge, at which the watershed cuts them.
    """
    peak = np.full(int(labels.max(initial=0)) + 1, -np.inf)
    inside = labels > 0
    np.maximum.at(peak, labels[inside], height[inside])
    return joined_over(labels, passes(labels, height), peak, depth)


def joined_over(
    labels: Labels, between: tuple[Index, Index, Array], peak: Array, depth: float
) -> Labels:
    """As `merge_shallow`, for known `passes` and the peak of every label from 0."""
    n = len(peak) - 1
    if n < 2 or depth == 0:
        return labels
    first, second, saddle = between
    lower = np.minimum(peak[first], peak[second])
    joined = lower - saddle < depth
    edges = (np.ones(int(joined.sum())), (first[joined], second[joined]))
    graph = sparse.coo_array(edges, shape=(n + 1, n + 1))
    component = connected_components(graph, directed=False)[1].astype(np.int32)
    component = np.where(np.arange(n + 1) == 0, 0, component + 1).astype(np.int32)
    return component[labels]


def passes(labels: Labels, height: Image) -> tuple[Index, Index, Array]:
    """Pairs of labels that touch, the smaller number first, and the highest point between them."""
    n = np.int64(labels.max(initial=0)) + 1
    keys, heights = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
    for axis in range(labels.ndim):
        near = tuple(slice(None, -1) if a == axis else slice(None) for a in range(labels.ndim))
        far = tuple(slice(1, None) if a == axis else slice(None) for a in range(labels.ndim))
        a, b = labels[near], labels[far]
        touch = (a != b) & (a > 0) & (b > 0)
        first, second = a[touch].astype(np.int64), b[touch].astype(np.int64)
        keys.append(np.minimum(first, second) * n + np.maximum(first, second))
        heights.append(np.minimum(height[near][touch], height[far][touch]))
    key, level = np.concatenate(keys), np.concatenate(heights)
    order = np.lexsort((level, key))
    last = np.flatnonzero(np.diff(key[order], append=-1))
    pair = key[order][last]
    return pair // n, pair % n, level[order][last].astype(np.float64)
