"""From a signal to labelled cells: threshold, seeds, watershed and clean-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi
from skimage.filters import threshold_otsu
from skimage.measure import label
from skimage.segmentation import clear_border, relabel_sequential, watershed

from bridgetrack.segmentation.filters import Image, Sampling, blob_response, gaussian
from bridgetrack.segmentation.holes import fill_cells, small_holes
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Signal

Mask = NDArray[np.bool_]
Labels = NDArray[np.int32]

_BRIGHT_SHARE = 0.85


def foreground_mask(
    signal: Signal, settings: SegmentationSettings, diameter: float, sampling: Sampling
) -> Mask:
    """Pixels of cells, shape of the frame."""
    values, least = signal.values, settings.sensitivity * signal.noise
    method = settings.threshold
    if method == "auto":
        method = "background" if settings.foreground in ("bright", "auto") else "global"
    mask = values > least
    if method == "global" and mask.any():
        mask = values > max(float(threshold_otsu(values)), least)
    elif method == "local":
        mask &= values > gaussian(values, diameter, sampling)
    mask &= ~signal.invalid
    mask = opened(mask)
    if settings.fill_holes:
        mask |= small_holes(mask, diameter, sampling)
        mask &= ~signal.invalid
    return mask


def cell_landscape(
    signal: Signal, mask: Mask, seeds: str, diameter: float, sampling: Sampling
) -> Image:
    """Height in which every cell is one hill; watershed cuts along the valleys.

    The distance to the outline is in radii. The response to blobs is taken of the logarithm of
    the signal, so that dim cells count as much as bright ones.
    """
    height = np.zeros(mask.shape, dtype=np.float32)
    if seeds in ("both", "distance"):
        distance = ndi.distance_transform_edt(mask, sampling=sampling).astype(np.float32)
        height += gaussian(distance, 0.05 * diameter, sampling) * (2 / diameter)
    if seeds in ("both", "log"):
        level = np.log(np.maximum(signal.values, signal.noise) / signal.noise + 3)
        if seeds == "log":
            height += blob_response(level, diameter, sampling)
        else:
            height += 0.3 * gaussian(level, 0.1 * diameter, sampling)
    return height


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


def cut_edges(labels: Labels, values: Image, share: float) -> Labels:
    """Keep of each cell the pixels above `share` of its own bright level (85th percentile)."""
    if share == 0 or not labels.any():
        return labels
    inside = labels > 0
    ids, pixels = labels[inside], values[inside]
    order = np.lexsort((pixels, ids))
    counts = np.bincount(ids)
    starts = np.cumsum(counts) - counts
    positions = starts + (_BRIGHT_SHARE * np.maximum(counts - 1, 0)).astype(np.intp)
    bright = pixels[order][np.minimum(positions, ids.size - 1)]
    kept = np.zeros_like(labels)
    kept[inside] = np.where(pixels > share * bright[ids], ids, 0)
    return kept


def clean_cells(
    labels: Labels, settings: SegmentationSettings, diameter: float, sampling: Sampling
) -> Labels:
    """Whole pieces of the right size only, numbered from 1."""
    labels = _largest_pieces(labels)
    if settings.fill_holes:
        labels = fill_cells(labels, diameter, sampling)
    unit = np.pi / 4 * diameter**2 if labels.ndim == 2 else np.pi / 6 * diameter**3
    unit /= float(np.prod(sampling))
    if labels.ndim == 3:  # a stack thinner than the cells holds slices of them only
        depth = labels.shape[0] * sampling[0]
        unit *= min(1.0, 1.5 * depth / diameter)
    return numbered(of_right_size(labels, settings, unit), settings)


def of_right_size(labels: Labels, settings: SegmentationSettings, unit: float) -> Labels:
    """Without cells that are too small or too large; ``unit`` is a typical size in pixels."""
    sizes = np.bincount(labels.ravel())
    wrong = (sizes < settings.min_size * unit) | (sizes > settings.max_size * unit)
    wrong[0] = False
    return np.where(wrong[labels], 0, labels).astype(np.int32)


def numbered(labels: Labels, settings: SegmentationSettings) -> Labels:
    """Numbered from 1, without cells at the border where they are not wanted."""
    if settings.clear_border:
        labels = clear_border(labels)
    result: Labels = relabel_sequential(labels)[0].astype(np.int32)
    return result


def _largest_pieces(labels: Labels) -> Labels:
    """The largest connected piece of every label."""
    pieces = _connected(labels)
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


def _connected(labels: Labels) -> NDArray[np.int32]:
    """Connected pieces of equal label, numbered from 1; touching labels stay apart."""
    pieces: NDArray[np.int32] = label(labels, background=0, connectivity=1).astype(np.int32)
    return pieces


def opened(mask: Mask) -> Mask:
    """Opening by a cross within each plane; planes of tiny frames stay as they are."""
    cross = ndi.generate_binary_structure(2, 1)
    structure = cross if mask.ndim == 2 else cross[np.newaxis]
    padded = np.pad(mask, 1, mode="edge")
    opened = ndi.binary_opening(padded, structure)
    return np.asarray(opened[(slice(1, -1),) * mask.ndim])
