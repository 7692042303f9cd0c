"""Arrays in memory, dask arrays and .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.lazy import RawMovie, reading


class SlicedArray:
    """An array that is only sliced: dask copies a bare numpy array whole, mapped files too."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.ndim = array.ndim

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """A copy of the slice."""
        return np.array(self.array[key])


def read_array(source: Any) -> RawMovie:
    """Take an array (numpy, dask, zarr, or anything that can be sliced) as a movie.

    A numpy array is not copied: later changes of its pixels show in the movie.
    """
    if not (hasattr(source, "shape") and hasattr(source, "dtype")):
        with reading("the array"):
            source = np.asarray(source)
    if 0 in source.shape:
        raise InputError(f"the array has no pixels: its shape is {tuple(source.shape)}")
    return RawMovie(SlicedArray(source) if isinstance(source, np.ndarray) else source)


def read_npy(path: Path) -> RawMovie:
    """Open a .npy file, mapped into memory; files with pickled objects are refused."""
    with reading(path):
        return RawMovie(SlicedArray(np.load(path, mmap_mode="r", allow_pickle=False)))
