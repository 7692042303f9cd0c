"""Filters on frames whose cost does not grow with their width, in 2D and anisotropic 3D."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

Image = NDArray[np.float32]
Sampling = tuple[float, ...]


def sampling_of(
    scale: tuple[float, ...] | None, shape: tuple[int, ...], diameter: float = 0.0
) -> Sampling:
    """Pixel size per axis in units of the pixel size along x.

    Stacks without a known scale are taken to be at least as deep as a cell is wide: otherwise
    a few planes that lie far apart would look like a thin film.

    Parameters
    ----------
    scale
        Pixel size per axis; None or equal numbers where it is unknown.
    shape
        Shape of the frame.
    diameter
        Of a typical cell, in pixels along x.
    """
    scale = scale or (1.0,) * len(shape)
    sampling = tuple(s / scale[-1] for s in scale)
    if len(shape) == 3 and len(set(scale)) == 1:
        return (max(1.0, diameter / shape[0]), *sampling[1:])
    return sampling


def gaussian(image: Image, sigma: float, sampling: Sampling) -> Image:
    """Gaussian filter; sigma in pixels along x. Wide filters run on a reduced image."""
    sigmas = [sigma / s for s in sampling]
    factors = tuple(max(1, int(s // 4)) for s in sigmas)
    reduced = block_mean(image, factors)
    narrow = [s / f for s, f in zip(sigmas, factors, strict=True)]
    smooth = ndi.gaussian_filter(reduced, narrow, mode="reflect")
    return enlarge(smooth, factors, image.shape)


def blob_response(image: Image, diameter: float, sampling: Sampling) -> Image:
    """Scale-normalised negative Laplacian of Gaussian, positive inside blobs of `diameter`.

    A disc of radius r answers most strongly at sigma = r / sqrt(2).
    """
    sigmas = [diameter / 2 / np.sqrt(2) / s for s in sampling]
    factors = tuple(max(1, int(s // 3)) for s in sigmas)
    reduced = block_mean(image, factors)
    narrow = [s / f for s, f in zip(sigmas, factors, strict=True)]
    response = np.zeros_like(reduced)
    for axis, sigma in enumerate(narrow):
        order = [2 if a == axis else 0 for a in range(image.ndim)]
        response -= sigma**2 * ndi.gaussian_filter(reduced, narrow, order=order, mode="reflect")
    return enlarge(response, factors, image.shape)


def local_percentile(image: Image, percentile: float, width: float, sampling: Sampling) -> Image:
    """Smoothed percentile in a window of `width` pixels along x, on a reduced image."""
    factors = tuple(max(1, int(width / 10 / s)) for s in sampling)
    reduced = block_mean(image, factors)
    windows = [
        min(int(width / s / f) | 1, 2 * n + 1)
        for s, f, n in zip(sampling, factors, reduced.shape, strict=True)
    ]
    level = ndi.percentile_filter(reduced, percentile, size=windows, mode="nearest")
    smooth = ndi.gaussian_filter(level, [w / 4 for w in windows], mode="nearest")
    return enlarge(smooth, factors, image.shape)


def block_mean(image: Image, factors: tuple[int, ...]) -> Image:
    """Mean of blocks of `factors` pixels; blocks at the far edges are filled up by reflection."""
    if all(f == 1 for f in factors):
        return image
    padding = [(0, -n % f) for n, f in zip(image.shape, factors, strict=True)]
    padded = np.pad(image, padding, mode="symmetric")
    split = [m for n, f in zip(padded.shape, factors, strict=True) for m in (n // f, f)]
    blocks = padded.reshape(split)
    return blocks.mean(axis=tuple(range(1, 2 * image.ndim, 2)), dtype=np.float32)


def enlarge(image: Image, factors: tuple[int, ...], shape: tuple[int, ...]) -> Image:
    """Undo `block_mean` by linear interpolation between the centres of blocks."""
    if all(f == 1 for f in factors):
        return image
    step = [1 / f for f in factors]
    offset = [0.5 / f - 0.5 for f in factors]
    result: Image = ndi.affine_transform(
        image, step, offset, output_shape=shape, order=1, mode="nearest", output=np.float32
    )
    return result
