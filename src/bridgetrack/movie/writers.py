"""Write label movies frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import as_path, signed, writing
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie, as_labels, label_frame
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.zarr_store import zarr_frames

Append = Callable[[NDArray[Any], int], None]
_CLASSIC_LIMIT = 2**34  # compressed labels stay far below a quarter of their raw size


def save_labels(labels: Any, path: str | Path, *, dtype: str = "uint16") -> Path:
    """Write a label movie, one frame in memory at a time.

    Parameters
    ----------
    labels
        A label movie, or what `open_labels` makes one of: an array (numpy, dask) or a path.
    path
        A name that ends in ``.tif`` gives a TIFF stack, one in ``.zarr`` an OME-Zarr, any other a
        folder with ``mask000.tif`` and so on. All are compressed and appear under the name only
        when complete. An earlier result is replaced unless it was changed.
    dtype
        ``"uint16"`` or ``"uint32"``.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        If a frame is no label image.
    OutputError
        If the files cannot be written, others are there, or a label does not fit into `dtype`.
    """
    path, movie = as_path(path), labels if isinstance(labels, Movie) else open_labels(labels)
    with signed(path) as spare, label_writer(spare, movie.geometry, dtype=dtype) as write:
        for t in range(movie.n_frames):
            write(label_frame(movie, t))
    return path


@contextmanager
def label_writer(
    path: Path, geometry: Geometry, *, dtype: str = "uint16"
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write label frames one by one, to a TIFF stack, an OME-Zarr (``.zarr``) or a folder.

    They are written under a new name, in a block that puts them in place or removes them.

    Raises
    ------
    InputError
        If a frame, shape ([Z,] Y, X), has the wrong shape or is no label image.
    OutputError
        If the name has the ending of another format, the files cannot be written, a
        label does not fit, or frames are missing at the end.
    """
    if dtype not in ("uint16", "uint32"):
        raise InputError(f"labels are written as uint16 or uint32, not {dtype}")
    form = _FORMS.get(path.suffix.lower(), _masks)
    if form is _masks and path.suffix:
        raise OutputError(
            f"{path}: labels are written as a TIFF stack (a name that ends in .tif), as an "
            "OME-Zarr (.ome.zarr) or as a folder of masks (a name without a dot), not as "
            f"{path.suffix}"
        )
    n = 0

    def write(labels: NDArray[Any]) -> None:
        nonlocal n
        where = f"{path.name}, frame {n}"
        checked = as_labels(np.asarray(labels), where)
        if geometry.shape is not None and checked.shape != geometry.shape:
            raise InputError(
                f"{where}: the frame has shape {checked.shape}, expected {geometry.shape}"
            )
        if checked.max(initial=0) > np.iinfo(dtype).max:
            raise OutputError(
                f"{where}: label {checked.max()} does not fit into {dtype}; write with "
                "dtype='uint32' or renumber the labels"
            )
        with writing(path):
            append(checked.astype(dtype), n)
        n += 1

    with form(path, geometry) as append:
        yield write
    if n != geometry.n_frames:
        raise OutputError(
            f"{path}: {n} frames were given, expected {geometry.n_frames}; nothing was written"
        )


@contextmanager
def _stack(path: Path, geometry: Geometry) -> Iterator[Append]:
    """One compressed TIFF stack with ImageJ's description of axes and scale."""
    n = geometry.n_frames
    size = np.prod([n, *(geometry.shape or ()), 4], dtype=np.float64)
    with writing(path):
        tiff = tifffile.TiffWriter(path, bigtiff=bool(size > _CLASSIC_LIMIT))

    def append(labels: NDArray[Any], t: int) -> None:
        tags = imagej_tags(geometry, n) if t == 0 else {}
        for plane in labels if labels.ndim == 3 else labels[np.newaxis]:
            tiff.write(plane, compression="zlib", metadata=None, photometric="minisblack", **tags)
            tags = {}  # they stand on the first page

    try:
        yield append
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            tiff.close()
        raise
    with writing(path):
        tiff.close()


@contextmanager
def _masks(path: Path, geometry: Geometry) -> Iterator[Append]:
    """A folder with one compressed TIFF per frame, ``mask000.tif`` and so on."""
    digits = max(3, len(str(geometry.n_frames - 1)))
    one = replace(geometry, n_frames=1)
    with writing(path):
        path.mkdir(parents=True)

    def append(labels: NDArray[Any], t: int) -> None:
        with _stack(path / f"mask{t:0{digits}d}.tif", one) as append_plane:
            append_plane(labels, 0)

    yield append


_FORMS = {".tif": _stack, ".tiff": _stack, ".zarr": zarr_frames}


def imagej_tags(geometry: Geometry, n_frames: int) -> dict[str, Any]:
    """Tags of the first page of a stack that tell ImageJ of its axes and scale."""
    n_slices = geometry.shape[0] if geometry.shape is not None and geometry.ndim == 3 else 1
    lines = ["ImageJ=1.11a", f"images={n_frames * n_slices}", f"slices={n_slices}"]
    lines += [f"frames={n_frames}", "hyperstack=true", "mode=grayscale"]
    tags: dict[str, Any] = {}
    if geometry.unit == "micrometer":
        lines.append("unit=um")
        if geometry.ndim == 3:
            lines.append(f"spacing={geometry.scale[0]!r}")
        tags["resolution"] = (1 / geometry.scale[-1], 1 / geometry.scale[-2])
        tags["resolutionunit"] = "NONE"
    if geometry.frame_interval is not None:
        lines.append(f"finterval={geometry.frame_interval * 60!r}")
    return {"description": "\n".join([*lines, ""]), **tags}
