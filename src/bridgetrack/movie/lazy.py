"""A movie's array as read from a source, before it is brought in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.movie.axes import time_chunks
from bridgetrack.movie.metadata import Metadata


class ArrayLike(Protocol):
    """What is read lazily: something with a shape and a type that can be sliced."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""

    @property
    def ndim(self) -> int:
        """Number of axes."""

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice."""


@dataclass(frozen=True)
class RawMovie:
    """An array-like with what its source says of it.

    Parameters
    ----------
    data
        Anything that can be sliced; not read yet.
    metadata
        What the source says.
    """

    data: ArrayLike
    metadata: Metadata = field(default_factory=Metadata)

    def lazy(self, axes: str) -> da.Array:
        """The array as dask array, one chunk per frame and channel."""
        if isinstance(self.data, da.Array):
            return da.rechunk(self.data, time_chunks(self.data.shape, axes))
        chunks = time_chunks(tuple(self.data.shape), axes)
        return da.from_array(self.data, chunks=chunks, name=False, inline_array=True, asarray=True)


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn whatever goes wrong while reading `path` into an InputError that names it."""
    try:
        yield
    except BridgetrackError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file or folder") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it; check its access rights") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MemoryError as error:
        raise InputError(f"{path}: one frame does not fit in memory") from error
    except Exception as error:  # the libraries raise anything on damaged files
        raise InputError(
            f"{path}: damaged, cut off or of an unknown layout ({_one_line(error)}); "
            "open it in the program that wrote it and save it again"
        ) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
