"""Files of microscopes' own formats, read by bioio where it is installed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dask.array as da

from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.movie.raw import Metadata, RawMovie, minutes

READERS = {
    ".czi": "bioio-czi", ".dv": "bioio-dv", ".r3d": "bioio-dv", ".lif": "bioio-lif",
    ".nd2": "bioio-nd2", ".sldy": "bioio-sldy", ".avi": "bioio-imageio", ".gif": "bioio-imageio",
    ".mp4": "bioio-imageio", ".mov": "bioio-imageio", ".ims": "bioio-bioformats",
    ".oib": "bioio-bioformats", ".oif": "bioio-bioformats", ".vsi": "bioio-bioformats",
}  # fmt: skip
"""Suffixes of formats that bioio has a reader for, and the package of that reader."""


def read_vendor(path: Path, known: str) -> RawMovie:
    """Open a file that bioio can read; pixels are read frame by frame.

    Of several positions the first is opened, and colours are made grey.

    Parameters
    ----------
    path
        The file.
    known
        What can be read without bioio, for the message.

    Raises
    ------
    InputError
        If bioio or its reader of this format is not installed, or the file is damaged.
    """
    package = READERS.get(path.suffix.lower())
    try:
        from bioio import BioImage
    except ImportError:
        if package is None:
            raise InputError(f"{path}: unknown kind of file; give {known}") from None
        raise InputError(
            f"{path}: {path.suffix} files are read by bioio, which is not installed; "
            f"pip install bioio {package}, or save the movie as TIFF"
        ) from None
    try:
        image = BioImage(path)
        data, metadata = _pixels(image), _metadata(image)
    except Exception as error:
        if package is None:
            raise InputError(f"{path}: unknown kind of file; give {known}") from error
        raise InputError(
            f"{path}: bioio cannot read it ({type(error).__name__}); pip install {package} where "
            "that is missing, or save the movie as TIFF"
        ) from error
    if len(image.scenes) > 1:
        warnings.warn(
            f"{path}: holds {len(image.scenes)} positions, of which the first is opened; save "
            "the others as files of their own",
            BridgetrackWarning,
            stacklevel=2,
        )
    return RawMovie(data, metadata)


def _pixels(image: Any) -> da.Array:
    """The pixels as T, C, Z, Y, X; grey where there are colours."""
    if "S" not in image.dims.order:
        return image.get_image_dask_data("TCZYX")
    colours = image.get_image_dask_data("TCZYXS")
    return colours.mean(axis=-1).round().astype(colours.dtype)


def _metadata(image: Any) -> Metadata:
    sizes = image.physical_pixel_sizes
    scale = {axis: getattr(sizes, axis.upper()) for axis in "zyx"}
    interval: Any = getattr(image, "time_interval", None)
    seconds = interval.total_seconds() if hasattr(interval, "total_seconds") else interval
    return Metadata("TCZYX", scale, minutes(seconds, "s"), tuple(map(str, image.channel_names)))
