"""Between layers and movies or tables; layers are recognised by a metadata key, never by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Labels
from numpy.typing import NDArray

from bridgetrack.arrays import Array
from bridgetrack.detections.table import Detections, detections_at
from bridgetrack.errors import InputError
from bridgetrack.movie import Geometry, Movie, open_labels, open_movie
from bridgetrack.movie.movie import as_labels
from bridgetrack.movie.opening import time_seems_last
from bridgetrack.movie.raw import micrometers
from bridgetrack.pipeline.project import Scale

KEY = "bridgetrack"
"""Metadata key of the plugin's notes about a layer."""


def tag(role: str, **more: Any) -> dict[str, Any]:
    """Metadata of a layer with a role, e.g. ``"image"``, ``"labels"``, ``"tracks"``."""
    return {KEY: {"role": role, **more}}


def tags_of(layer: Any) -> dict[str, Any]:
    """Notes of the plugin on a layer; empty for other layers."""
    found = layer.metadata.get(KEY)
    return found if isinstance(found, dict) else {}


def role_of(layer: Any) -> str:
    """Role of a layer, empty for other layers."""
    return str(tags_of(layer).get("role", ""))


def find_role(layers: Iterable[Any], role: str) -> Any | None:
    """The first layer with this role, None if there is none."""
    return next((layer for layer in layers if role_of(layer) == role), None)


def kind_of(layer: Any) -> str:
    """Kind of a layer in lower case: ``"image"``, ``"labels"``, ``"tracks"`` ..."""
    return type(layer).__name__.lower()


def path_of(layer: Any) -> Path | None:
    """File or folder that a layer was read from, None if there is none."""
    path = tags_of(layer).get("path") or getattr(layer.source, "path", None)
    return Path(path) if path else None


def file_of(layer: Any) -> Path | None:
    """As `path_of`, and the file of a sample, beside which nothing is saved."""
    return path_of(layer) or (Path(f) if (f := tags_of(layer).get("file")) else None)


def name_of(layer: Any) -> str:
    """Name of the movie of a layer, if its answers are kept by name."""
    return str(tags_of(layer).get("sample") or layer.name)


def _pixels(layer: Any) -> Any:
    return layer.data[0] if getattr(layer, "multiscale", False) else layer.data


def _axes(layer: Any, what: str) -> str:
    ndim = _pixels(layer).ndim
    if getattr(layer, "rgb", False):
        raise InputError(
            f"{layer.name!r} is a colour picture; choose a layer with one channel of grey values"
        )
    if ndim not in (3, 4):
        raise InputError(
            f"{layer.name!r} has {ndim} axes; {what} needs time, y, x or time, z, y, x"
        )
    return "TZYX" if ndim == 4 else "TYX"


def scale_of(layer: Any) -> tuple[tuple[float, ...], str]:
    """Pixel size of the spatial axes and its unit."""
    scale = tuple(float(s) for s in layer.scale[1:])
    names = [str(u) for u in layer.units[1:]] if layer.units is not None else []
    known = [micrometers(*each) for each in zip(scale, names, strict=False)]
    if names and None not in known:
        return tuple(side for side in known if side is not None), "micrometer"
    # Most people who set a scale mean micrometres and do not set the unit.
    return scale, "pixel" if all(s == 1 for s in scale) else "micrometer"


def whole_numbers(pixels: NDArray[Any], where: str) -> NDArray[Any]:
    """Masks as napari accepts them: integers, also if they were written as another type.

    Raises
    ------
    InputError
        If a pixel is not the number of a cell; the message says which.
    """
    if pixels.dtype.kind != "f":
        return pixels
    labels = as_labels(pixels, where)
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def movie_of(layer: Any) -> Movie:
    """The movie behind an image layer, not copied."""
    return open_movie(_pixels(layer), channels=[str(layer.name)], **_known_of(layer, "an image"))


def labels_of(layer: Any) -> Movie:
    """The label movie behind a Labels layer, not copied; raises as `movie_of`."""
    return open_labels(_pixels(layer), **_known_of(layer, "a segmentation"))


def paintable(layer: Any) -> bool:
    """Whether the pixels of a Labels layer can be changed in place."""
    return isinstance(layer.data, np.ndarray) and bool(layer.data.flags.writeable)


