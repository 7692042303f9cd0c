"""A movie: frames that are loaded when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry


@dataclass(frozen=True)
class Movie:
    """A time-lapse, lazily loaded.

    Parameters
    ----------
    array
        Dask array of shape (T, C, Y, X) or (T, C, Z, Y, X), one chunk per frame and channel or
        smaller; label movies have one channel.
    geometry
        Extent, scale and units; ``geometry.shape`` is the spatial shape of `array`.
    channels
        One name per channel.
    source
        Where the movie came from, for messages and provenance.
    """

    array: da.Array
    geometry: Geometry
    channels: tuple[str, ...]
    source: str = "array"

    def __post_init__(self) -> None:
        expected = (self.geometry.n_frames, len(self.channels), *(self.geometry.shape or ()))
        if tuple(self.array.shape) != expected:
            raise InputError(
                f"{self.source}: the array has shape {tuple(self.array.shape)}, "
                f"expected (time, channel, space) = {expected}"
            )

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return self.geometry.n_frames

    def frame(self, t: int) -> NDArray[Any]:
        """Pixels of frame `t`, all channels, shape (C, [Z,] Y, X)."""
        return np.asarray(self.array[t].compute())

    def channel_frame(self, t: int, channel: int = 0) -> NDArray[Any]:
        """Pixels of one channel of frame `t`, shape ([Z,] Y, X)."""
        return np.asarray(self.array[t, channel].compute())
