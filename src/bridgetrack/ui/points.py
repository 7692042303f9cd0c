"""Between Points layers and tables of centroids: cells that have no masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.movie import Geometry, Movie
from bridgetrack.ui.layers import kind_of, placement, scale_of, tag, tags_of

LayerData = tuple[Any, dict[str, Any], str]
ROLE = "detections"


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
    """The table behind a Points layer whose axes are time, [z,] y, x.

    Raises
    ------
    InputError
        Where it has no points, or other axes, or points outside the movie.
    """
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
    table = pd.DataFrame({"frame": frame, "label": _labels(layer, frame)})
    for axis, values in zip(geometry.axes, data[:, 1:].T, strict=True):
        table[axis] = values
    table["area"] = _areas(layer)
    table = table.sort_values(["frame", "label"], kind="stable", ignore_index=True)
    if geometry.shape is not None:
        table["border_distance"] = _border_distance(table, geometry)
    return Detections(table, geometry, has_masks=False)


def _geometry(layer: Any, data: NDArray[np.float64], image: Movie | None) -> Geometry:
    """Extent of the image where there is one, else what the layer says of itself."""
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


def _labels(layer: Any, frame: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of the layer, with new numbers for points that have none or one that is taken."""
    given = layer.features.get("label")
    label = np.zeros(len(frame), dtype=np.int64)
    if given is not None:
        known = pd.to_numeric(given, errors="coerce").fillna(0).to_numpy(dtype=np.int64)
        first = ~pd.DataFrame({"frame": frame, "label": known}).duplicated().to_numpy()
        label = np.where(first & (known > 0), known, 0)
    missing = np.flatnonzero(label == 0)
    label[missing] = int(label.max(initial=0)) + 1 + np.arange(len(missing))
    return label


def _areas(layer: Any) -> NDArray[np.float64]:
    """Areas of the layer; 1 where unknown."""
    given = layer.features.get("area")
    if given is None:
        return np.ones(len(layer.data))
    area = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64)
    return np.where(np.isfinite(area) & (area > 0), area, 1.0)


def _border_distance(table: pd.DataFrame, geometry: Geometry) -> NDArray[np.float64]:
    pixels = table[list(geometry.axes)].to_numpy(dtype=np.float64)
    far = np.asarray(geometry.shape, dtype=np.float64) - 1 - pixels
    gaps = np.minimum(pixels, far) * np.asarray(geometry.scale)
    return np.asarray(np.maximum(gaps.min(axis=1), 0.0))