def seems_time_last(layer: Any) -> bool:
    """Whether the last axis of a layer may be time."""
    return time_seems_last(getattr(_pixels(layer), "shape", ()))


def put_time_first(layer: Any) -> None:
    """Make the last axis of a layer the first."""
    scale, units = tuple(layer.scale), tuple(layer.units)
    layer.data = np.moveaxis(layer.data, -1, 0)
    layer.scale, layer.units = (scale[-1], *scale[:-1]), (units[-1], *units[:-1])


def _known_of(layer: Any, what: str) -> dict[str, Any]:
    """Names and sizes of the axes of a layer."""
    scale, unit = scale_of(layer)
    interval = tags_of(layer).get("frame_interval")
    return {"axes": _axes(layer, what), "scale": scale, "unit": unit, "frame_interval": interval}


def placement(geometry: Geometry) -> dict[str, Any]:
    """Scale, units and axis names of a layer drawn in frames and pixels of a movie."""
    unit = "micrometer" if geometry.unit == "micrometer" else "pixel"
    return {
        "scale": (1.0, *geometry.scale),
        "units": ("pixel", *[unit] * geometry.ndim),
        "axis_labels": ("t", *geometry.axes),
    }


def placed_like(layer: Any, *, still: bool = False) -> dict[str, Any]:
    """Scale, place and units of a layer drawn over another, or over a frame of it."""
    axes = slice(1, None) if still else slice(None)
    return {
        "scale": tuple(float(s) for s in layer.scale[axes]),
        "translate": tuple(float(s) for s in layer.translate[axes]),
        "units": tuple(layer.units[axes]),
        "axis_labels": tuple(layer.axis_labels[axes]),
    }


def cells_over(layer: Any, pixels: Any, name: str, role: str = "labels", **tags: Any) -> Labels:
    """A layer with the cells of the movie of another layer."""
    interval = tags_of(layer).get("frame_interval")
    meta = tag(role, frame_interval=interval, **tags)
    return Labels(pixels, name=name, metadata=meta, opacity=0.3, **placed_like(layer))


def place_like(layer: Any, other: Any, *, still: bool = False) -> None:
    """Place a layer like another one; values that are equal are not set, as napari would redraw."""
    for name, value in placed_like(other, still=still).items():
        if tuple(getattr(layer, name)) != value:
            setattr(layer, name, value)


# ---------------------------------------------------------------------- scale


def set_scale(viewer: Any, image: Any, labels: Any, scale: Scale) -> None:
    """Give the layers of a movie a scale; one of them may be None.

    Other channels and layers over the movie keep their place on it.
    """
    shown = [layer for layer in (image, labels) if layer is not None]
    beside = [x for x in viewer.layers if x not in shown and _drawn_on(shown[0], x)]
    for layer in (*shown, *beside):
        axes = [("pixel", 1.0), *((scale.unit, side) for side in scale.pixel)][-layer.ndim :]
        layer.units, layer.scale = zip(*axes, strict=True)
        layer.metadata[KEY] = {**tags_of(layer), "frame_interval": scale.minutes}


def share_scale(image: Any, labels: Any) -> None:
    """Give a movie's layer without a scale that of the other one.

    Masks rarely have one, and would be drawn beside their cells. If both are equal, the masks are
    drawn in the units of the image.
    """
    if image is None or labels is None or labels.ndim != image.ndim:
        return
    extents = [x.extent.data for x in (image, labels)]
    if kind_of(labels) == "labels" and not np.array_equal(*extents):
        return
    for layer, other in ((image, labels), (labels, image)):
        if _unscaled(layer) and not _unscaled(other):
            place_like(layer, other)
            tags, interval = tags_of(layer), tags_of(other).get("frame_interval")
            layer.metadata[KEY] = {**tags, "frame_interval": tags.get("frame_interval") or interval}
    (here, unit), (there, theirs) = scale_of(image), scale_of(labels)
    if role_of(labels) and unit == theirs and all(map(math.isclose, here, there)):
        place_like(labels, image)


def _unscaled(layer: Any) -> bool:
    """Whether the size of a layer's pixels was never set."""
    return set(layer.scale) == {1.0} and {str(unit) for unit in layer.units} == {"pixel"}


