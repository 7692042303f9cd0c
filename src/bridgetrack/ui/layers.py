"""Between layers and movies; layers are recognised by a metadata key, never by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bridgetrack.errors import InputError
from bridgetrack.movie import Geometry, Movie, open_labels, open_movie

KEY = "bridgetrack"
"""Metadata key under which the plugin keeps what it knows of a layer."""

_MICROMETRES = {"micrometer": 1.0, "micron": 1.0, "nanometer": 1e-3, "millimeter": 1e3}


def tag(role: str, **more: Any) -> dict[str, Any]:
    """Metadata of a layer with a role, e.g. ``"image"``, ``"labels"``, ``"tracks"``."""
    return {KEY: {"role": role, **more}}


def tags_of(layer: Any) -> dict[str, Any]:
    """What the plugin noted on a layer; empty for layers of others."""
    found = layer.metadata.get(KEY)
    return found if isinstance(found, dict) else {}


def role_of(layer: Any) -> str:
    """Role of a layer, empty for layers of others."""
    return str(tags_of(layer).get("role", ""))


def find_role(layers: Iterable[Any], role: str) -> Any | None:
    """The first layer with this role, None where there is none."""
    return next((layer for layer in layers if role_of(layer) == role), None)


def kind_of(layer: Any) -> str:
    """Kind of a layer in lower case: ``"image"``, ``"labels"``, ``"tracks"`` ..."""
    return str(layer.as_layer_data_tuple()[2]) if hasattr(layer, "as_layer_data_tuple") else ""


def path_of(layer: Any) -> Path | None:
    """File or folder that a layer was read from, None where there is none."""
    path = tags_of(layer).get("path") or getattr(layer.source, "path", None)
    return Path(path) if path else None


def file_of(layer: Any) -> Path | None:
    """As `path_of`, and the file of a sample, beside which nothing is kept."""
    return path_of(layer) or (Path(f) if (f := tags_of(layer).get("file")) else None)


def _pixels(layer: Any) -> Any:
    """The full-size array of a layer."""
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
    factors = [_MICROMETRES.get(n) for n in names]
    if names and all(f is not None for f in factors):
        return tuple(s * float(f or 1) for s, f in zip(scale, factors, strict=True)), "micrometer"
    # Most people who set a scale mean micrometres and leave the unit alone.
    return scale, "pixel" if all(s == 1 for s in scale) else "micrometer"


def movie_of(layer: Any) -> Movie:
    """The movie behind an image layer, not copied.

    Raises
    ------
    InputError
        Where the layer has no time axis or is a colour picture.
    """
    return open_movie(_pixels(layer), channels=[str(layer.name)], **_known_of(layer, "an image"))


def labels_of(layer: Any) -> Movie:
    """The label movie behind a Labels layer, not copied; raises as `movie_of`."""
    return open_labels(_pixels(layer), **_known_of(layer, "a segmentation"))


def _known_of(layer: Any, what: str) -> dict[str, Any]:
    """What a layer tells of its axes."""
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


def placed_like(layer: Any, *, plane: bool = False) -> dict[str, Any]:
    """Scale, place and units of a layer drawn over another, or over its planes."""
    axes = slice(-2, None) if plane else slice(None)
    return {
        "scale": tuple(float(s) for s in layer.scale[axes]),
        "translate": tuple(float(s) for s in layer.translate[axes]),
        "units": tuple(layer.units[axes]),
        "axis_labels": tuple(layer.axis_labels[axes]),
    }


def camera_of(viewer: Any) -> Any:
    """The camera, which moved to ``viewer.scene`` in napari 0.9."""
    return (viewer.scene if hasattr(viewer, "scene") else viewer).camera
