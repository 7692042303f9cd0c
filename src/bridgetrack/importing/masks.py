"""Label movies from one TIFF per frame, and where their labels are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie


def open_masks(
    paths: tuple[Path, ...],
    scale: tuple[float, ...] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
) -> Movie:
    """A label movie from one TIFF per frame, loaded frame by frame.

    Raises
    ------
    InputError
        Where a file is unreadable, has another shape than the first, or holds no labels.
    """
    first = read_mask(paths[0])
    known = scale is not None
    geometry = Geometry(
        n_frames=len(paths),
        shape=first.shape,
        scale=tuple(scale) if scale is not None else (1.0,) * first.ndim,
        unit=unit if unit is not None else ("micrometer" if known else "pixel"),
        frame_interval=frame_interval,
    )

    def load(block_info: Any = None) -> NDArray[Any]:
        t = block_info[None]["chunk-location"][0]
        image = read_mask(paths[t])
        if image.shape != first.shape:
            raise InputError(
                f"{paths[t]}: the frame has shape {image.shape}, the first has {first.shape}"
            )
        return image[None, None].astype(first.dtype, copy=False)

    chunks = ((1,) * len(paths), (1,), *((n,) for n in first.shape))
    array = da.map_blocks(load, chunks=chunks, dtype=first.dtype, meta=first[:0])
    return Movie(array, geometry, ("labels",), str(paths[0].parent))


def read_mask(path: Path) -> NDArray[Any]:
    """One label image, shape ([z,] y, x).

    Raises
    ------
    InputError
        Where it cannot be read or its values are not integers.
    """
    try:
        image = np.asarray(tifffile.imread(path))
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a TIFF ({error})") from error
    if image.ndim not in (2, 3):
        raise InputError(f"{path}: expected a 2D or 3D label image, found shape {image.shape}")
    if image.dtype.kind not in "iu":
        raise InputError(f"{path}: labels must be integers, found {image.dtype}")
    return image


def nodes_of(labels: Movie, paths: tuple[Path, ...] | None = None) -> pd.DataFrame:
    """Frame, label, centroid (pixels) and area of every label, sorted by frame and label."""

    def measure(t: int) -> pd.DataFrame:
        image = read_mask(paths[t]) if paths is not None else labels.channel_frame(t)
        return _measure(image, t, labels.geometry)

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(measure, range(labels.n_frames)))
    return pd.concat(parts, ignore_index=True)


def _measure(image: NDArray[Any], t: int, geometry: Geometry) -> pd.DataFrame:
    if image.shape != geometry.shape:
        raise InputError(
            f"frame {t}: the masks have shape {image.shape}, the first frame has {geometry.shape}"
        )
    where = np.nonzero(image)
    values = image[where]
    if values.size and values.min() < 0:
        raise InputError(f"frame {t}: the label {values.min()} is negative")
    labels, index = compact(values)
    area = np.bincount(index, minlength=len(labels))
    columns: dict[str, NDArray[Any]] = {
        "frame": np.full(len(labels), t, dtype=np.int64),
        "label": labels,
    }
    for axis, coordinate in zip(geometry.axes, where, strict=True):
        columns[axis] = np.bincount(index, weights=coordinate, minlength=len(labels)) / area
    columns["area"] = area.astype(np.float64)
    return pd.DataFrame(columns)


def compact(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct non-negative values, sorted, and the index of each value among them."""
    if values.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    top = int(values.max())
    if top > 2 * values.size + 100_000:
        labels, index = np.unique(values, return_inverse=True)
        return labels.astype(np.int64), index.astype(np.int64)
    present = np.zeros(top + 1, dtype=bool)
    present[values] = True
    rank = np.cumsum(present, dtype=np.int64) - 1
    return np.flatnonzero(present).astype(np.int64), rank[values]
