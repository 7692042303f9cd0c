"""Properties of a movie besides its pixels: extent, scale and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError, plural
from bridgetrack.schema import of_dataclass

MOST_FRAMES = 10_000_000
"""Frames beyond which an extent is a mistake."""
_WIDEST = 1_000_000_000
"""Pixels along an axis beyond which an extent is a mistake."""
_SMALLEST, _LARGEST = 1e-9, 1e9
"""Plausible sizes of a pixel and times between frames, in any unit."""


def check_scale(scale: Any) -> None:
    """Refuse a scale that is a single number: a slice may be thicker than a pixel is wide."""
    if scale is not None and np.ndim(scale) != 1:
        raise InputError(f"the scale {scale} needs a number for each axis, such as (0.65, 0.65)")


@dataclass(frozen=True)
class Geometry:
    """Extent and scale of a movie.

    Parameters
    ----------
    n_frames
        Number of frames.
    shape
        Spatial extent in pixels, ``(y, x)`` or ``(z, y, x)``; None if only a table of
        detections is known.
    scale
        Size of a pixel along each spatial axis, in `unit`; same order as `shape`.
    unit
        ``"pixel"`` where the scale is unknown, else ``"micrometer"``.
    frame_interval
        Minutes between two frames; None if unknown (then times are in frames).

    Raises
    ------
    InputError
        If the scale is not positive or does not fit the number of axes, or the frame interval
        is not positive.
    """

    n_frames: Annotated[int, Field(ge=1)]
    shape: tuple[Annotated[int, Field(ge=1, le=_WIDEST)], ...] | None
    scale: tuple[float, ...]
    unit: str = "pixel"
    frame_interval: float | None = None

    def __post_init__(self) -> None:
        if self.shape is not None and len(self.shape) != len(self.scale):
            raise InputError(
                f"the scale has {len(self.scale)} numbers but the frames have "
                f"{len(self.shape)} axes; give one number per spatial axis, e.g. "
                f"--scale {','.join(['1'] * len(self.shape))}"
            )
        if len(self.scale) not in (2, 3) or not all(np.isfinite(s) and s > 0 for s in self.scale):
            raise InputError(f"the scale {self.scale} must be two or three positive numbers")
        if not all(_SMALLEST <= s <= _LARGEST for s in self.scale):
            raise InputError(
                f"the scale {self.scale} is not that of a microscope: {_SMALLEST:g} to {_LARGEST:g}"
            )
        interval = self.frame_interval
        if interval is not None and not _SMALLEST <= interval <= _LARGEST:
            raise InputError(
                "the frame interval must be a positive number of minutes, at most "
                f"{_LARGEST:g}, not {interval:g}"
            )
        if self.n_frames > MOST_FRAMES:
            raise InputError(f"{self.n_frames:,} frames are more than the {MOST_FRAMES:,} possible")

    @property
    def ndim(self) -> int:
        """Number of spatial axes, 2 or 3."""
        return len(self.scale)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the spatial axes, ``("y", "x")`` or ``("z", "y", "x")``."""
        return ("z", "y", "x")[-self.ndim :]

    @property
    def extent(self) -> str:
        """E.g. ``"12 frames of 512 × 512 pixels"``."""
        size = "" if self.shape is None else f" of {' × '.join(map(str, self.shape))} pixels"
        return f"{plural(self.n_frames, 'frame')}{size}"

    @property
    def scale_array(self) -> Array:
        """The scale as an array, shape (ndim,)."""
        return np.asarray(self.scale, dtype=np.float64)


def geometry_to_json(geometry: Geometry) -> dict[str, Any]:
    """A geometry as JSON values; `GeometryField` reads them."""
    lists = {key: list(v) for key, v in vars(geometry).items() if isinstance(v, tuple)}
    return {**vars(geometry), **lists}


GeometryField = Annotated[Geometry, of_dataclass(Geometry)]
"""Field of a schema for what `geometry_to_json` wrote."""
