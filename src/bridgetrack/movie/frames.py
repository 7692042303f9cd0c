"""Frames of a label movie that are made when they are looked at, or changed in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Index
from bridgetrack.movie.movie import Movie, pixels_of


class LazyFrames:
    """Frames of labels that are made when they are looked at, as dask and napari read them.

    Parameters
    ----------
    shape, dtype
        Of all frames, time first.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype(dtype)

    def frame(self, t: int) -> NDArray[Any]:
        """One frame."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> NDArray[Any]:
        times, *rest = key if isinstance(key, tuple) else (key,)
        if not isinstance(times, slice):
            return np.asarray(self.frame(int(times))[tuple(rest)])
        frames = [self.frame(t)[tuple(rest)] for t in range(*times.indices(self.shape[0]))]
        return np.stack(frames) if frames else np.zeros((0, *self.shape[1:]), self.dtype)


class EditedFrames(LazyFrames):
    """Frames of a label movie, some of them changed in memory.

    Attributes
    ----------
    movie
        The movie with all changes, also those that are made later.
    """

    def __init__(self, movie: Movie) -> None:
        super().__init__(movie.array.shape, movie.array.dtype)
        self._array = movie.array
        self._changed: dict[int, NDArray[Any]] = {}
        chunks = tuple((1,) * n if k < 2 else (n,) for k, n in enumerate(self.shape))
        array = da.from_array(self, chunks=chunks, name=False, asarray=False)
        self.movie = replace(movie, array=array)

    def frame(self, t: int) -> NDArray[Any]:
        """One frame with its changes."""
        return self._changed[t] if t in self._changed else pixels_of(self._array[t])

    def write(self, t: int, where: tuple[Index, ...], labels: Index) -> None:
        """Give places of a frame other labels."""
        frame = self.frame(t).copy()
        frame[0][where] = labels
        self._changed[t] = frame
