"""From pixels to a signal that is positive in cells, and the noise of its background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.segmentation.filters import (
    Image,
    Sampling,
    gaussian,
    local_percentile,
)

_FLOOR = 0.002
# halos round dark cells are brighter than the background: the lowest quarter would be halo
_BACKGROUND_PERCENTILE = {"bright": 25, "dark": 50, "texture": 25}


@dataclass(frozen=True)
class Signal:
    """How much every pixel looks like a cell.

    Parameters
    ----------
    values
        About 0 in the background, positive in cells.
    noise
        Standard deviation of the background, at least 0.2 % of the brightest cells.
    invalid
        Pixels that held no finite number.
    """

    values: Image
    noise: float
    invalid: NDArray[np.bool_]


def finite_image(image: NDArray[Any]) -> tuple[Image, NDArray[np.bool_]]:
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
    image: NDArray[Any],
    foreground: str,
    diameter: float,
    smoothing: float,
    background_window: float,
    sampling: Sampling,
) -> Signal:
    """Signal of one frame.

    Parameters
    ----------
    image
        Shape ([Z,] Y, X).
    foreground
        ``"bright"``, ``"dark"`` or ``"texture"``.
    diameter, smoothing
        In pixels along x.
    background_window
        In diameters; 0 for one level.
    sampling
        Pixel size per axis relative to x.
    """
    pixels, invalid = finite_image(image)
    if foreground == "texture":
        pixels = _texture(pixels, diameter, sampling)
    elif foreground == "dark":
        pixels = -pixels
    smooth = gaussian(pixels, smoothing, sampling) if smoothing > 0 else pixels
    values = smooth - _background(smooth, foreground, diameter, background_window, sampling)
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
    smooth: Image, foreground: str, diameter: float, window: float, sampling: Sampling
) -> Image | float:
    percentile = _BACKGROUND_PERCENTILE[foreground]
    if window == 0 or foreground == "texture":
        return float(np.percentile(smooth, percentile))
    return local_percentile(smooth, percentile, window * diameter, sampling)


def _texture(pixels: Image, diameter: float, sampling: Sampling) -> Image:
    """Local standard deviation in a neighbourhood of a quarter of a cell."""
    width = max(1.0, diameter / 12)
    centred = pixels - gaussian(pixels, width, sampling)
    variance = gaussian(centred**2, width, sampling)
    result: Image = np.sqrt(np.maximum(variance, 0))
    return result
