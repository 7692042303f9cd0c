"""OME-Zarr images and plain zarr arrays, read lazily; label movies as OME-Zarr, by frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from bridgetrack.errors import InputError, warn
from bridgetrack.files import ZARR_MARKS, in_one_go, program_version, writing
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.raw import ORDER, RawMovie, Sliced, micrometers, minutes

_VERSION = "0.5"
_MARK = "bridgetrack"
_WIDEST = 1024
"""Pixels of a chunk along y and x at most; a chunk holds one plane of one frame."""


def is_zarr(path: Path) -> bool:
    """Whether a folder is a zarr array or group."""
    return path.is_dir() and any((path / mark).is_file() for mark in ZARR_MARKS)


def read_zarr(path: Path, *, labels: bool = False) -> RawMovie:
    """Open a zarr folder as a movie.

    An OME-Zarr image (0.1 to 0.5; its finest level), a zarr array, or a group with one array;
    with `labels` the image's label movie (its ``labels`` group) where it has one.
    """
    node = zarr.open(path, mode="r")
    if labels and isinstance(node, zarr.Group):
        node = _labels_of(node, path)
    if isinstance(node, zarr.Group) and "0" in node and not _multiscales(node):
        node = _only_image(node, path)
    found = _multiscales(node) if isinstance(node, zarr.Group) else None
    if found:
        return _ome_image(node, found, path)
    array = node if isinstance(node, zarr.Array) else _only_array(node, path)
    check_chunks(array, path, every=False)
    return RawMovie(Sliced(array, path), _named_axes(array))


def _attributes(node: Any) -> Mapping[str, Any]:
    """OME attributes: under ``ome`` since version 0.5, at the top before."""
    attributes = dict(node.attrs)
    inner = attributes.get("ome")
    return inner if isinstance(inner, Mapping) else attributes


def _multiscales(node: Any) -> Any:
    return _attributes(node).get("multiscales")


def _labels_of(group: Any, path: Path) -> Any:
    if "labels" not in group:
        return group
    names = sorted(group["labels"].keys())
    if len(names) != 1:
        raise InputError(
            f"{path}: the image has {len(names)} label movies ({', '.join(names[:6])}); "
            f"open one of them, e.g. {path / 'labels' / (names[0] if names else 'NAME')}"
        )
    return group["labels"][names[0]]


def _only_image(group: Any, path: Path) -> Any:
    """The only series of a group of images, as bioformats2raw writes them."""
    named = [name for name, child in group.groups() if name.isdigit() and _multiscales(child)]
    if len(named) > 1:
        raise InputError(
            f"{path}: holds {len(named)} images (positions); open one of them, e.g. {path / '0'}"
        )
    return group[named[0]] if named else group


def _only_array(group: Any, path: Path) -> Any:
    arrays = {name: child for name, child in group.members() if isinstance(child, zarr.Array)}
    if len(arrays) != 1:
        inside = ", ".join(sorted(str(n) for n, _ in group.members())[:6]) or "nothing"
        raise InputError(
            f"{path}: the zarr group is not an OME-Zarr image and holds {len(arrays)} arrays; open "
            f"one array or image inside it ({inside})"
        )
    return next(iter(arrays.values()))


def _named_axes(array: Any) -> str | None:
    """Axis letters from the dimension names of zarr 3 or xarray, where all are known."""
    names = getattr(array.metadata, "dimension_names", None)
    names = names or array.attrs.get("_ARRAY_DIMENSIONS")
    return _letters(names) if names else None


def _letters(names: Any) -> str | None:
    letters = "".join(str(name)[:1].upper() for name in names)
    known = set(letters) <= set(ORDER) and len(set(letters)) == len(letters)
    return letters if known and {"Y", "X"} <= set(letters) else None


def check_chunks(array: Any, path: Path, *, every: bool) -> None:
    """Refuse missing chunks if `every` one was written; else warn, as some programs omit empty
    ones."""
    missing = array.nchunks - array.nchunks_initialized
    if not missing:
        return
    said = f"{path}: {missing} of {array.nchunks} chunks are missing"
    if every:
        raise InputError(f"{said}; copy it again, or take it from a backup")
    warn(
        f"{said} and are read as {array.fill_value}; if they are not empty, the store was "
        "damaged: copy it again"
    )


def _ome_image(group: Any, multiscales: Any, path: Path) -> RawMovie:
    image = multiscales[0]
    level = image["datasets"][0]
    array = group[level["path"]]
    own = group.attrs.get(_MARK)
    check_chunks(array, path, every=isinstance(own, Mapping) and bool(own.get("every_chunk")))
    axes = [a if isinstance(a, Mapping) else {"name": a} for a in image.get("axes", [])]
    if not axes:  # versions before 0.3 have no axes; they are always these five
        axes = [{"name": a} for a in "tczyx"[-array.ndim :]]
    steps = _steps(image, len(axes)) * _steps(level, len(axes))
    units = {a["name"]: (s, a.get("unit")) for a, s in zip(axes, steps, strict=True)}
    return RawMovie(
        Sliced(array, str(group.store_path)),
        axes=_letters([a["name"] for a in axes]),
        scale={name: micrometers(*units[name]) for name in "zyx" if name in units},
        frame_interval=minutes(*units["t"]) if "t" in units else None,
        channels=_channel_names(group),
    )


def _steps(item: Mapping[str, Any], ndim: int) -> Any:
    """Product of the scale transformations of a level or of the whole image."""
    steps = np.ones(ndim)
    for transformation in item.get("coordinateTransformations") or []:
        if transformation.get("type") == "scale":
            steps = steps * np.asarray(transformation["scale"], dtype=np.float64)
    return steps


def _channel_names(group: Any) -> tuple[str, ...]:
    channels = (_attributes(group).get("omero") or {}).get("channels") or []
    names = tuple(str(c.get("label", "")) for c in channels)
    return names if any(names) else ()


# ---------------------------------------------------------------------- written


@contextmanager
def zarr_frames(path: Path, geometry: Geometry) -> Iterator[Callable[[NDArray[Any], int], None]]:
    """A multiscale image of one level whose pixels are labels, with axes, scale and units."""
    with writing(path):
        group = zarr.create_group(path, zarr_format=3, attributes=_label_attributes(path, geometry))
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
                config={"write_empty_chunks": True},
            )
        in_one_go(array.__setitem__, t, labels)

    yield append


def _label_attributes(path: Path, geometry: Geometry) -> dict[str, Any]:
    """Attributes of the group: axes, scale and units."""
    time: dict[str, Any] = {"name": "t", "type": "time"}
    if geometry.frame_interval is not None:
        time["unit"] = "minute"
    space = [{"name": name, "type": "space"} for name in geometry.axes]
    if geometry.unit == "micrometer":
        space = [{**axis, "unit": "micrometer"} for axis in space]
    steps = [float(geometry.frame_interval or 1.0), *map(float, geometry.scale)]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": steps}]}
    image = {"name": path.name.split(".")[0], "axes": [time, *space], "datasets": [level]}
    ome = {"version": _VERSION, "multiscales": [image], "image-label": {}}
    return {"ome": ome, _MARK: {"version": program_version(), "every_chunk": True}}
