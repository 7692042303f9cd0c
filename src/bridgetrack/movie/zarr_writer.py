"""Label movies as OME-Zarr 0.5, written frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zarr
from numpy.typing import NDArray

from bridgetrack.errors import OutputError
from bridgetrack.files import program_version, writing
from bridgetrack.movie.geometry import Geometry

VERSION = "0.5"
_MARK = "bridgetrack"
_WIDEST = 1024
"""Pixels of a chunk along y and x at most; a chunk holds one plane of one frame."""


@contextmanager
def zarr_frames(
    spare: Path, path: Path, geometry: Geometry
) -> Iterator[Callable[[NDArray[Any], int], None]]:
    """A multiscale image of one level whose pixels are labels, with axes, scale and units."""
    with writing(path):
        group = zarr.create_group(spare, zarr_format=3, attributes=_attributes(path, geometry))
    array: Any = None

    def append(labels: NDArray[Any], t: int) -> None:
        nonlocal array
        if array is None:
            sides = [min(n, _WIDEST) for n in labels.shape[-2:]]
            array = group.create_array(
                "0",
                shape=(geometry.n_frames, *labels.shape),
                chunks=(1,) * (labels.ndim - 1) + tuple(sides),
                dtype=labels.dtype,
                dimension_names=["t", *geometry.axes],
            )
        array[t] = labels

    yield append


def refuse_foreign_zarr(path: Path) -> None:
    """Complain where there is anything but an OME-Zarr that was written here.

    Raises
    ------
    OutputError
        As above.
    """
    if not path.exists():
        return
    try:
        ours = path.is_dir() and _MARK in zarr.open_group(path, mode="r").attrs
    except (OSError, ValueError, KeyError):
        ours = False
    if not ours:
        raise OutputError(f"{path}: what is there was not written by Bridgetrack; choose another")


def _attributes(path: Path, geometry: Geometry) -> dict[str, Any]:
    """What the group says of its pixels."""
    time: dict[str, Any] = {"name": "t", "type": "time"}
    if geometry.frame_interval is not None:
        time["unit"] = "minute"
    space = [{"name": name, "type": "space"} for name in geometry.axes]
    if geometry.unit == "micrometer":
        space = [{**axis, "unit": "micrometer"} for axis in space]
    steps = [float(geometry.frame_interval or 1.0), *map(float, geometry.scale)]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": steps}]}
    image = {"name": path.name.split(".")[0], "axes": [time, *space], "datasets": [level]}
    ome = {"version": VERSION, "multiscales": [image], "image-label": {}}
    return {"ome": ome, _MARK: {"version": program_version()}}
