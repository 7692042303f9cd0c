"""Scale, frame interval, channels and axes from ImageJ's and OME's TIFF metadata."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile

from bridgetrack.movie.metadata import Metadata, micrometers, minutes, spatial


def tiff_metadata(file: tifffile.TiffFile) -> Metadata:
    """What a TIFF file says of itself.

    The resolution tags of plain TIFFs are ignored, because most programs fill them with a
    screen's resolution.
    """
    if file.is_ome and file.ome_metadata:
        return ome_metadata(file.ome_metadata)
    if file.is_imagej and file.imagej_metadata:
        return _imagej_metadata(file.imagej_metadata, file.pages[0])
    return Metadata()


def ome_metadata(text: str) -> Metadata:
    """Metadata from the first image of an OME-XML document.

    References
    ----------
    The attributes ``PhysicalSize[XYZ]``, their ``Unit`` (default micrometre), ``TimeIncrement``
    (default second) and ``DeltaT`` are those of the OME schema 2016-06.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return Metadata()
    pixels = root.find(".//{*}Pixels")
    if pixels is None:
        return Metadata()
    sizes = {a.lower(): _ome_size(pixels, a) for a in "ZYX"}
    channels = tuple(c.get("Name") or "" for c in pixels.findall("{*}Channel"))
    return Metadata(
        scale=spatial(**sizes),
        frame_interval=_ome_interval(pixels),
        channels=channels if any(channels) else (),
    )


def _ome_size(pixels: ElementTree.Element, axis: str) -> float | None:
    unit = pixels.get(f"PhysicalSize{axis}Unit", "um")
    return micrometers(pixels.get(f"PhysicalSize{axis}"), unit)


def _ome_interval(pixels: ElementTree.Element) -> float | None:
    stated = minutes(pixels.get("TimeIncrement"), pixels.get("TimeIncrementUnit", "s"))
    if stated is not None:
        return stated
    times: dict[int, float] = {}
    unit = "s"
    for plane in pixels.findall("{*}Plane"):
        delta = plane.get("DeltaT")
        if delta is not None and plane.get("TheC", "0") == plane.get("TheZ", "0") == "0":
            times[int(plane.get("TheT", "0"))] = float(delta)
            unit = plane.get("DeltaTUnit", "s")
    if len(times) < 2:
        return None
    frames = sorted(times)
    steps = np.diff([times[t] for t in frames]) / np.diff(frames)
    return minutes(float(np.median(steps)), unit)


def _imagej_metadata(found: dict[str, Any], page: Any) -> Metadata:
    unit = found.get("unit", "")
    sizes = {
        "z": micrometers(found.get("spacing"), found.get("zunit", unit)),
        "y": micrometers(_pixel_size(page, "YResolution"), found.get("yunit", unit)),
        "x": micrometers(_pixel_size(page, "XResolution"), unit),
    }
    labels = found.get("Labels") or []
    n_channels = int(found.get("channels", 1))
    return Metadata(
        scale=spatial(**sizes),
        frame_interval=minutes(found.get("finterval"), found.get("tunit", "s")),
        channels=tuple(str(name) for name in labels[:n_channels]) if n_channels > 1 else (),
    )


def _pixel_size(page: Any, tag: str) -> float | None:
    """Units per pixel; the tag holds pixels per unit as a fraction."""
    value = page.tags.get(tag)
    if value is None:
        return None
    pixels, units = value.value
    return float(units) / float(pixels) if pixels else None