def _drawn_on(movie: Any, layer: Any) -> bool:
    """Whether a layer lies on the pixels of a movie's layer, or on those of one of its frames."""
    fewer = movie.ndim - layer.ndim
    if fewer not in (0, 1):
        return False
    here, there = placed_like(layer), placed_like(movie, still=bool(fewer))
    return all(here[name] == there[name] for name in ("scale", "translate", "units"))


# ---------------------------------------------------------------------- in the viewer


def add_below(viewer: Any, layer: Any, *roles: str) -> None:
    """Add a layer below all that have some roles; the active layer stays active."""
    layers, active = viewer.layers, viewer.layers.selection.active
    above = [layers.index(x) for x in layers if role_of(x) in roles]
    layers.insert(min(above, default=len(layers)), layer)
    if active is not None:
        layers.selection.active = active


def camera_of(viewer: Any) -> Any:
    """The camera, which moved to ``viewer.scene`` in napari 0.9."""
    return (viewer.scene if hasattr(viewer, "scene") else viewer).camera


def look_at(viewer: Any, world: Sequence[float]) -> None:
    """Move the view so that a place is in its middle."""
    deep = viewer.dims.ndisplay == 3 and len(world) > 3
    camera_of(viewer).center = (float(world[-3]) if deep else 0.0, *map(float, world[-2:]))


def mark_of(image: Any) -> str:
    """Identity of a movie: its file, which its channels share, or else its name."""
    return str(path_of(image) or name_of(image))


# ---------------------------------------------------------------------- points

LayerData = tuple[Any, dict[str, Any], str]
ROLE = "detections"
FOUND = "found so far"
"""The role of a layer with the frames that a search has found."""

IMPORTED = "imported tracks"
"""The role of layers with tracks of other programs."""


def points_data(detections: Detections, name: str, path: Path, **more: Any) -> LayerData:
    """Detections as the data of a Points layer, positions in pixels."""
    geometry, table = detections.geometry, detections.table
    own = {"path": str(path), "frame_interval": geometry.frame_interval}
    extent = {"n_frames": geometry.n_frames, "shape": geometry.shape}
    options = {
        "name": name,
        "metadata": tag(ROLE, **own, **extent, **more),
        "features": {"label": detections.label, "area": table["area"].to_numpy(np.float64)},
        "size": 6, "face_color": "transparent", "border_color": "#ffffff", "border_width": 0.2,
        **placement(geometry),
    }  # fmt: skip
    return table[["frame", *geometry.axes]].to_numpy(np.float64), options, "points"


def is_points(layer: Any) -> bool:
    """Whether a layer holds points."""
    return kind_of(layer) == "points"


def detections_of(layer: Any, image: Movie | None = None) -> Detections:
    """The table behind a Points layer whose axes are time, [z,] y, x."""
    data = np.asarray(layer.data, dtype=np.float64)
    if data.shape[1] not in (3, 4):
        raise InputError(
            f"{layer.name!r} has points with {data.shape[1]} axes; cells given as points need "
            "time, y, x or time, z, y, x"
        )
    if not len(data):
        raise InputError(f"{layer.name!r} has no points; put one on every cell in every frame")
    geometry = _geometry(layer, data, image)
    frame = np.round(data[:, 0]).astype(np.int64)
    if frame.min() < 0 or frame.max() >= geometry.n_frames:
        raise InputError(
            f"{layer.name!r} has points in frames {frame.min()} to {frame.max()}, but the movie "
            f"has frames 0 to {geometry.n_frames - 1}"
        )
    known = {
        name: pd.to_numeric(layer.features[name], errors="coerce").to_numpy(np.float64)
        for name in ("label", "area")
        if name in layer.features
    }
    return detections_at(frame, data[:, 1:], geometry, **known)


def _geometry(layer: Any, data: Array, image: Movie | None) -> Geometry:
    """Extent of the image if there is one, else of the layer."""
    if image is not None:
        if image.geometry.ndim != data.shape[1] - 1:
            raise InputError(
                f"{layer.name!r} has points in {data.shape[1] - 1} dimensions of space, the image "
                f"has {image.geometry.ndim}"
            )
        return image.geometry
    tags = tags_of(layer)
    scale, unit = scale_of(layer)
    last = int(np.round(data[:, 0].max())) + 1
    shape = tags.get("shape")
    interval = tags.get("frame_interval")
    n_frames = max(last, int(tags.get("n_frames") or 0))
    return Geometry(n_frames, None if shape is None else tuple(shape), scale, unit, interval)
