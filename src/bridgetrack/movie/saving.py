"""Write whole label movies, one frame in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.labels import label_frame
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.writers import label_writer


def save_labels(
    labels: Movie | Iterable[NDArray[Any]],
    path: str | Path,
    *,
    geometry: Geometry | None = None,
    dtype: str = "uint16",
) -> Path:
    """Write a label movie, one frame in memory at a time.

    Parameters
    ----------
    labels
        A label movie, or frames of shape ([Z,] Y, X) in order.
    path
        A name that ends in ``.tif`` gives a TIFF stack, any other a folder with ``mask000.tif``
        and so on. Both are zlib-compressed and appear under the name only when complete.
    geometry
        Extent and scale; needed where `labels` is not a movie and has no length.
    dtype
        ``"uint16"`` or ``"uint32"``.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        Where a frame has the wrong shape or is no label image.
    OutputError
        Where the files cannot be written, or a label does not fit into `dtype`.
    """
    frames, geometry = _frames(labels, geometry)
    with label_writer(path, geometry, dtype=dtype) as writer:
        for frame in frames:
            writer.write(frame)
    return writer.path


def _frames(
    labels: Movie | Iterable[NDArray[Any]], geometry: Geometry | None
) -> tuple[Iterable[NDArray[Any]], Geometry]:
    if isinstance(labels, Movie):
        movie = labels
        return (label_frame(movie, t) for t in range(movie.n_frames)), geometry or movie.geometry
    if geometry is not None:
        return labels, geometry
    if not isinstance(labels, Sized) or len(labels) == 0:
        raise InputError("frames without a length or without content need the movie's geometry")
    shape = tuple(int(n) for n in np.shape(next(iter(labels))))
    return labels, Geometry(n_frames=len(labels), shape=shape, scale=(1.0,) * len(shape))
