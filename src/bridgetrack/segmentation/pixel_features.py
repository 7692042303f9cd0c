"""What a pixel classifier sees of a pixel: brightness, edges and texture at several scales.

The scales follow the size of the cells, so that a model learned on one movie fits the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.segmentation.signal import Image, Sampling, block_mean, cell_signal, enlarge

SCALES = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
"""Widths of the filters in diameters of a cell."""

_FINEST = 0.7
_LOCAL = 4
"""So many of the scales show brightness itself; wider ones would tell places in the frame apart."""

_HEIGHTS = 4
_NOTABLE = 4.0
"""What stands out by fewer standard deviations of the background is noise."""

Box = tuple[slice, ...]


def feature_count(ndim: int) -> int:
    """How many features a pixel of a plane or a volume has."""
    return len(SCALES) * (ndim + 2) + _LOCAL + len(SCALES) - 1 + _HEIGHTS


def views_of(image: Image, diameter: float, sampling: Sampling) -> NDArray[np.float32]:
    """What features are made of, for a whole frame, shape (3, [Z,] Y, X).

    Brightness about the median of the frame, in units of its range without the extremes; and how
    far brightness and structure exceed the background nearby, in units of its noise.
    """
    low, level, high = np.percentile(image, [0.5, 50, 99.5])
    spread = float(high - low) or 1.0
    above = [
        cell_signal(image, kind, diameter, 0.05 * diameter, 5.0, sampling)
        for kind in ("bright", "texture")
    ]
    brightness = (image - np.float32(level)) / np.float32(spread)
    return np.stack([brightness, *(s.values / np.float32(s.noise) for s in above)])


def pixel_features(
    views: NDArray[np.float32], diameter: float, sampling: Sampling
) -> NDArray[np.float32]:
    """Features of every pixel of a frame, shape (features, [Z,] Y, X).

    Length of the gradient, eigenvalues of the second derivatives and standard deviation of the
    brightness at every scale, brightness at the fine ones, and differences from scale to scale;
    much as scikit-image's ``multiscale_basic_features``, but wide filters run on reduced images,
    and flat voxels are allowed for. Derivatives are in units of the scale. To these come how far
    brightness and structure exceed the background, and the former as a share of the highest and
    the lowest value within a cell, so that dim cells look like bright ones.

    Parameters
    ----------
    views
        See `views_of`; shape (3, [Z,] Y, X).
    diameter
        Diameter of a typical cell in pixels along x.
    sampling
        Pixel size per axis in units of that along x.
    """
    image = views[0]
    square = image**2
    found = np.empty((feature_count(image.ndim), *image.shape), dtype=np.float32)
    place, finer = 0, None
    for k, width in enumerate(_widths(diameter)):
        factors = tuple(_reduction(width / s) for s in sampling)
        smooth, *others = _at_scale(image, square, width, sampling, factors)
        for row in others:
            found[place] = enlarge(row, factors, image.shape)
            place += 1
        brightness = enlarge(smooth, factors, image.shape)
        if k < _LOCAL:
            found[place] = brightness
            place += 1
        if finer is not None:
            found[place] = finer - brightness
            place += 1
        finer = brightness
    found[place:] = _heights(views[1], views[2], diameter, sampling)
    return found


def _heights(bright: Image, structured: Image, diameter: float, sampling: Sampling) -> list[Image]:
    """How far a pixel stands out, and as a share of what stands out most within a cell."""
    size = [int(diameter / s) | 1 for s in sampling]
    highest = np.maximum(ndi.maximum_filter(bright, size, mode="nearest"), _NOTABLE)
    lowest = np.minimum(ndi.minimum_filter(bright, size, mode="nearest"), -_NOTABLE)
    return [bright, bright / highest, bright / lowest, structured]


def tiles(
    shape: tuple[int, ...], diameter: float, sampling: Sampling, largest: int
) -> Iterator[tuple[Box, Box, Box]]:
    """Tiles of a frame: what to look at, what of that to keep, and where it belongs.

    Features of the kept part are those of the whole frame: the rim is as wide as filters reach,
    and tiles begin where blocks of reduced images do.

    Parameters
    ----------
    shape
        Of the frame.
    diameter, sampling
        See `pixel_features`.
    largest
        Pixels that a tile keeps, about.
    """
    widest = _widths(diameter)[-1]
    side = (largest / (shape[0] if len(shape) == 3 else 1)) ** 0.5
    cuts = []
    for axis, (n, s) in enumerate(zip(shape, sampling, strict=True)):
        block = _reduction(widest / s)
        step = n if axis < len(shape) - 2 else max(block, int(side) // block * block)
        cuts.append([slice(a, min(n, a + step)) for a in range(0, n, step)])
    for place in product(*cuts):
        yield (*with_rim(place, shape, diameter, sampling), place)


def with_rim(
    place: Box, shape: tuple[int, ...], diameter: float, sampling: Sampling, far: float = 1.0
) -> tuple[Box, Box]:
    """What to look at for the features of a part of a frame, and where the part lies in that.

    The rim is as wide as filters reach, or a share `far` of that where the part may differ at its
    edge from the whole.
    """
    widest, outer, inner = _widths(diameter)[-1], [], []
    for part, n, s in zip(place, shape, sampling, strict=True):
        block = _reduction(widest / s)
        rim = int(np.ceil(far * (3 * widest / s + 4 * block)))
        low = max(0, (part.start - rim) // block * block)
        outer.append(slice(low, min(n, part.stop + rim)))
        inner.append(slice(part.start - low, part.stop - low))
    return tuple(outer), tuple(inner)


def _widths(diameter: float) -> tuple[float, ...]:
    """Widths of the filters in pixels along x; those of small cells are a little wider."""
    return tuple(max(_FINEST * 1.4**k, s * diameter) for k, s in enumerate(SCALES))


def _reduction(width: float) -> int:
    """How many pixels become one for a filter: a power of two, so that they fit each other."""
    return int(2 ** max(0, np.floor(np.log2(max(width, 1.5) / 1.5))))


def _at_scale(
    image: Image, square: Image, width: float, sampling: Sampling, factors: tuple[int, ...]
) -> list[Image]:
    """The features of one scale, on the reduced image."""
    steps = [s * f for s, f in zip(sampling, factors, strict=True)]
    narrow = [width / step for step in steps]  # also the unit of derivatives
    smooth = ndi.gaussian_filter(block_mean(image, factors), narrow, mode="nearest", truncate=3)
    second = ndi.gaussian_filter(block_mean(square, factors), narrow, mode="nearest", truncate=3)
    slopes = [_slope(smooth, axis) * unit for axis, unit in enumerate(narrow)]
    edge: Image = np.sqrt(np.sum(np.square(slopes), axis=0))
    bends = {
        (a, b): _slope(slopes[a], b) * narrow[b]
        for a in range(image.ndim)
        for b in range(a, image.ndim)
    }
    texture: Image = np.sqrt(np.maximum(second - smooth**2, 0))
    return [smooth, edge, *_eigenvalues(bends, image.ndim), texture]


def _slope(values: Image, axis: int) -> Image:
    """Central difference along an axis; 0 along axes of one pixel."""
    if values.shape[axis] < 2:
        return np.zeros_like(values)
    return np.asarray(np.gradient(values, axis=axis), dtype=np.float32)


def _eigenvalues(bends: dict[tuple[int, int], Image], ndim: int) -> list[Image]:
    """Eigenvalues of symmetric matrices in falling order, by their closed form."""
    if ndim == 2:
        half = np.float32(0.5)
        mean = half * (bends[0, 0] + bends[1, 1])
        spread: Image = np.hypot(half * (bends[0, 0] - bends[1, 1]), bends[0, 1])
        return [mean + spread, mean - spread]
    mean = (bends[0, 0] + bends[1, 1] + bends[2, 2]) / 3
    a, b, c = (bends[k, k] - mean for k in range(3))
    d, e, f = bends[0, 1], bends[0, 2], bends[1, 2]
    radius = np.sqrt((a**2 + b**2 + c**2 + 2 * (d**2 + e**2 + f**2)) / 6)
    determinant = a * (b * c - f**2) - d * (d * c - f * e) + e * (d * f - b * e)
    cosine = determinant / np.maximum(2 * radius**3, 1e-30)
    angle = np.arccos(np.clip(cosine, -1, 1)) / 3
    first = mean + 2 * radius * np.cos(angle)
    last = mean + 2 * radius * np.cos(angle + 2 * np.pi / 3)
    return [first, 3 * mean - first - last, last]
