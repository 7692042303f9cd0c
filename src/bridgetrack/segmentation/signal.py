"""From pixels to a signal that is positive in cells, by filters as fast for wide as for narrow.

Filters work in 2D and in anisotropic 3D: widths are in pixels along x, and `Sampling` is the pixel
size per axis in units of that along x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.arrays import Mask

Image = NDArray[np.float32]
Sampling = tuple[float, ...]

_FLOOR = 0.002
# halos round dark cells are brighter than the background: the lowest quarter would be halo
_WINDOW = 5.0
"""Width of the window in which the background is estimated, in diameters."""
_BACKGROUND_PERCENTILE = {"bright": 25, "dark": 50, "texture": 25}


@dataclass(frozen=True)
class Signal:
    """How much every pixel looks like a cell."""

    values: Image  # about 0 in the background, positive in cells
    noise: float  # standard deviation of the background, at least 0.2 % of the brightest cells
    invalid: Mask  # pixels that held no finite number


def finite_image(image: NDArray[Any]) -> tuple[Image, Mask]:
    """The frame as float32 with NaN and infinite pixels replaced by the median, and where.

    The replaced pixels never become part of a cell.
    """
    pixels = np.asarray(image, dtype=np.float32)
    invalid = ~np.isfinite(pixels)
    if invalid.any():
        level = np.median(pixels[~invalid]) if not invalid.all() else np.float32(0)
        pixels = np.where(invalid, level, pixels)
    return pixels, invalid


def cell_signal(
    image: NDArray[Any], foreground: str, diameter: float, smoothing: float, sampling: Sampling
) -> Signal:
    """Signal of one frame; `smoothing` is the sigma of a Gaussian filter, in pixels."""
    pixels, invalid = finite_image(image)
    if foreground == "texture":
        pixels = _texture(pixels, diameter, sampling)
    elif foreground == "dark":
        pixels = -pixels
    smooth = gaussian(pixels, smoothing, sampling) if smoothing > 0 else pixels
    values = smooth - _background(smooth, foreground, diameter, sampling)
    level, noise = _background_level(values, foreground)
    brightest = float(np.percentile(values, 99.9))
    noise = max(noise, _FLOOR * (brightest - level), 1e-12)
    return Signal((values - np.float32(level)).astype(np.float32), noise, invalid)


def _background_level(values: Image, foreground: str) -> tuple[float, float]:
    """Centre and standard deviation of the background, from percentiles free of cells.

    The constants are those of a normal distribution. Among dark cells the lowest values are
    halos, so that the quartile and the median serve.
    """
    low, quartile, median = (float(p) for p in np.percentile(values, [5, 25, 50]))
    if foreground == "dark":
        return median, (median - quartile) / 0.674
    noise = (quartile - low) / 0.970
    return quartile + 0.674 * noise, noise


def _background(
    smooth: Image, foreground: str, diameter: float, sampling: Sampling
) -> Image | float:
    percentile = _BACKGROUND_PERCENTILE[foreground]
    if foreground == "texture":
        return float(np.percentile(smooth, percentile))
    return local_percentile(smooth, percentile, _WINDOW * diameter, sampling)


def _texture(pixels: Image, diameter: float, sampling: Sampling) -> Image:
    """Local standard deviation in a neighbourhood of a quarter of a cell."""
    width = max(1.0, diameter / 12)
    centred = pixels - gaussian(pixels, width, sampling)
    variance = gaussian(centred**2, width, sampling)
    result: Image = np.sqrt(np.maximum(variance, 0))
    return result


def sampling_of(
    scale: tuple[float, ...] | None, shape: tuple[int, ...], diameter: float = 0.0
) -> Sampling:
    """Pixel size per axis in units of the pixel size along x.

    Stacks without a known scale are taken to be at least as deep as a cell is wide: otherwise
    a few planes that lie far apart would look like a thin film.
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
