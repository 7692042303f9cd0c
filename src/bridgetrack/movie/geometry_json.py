"""A geometry as the JSON values that files of this program hold."""

from __future__ import annotations

from typing import Any

from bridgetrack.movie.geometry import Geometry


def geometry_to_json(geometry: Geometry) -> dict[str, Any]:
    """A geometry as plain values."""
    return {
        "n_frames": geometry.n_frames,
        "shape": None if geometry.shape is None else list(geometry.shape),
        "scale": list(geometry.scale),
        "unit": geometry.unit,
        "frame_interval": geometry.frame_interval,
    }


def geometry_from_json(data: dict[str, Any]) -> Geometry:
    """The geometry of `geometry_to_json`; KeyError, TypeError or ValueError where it is not."""
    shape, interval = data["shape"], data["frame_interval"]
    return Geometry(
        n_frames=int(data["n_frames"]),
        shape=None if shape is None else tuple(int(n) for n in shape),
        scale=tuple(float(s) for s in data["scale"]),
        unit=str(data["unit"]),
        frame_interval=None if interval is None else float(interval),
    )
