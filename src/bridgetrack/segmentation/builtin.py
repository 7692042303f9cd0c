"""The built-in segmentation of one frame; missing settings are estimated from the image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from skimage.filters import threshold_otsu
from skimage.measure import label, regionprops

from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InputError
from bridgetrack.segmentation.cells import (
    SEPARATION,
    Labels,
    clean_cells,
    cut_edges,
    distance_landscape,
    foreground_mask,
    merge_shallow,
    opened,
    split_cells,
    weighted_median,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import (
    Image,
    Sampling,
    Signal,
    block_mean,
    cell_signal,
    finite_image,
    gaussian,
    sampling_of,
)

SMOOTHING = 0.05
"""Sigma of the Gaussian filter, in diameters."""
_MAX_SIDE = 500
_ONE_SIDED = 0.25
_TIE = 0.15
_COVERED = 0.15
_PLANES = 5
_PLANE = (1.0, 1.0)


@dataclass(frozen=True)
class FrameView:
    """One frame as the built-in method sees it; everything is computed once, when it is needed.

    Parameters
    ----------
    image
        One channel, shape ([Z,] Y, X). NaN and infinite pixels are background.
    settings
        Missing ones are estimated from this frame.
    scale
        Pixel size per axis; only ratios matter.
    """

    image: NDArray[Any]
    settings: SegmentationSettings
    scale: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.image.ndim not in (2, 3):
            raise InputError(f"a frame has 2 or 3 axes, not {self.image.ndim}")

    @cached_property
    def uniform(self) -> bool:
        """Whether all pixels are the same, so that there is nothing to see."""
        return bool(np.ptp(finite_image(self.image)[0]) == 0)

    @cached_property
    def complete(self) -> SegmentationSettings:
        """The settings with estimates for missing ones."""
        return complete_settings([self.image], self.settings)

    @property
    def diameter(self) -> float:
        """Diameter of a typical cell, in pixels along x."""
        return float(self.complete.diameter or 20.0)

    @property
    def sampling(self) -> Sampling:
        """Pixel size per axis in units of that along x."""
        return sampling_of(self.scale, self.image.shape, self.diameter)

    @cached_property
    def signal(self) -> Signal:
        """How much every pixel looks like a cell."""
        smoothing = SMOOTHING * self.diameter
        return cell_signal(
            self.image, self.complete.foreground, self.diameter, smoothing, self.sampling
        )

    @cached_property
    def fine(self) -> Image:
        """The signal, smoothed a little."""
        return gaussian(self.signal.values, 0.03 * self.diameter, self.sampling)

    @cached_property
    def foreground(self) -> Mask:
        """Pixels of cells."""
        return foreground_mask(self.signal, self.complete, self.diameter, self.sampling)

    @cached_property
    def level(self) -> Image:
        """The logarithm of the signal over the noise, in which dim cells count like bright ones."""
        noise = self.signal.noise
        return np.log(np.maximum(self.signal.values, noise) / noise + 3)

    @cached_property
    def _relief(self) -> Image:
        return np.float32(0.3) * gaussian(self.level, 0.1 * self.diameter, self.sampling)

    def landscape_of(self, mask: Mask) -> Image:
        """Height in which every cell of a mask is one hill; watershed cuts along the valleys.

        It is the distance to the outline, in radii, and somewhat more where the signal is high.
        """
        return distance_landscape(mask, self.diameter, self.sampling) + self._relief

    @cached_property
    def landscape(self) -> Image:
        """The landscape of the foreground."""
        return self.landscape_of(self.foreground)


def segment_builtin(view: FrameView) -> Labels:
    """Cells of one frame by threshold and seeded watershed.

    Parameters
    ----------
    view
        The frame.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n, 0 for background, shape of the image.
    """
    if view.uniform:
        return np.zeros(view.image.shape, dtype=np.int32)
    settings, diameter, height = view.complete, view.diameter, view.landscape
    labels = split_cells(view.foreground, height, SEPARATION * diameter, view.sampling)
    labels = merge_shallow(labels, height, float(settings.depth or 0.0))
    labels = cut_edges(labels, view.signal.values)
    labels = clean_cells(labels, settings, diameter, view.sampling)
    invalid = view.signal.invalid
    return np.where(invalid, 0, labels) if invalid.any() else labels


def complete_settings(
    frames: list[NDArray[Any]], settings: SegmentationSettings
) -> SegmentationSettings:
    """The settings with missing ones estimated from some frames."""
    if settings.foreground == "auto":
        settings = replace(settings, foreground=estimate_foreground(frames))
    if settings.diameter is None:
        found = [estimate_diameter(frame, settings.foreground) for frame in frames]
        known = [d for d in found if d is not None]
        settings = replace(settings, diameter=float(np.median(known)) if known else 20.0)
    if settings.depth is None:
        settings = replace(settings, depth=0.05 if settings.foreground == "bright" else 0.15)
    return settings


def estimate_diameter(image: NDArray[Any], foreground: str = "bright") -> float | None:
    """Diameter of a typical cell in pixels along x; None where no cell shows.

    The foreground is split into cells; the median diameter of discs with their areas, weighted
    by area so that debris does not count, is refined twice, because the filters depend on the
    size themselves. The planes of a stack are split one by one.

    Parameters
    ----------
    image
        Shape ([Z,] Y, X).
    foreground
        ``"bright"``, ``"dark"`` or ``"texture"``.
    """
    planes, factor = _reduced_planes(image)
    textured = foreground == "texture"
    diameter = min(planes[0].shape) / (8 if textured else 15)
    found = None
    for _ in range(1 if textured else 3):  # narrow filters see structures within cells
        widths = np.concatenate([_widths(plane, foreground, diameter) for plane in planes])
        if widths.size == 0:
            break
        diameter = float(np.clip(weighted_median(widths, widths), 2.0, max(planes[0].shape)))
        found = diameter * factor
    return found


def estimate_foreground(frames: list[NDArray[Any]]) -> Literal["bright", "dark", "texture"]:
    """Whether cells are bright, dark, or differ from the background by their texture.

    Where nearly nothing is darker (brighter) than the background, cells are bright (dark).
    Otherwise bright and dark regions are compared by how solid they are (area over that of the
    convex hull): cells are, halos and fringes are not. Texture is chosen where neither kind
    stands out, or where the better one covers little of what is structured.

    Parameters
    ----------
    frames
        Some frames of the movie, shape ([Z,] Y, X) each.
    """
    side = one_sided(frames)
    if side is not None:
        return side
    stacks = [np.stack(_reduced_planes(frame)[0]) for frame in frames]
    planes = [max(s, key=lambda p: float(np.std(p))) for s in stacks]
    bright, dark = _evidence(planes, "bright"), _evidence(planes, "dark")
    if min(bright.area, dark.area) > 0.1 * max(bright.area, dark.area):
        best, tie = max(bright, dark), abs(bright.solidity - dark.solidity) < _TIE
    else:
        best, tie = max(bright, dark, key=lambda e: e.area), False
    if tie or best.covered < _COVERED:
        return "texture"
    return "bright" if best is bright else "dark"


def one_sided(frames: list[NDArray[Any]]) -> Literal["bright", "dark"] | None:
    """Bright (dark) if nearly nothing is darker (brighter) than the background, else None."""
    stacks = [np.stack(_reduced_planes(frame)[0]) for frame in frames]
    percentiles = np.mean([np.percentile(s, [1, 50, 99]) for s in stacks], axis=0)
    below, above = np.diff(percentiles)
    if below < _ONE_SIDED * above:
        return "bright"
    return "dark" if above < _ONE_SIDED * below else None


@dataclass(frozen=True, order=True)
class _Evidence:
    """Solidity of a kind of region, its area, and its share of the structured area."""

    solidity: float
    area: int
    covered: float


def _evidence(planes: list[NDArray[np.float32]], foreground: str) -> _Evidence:
    masks = [_rough_mask(p, foreground) for p in planes]
    structured = [_rough_mask(p, "texture") for p in planes]
    regions = [r for mask in masks for r in regionprops(label(mask)) if r.area >= 20]
    areas = [float(r.area) for r in regions]
    both = sum(int((m & s).sum()) for m, s in zip(masks, structured, strict=True))
    return _Evidence(
        solidity=float(np.average([r.solidity for r in regions], weights=areas)) if areas else 0.0,
        area=int(sum(areas)),
        covered=both / max(sum(int(s.sum()) for s in structured), 1),
    )


def _reduced_planes(image: NDArray[Any]) -> tuple[list[NDArray[np.float32]], int]:
    """Some planes of a frame, reduced where they are large, and by how much."""
    pixels, _ = finite_image(image)
    stack = pixels.reshape(-1, *pixels.shape[-2:])
    chosen = np.unique(np.linspace(0, len(stack) - 1, _PLANES + 2).round().astype(int)[1:-1])
    factor = max(1, max(stack.shape[1:]) // _MAX_SIDE)
    return [block_mean(stack[z], (factor, factor)) for z in chosen], factor


def _widths(image: NDArray[Any], foreground: str, diameter: float) -> Array:
    """Diameters of discs with the areas of the cells of a plane, in pixels."""
    settings = SegmentationSettings(foreground=foreground, sensitivity=6.0)  # type: ignore[arg-type]
    smoothing = max(0.5, SMOOTHING * diameter)
    signal = cell_signal(image, foreground, diameter, smoothing, _PLANE)
    mask = foreground_mask(signal, settings, diameter, _PLANE)
    pieces = label(mask, connectivity=1).astype(np.int32)
    mask = cut_edges(pieces, signal.values) > 0
    height = distance_landscape(mask, diameter, _PLANE)
    cells = split_cells(mask, height, SEPARATION * diameter, _PLANE)
    cells = merge_shallow(cells, height, 0.1)
    areas = np.bincount(cells.ravel())[1:].astype(np.float64)
    return np.asarray(2 * np.sqrt(areas[areas > 4] / np.pi))


def _rough_mask(plane: NDArray[Any], foreground: str) -> Mask:
    """Foreground of a plane by Otsu's threshold, but well above the quartiles' spread."""
    diameter = min(plane.shape) / 15
    values = cell_signal(plane, foreground, diameter, 1.0, _PLANE).values
    lower, median, upper = np.percentile(values, [25, 50, 75])
    least = median + 4 * (upper - lower) / 1.349
    return opened(values > max(float(threshold_otsu(values)), float(least)))
