"""Open a movie from a file, a folder, a pattern or an array."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.errors import InputError, warn
from bridgetrack.files import ZARR_MARKS, as_path
from bridgetrack.movie.folder import read_folder
from bridgetrack.movie.geometry import Geometry, check_scale
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.raw import ORDER, RawMovie, Sliced, check_axes, minutes, reading
from bridgetrack.movie.tiff import is_tiff, one_frame, read_tiff
from bridgetrack.movie.zarr_store import is_zarr, read_zarr

_GUESSES = {2: "YX", 3: "TYX", 4: "TZYX", 5: "TCZYX"}
"""Axis orders of arrays without metadata, by the number of their axes."""
_WIDE = 16
"""Extent in y and x from which a last axis of three or four is taken for colours."""

_KNOWN_TYPES = "a TIFF stack, a folder of TIFFs, an OME-TIFF, an OME-Zarr or zarr folder, or .npy"


def open_movie(
    source: Any,
    *,
    axes: str | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    channel: int | str | None = None,
    channels: Sequence[str] | None = None,
) -> Movie:
    """Open a movie without reading its pixels.

    Arguments take precedence over the metadata of the file. Without either, the axes are taken to
    be TYX, TZYX or TCZYX, pixels are the unit, and the frame interval is unknown.

    Parameters
    ----------
    source
        Path of a TIFF stack (plain, ImageJ, OME), of a folder with one TIFF per frame in the
        natural order of names, of an OME-Zarr image or a zarr array, of a .npy file; a pattern
        such as ``01/t*.tif``; or an array (numpy, dask). Other files are read by bioio where it and
        its reader of that format are installed.
    axes
        Axis order of the source, letters from TCZYX, e.g. ``"TCYX"``.
    scale
        Pixel size per spatial axis, (y, x) or (z, y, x), in `unit`.
    unit
        ``"micrometer"`` (default where a scale is known) or ``"pixel"``.
    frame_interval
        Minutes between two frames.
    channel
        Number or name of the one channel to keep; all by default.
    channels
        Names of the channels.

    Returns
    -------
    Movie
        Lazy, shape (T, C, [Z,] Y, X), one chunk per frame and channel. A Z axis of length one
        is dropped.

    Raises
    ------
    InputError
        If the source cannot be read or is no movie.
    """
    return _open(source, False, axes, scale, unit, frame_interval, channel, channels)


def open_labels(
    source: Any,
    *,
    axes: str | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    frame_interval: float | None = None,
    channel: int | str | None = None,
) -> Movie:
    """Open a label movie: one channel whose pixels are cell numbers, 0 for background.

    The pixels are checked when a frame is loaded by `label_frame`.

    Parameters
    ----------
    source, axes, scale, unit, frame_interval, channel
        As for `open_movie`. For an OME-Zarr image its label movie is taken.

    Returns
    -------
    Movie
        Lazy, shape (T, 1, [Z,] Y, X).

    Raises
    ------
    InputError
        If the source cannot be read, or has several channels and `channel` is not given.
    """
    movie = _open(source, True, axes, scale, unit, frame_interval, channel)
    if len(movie.channels) != 1:
        raise InputError(
            f"{movie.source}: a label movie has one channel, this one has {len(movie.channels)}; "
            "save the channel with the labels by itself, or say the axis order if that axis is "
            "not channels (--axes, e.g. TZYX); a colour picture is not a label movie"
        )
    return movie


def _open(
    source: Any,
    labels: bool,
    axes: str | None,
    scale: Sequence[float] | None,
    unit: str | None,
    frame_interval: float | None,
    channel: int | str | None,
    channels: Sequence[str] | None = None,
) -> Movie:
    """Open a movie as `open_movie` does, or the label movie of an OME-Zarr image."""
    raw, name = _read(source, labels=labels)
    check_scale(scale)
    axes = _axes(raw, axes, name)
    if raw.data.dtype.kind not in "buif":
        raise InputError(f"{name}: pixels of type {raw.data.dtype} are not numbers")
    array = raw.in_order(axes)
    if 0 in array.shape:
        raise InputError(f"{name}: the movie has no pixels: its shape is {array.shape}")
    if scale is not None and len(scale) == 3 and "Z" in axes and array.ndim == 4:
        scale = scale[1:]
    names = _channel_names(channels or raw.channels, array.shape[1], name)
    geometry = _geometry(array.shape, raw, scale, unit, frame_interval)
    movie = Movie(array, geometry, names, name)
    if channel is None:
        return movie
    k = movie.channel_number(channel)
    return replace(movie, array=array[:, k : k + 1], channels=(names[k],))


def _read(source: Any, *, labels: bool) -> tuple[RawMovie, str]:
    if isinstance(source, Movie):
        known = source.geometry
        axes = f"TC{''.join(known.axes).upper()}"
        scale: dict[str, float | None] = dict(zip(known.axes, known.scale, strict=True))
        said = (axes, scale, known.frame_interval, source.channels, known.unit)
        return RawMovie(source.array, *said), source.source
    if isinstance(source, pd.DataFrame):
        raise InputError(
            "a table in memory is not a movie; give the path of its CSV file, or what "
            "bt.read_detections_csv makes of that"
        )
    if not isinstance(source, str | os.PathLike):
        return _read_array(source), "array"
    path = as_path(source)
    with reading(path):
        return _read_path(path, labels=labels), str(source)


def _read_array(source: Any) -> RawMovie:
    """An array (numpy, dask, zarr, or anything that can be sliced) as a movie.

    A numpy array is not copied: later changes of its pixels show in the movie.
    """
    if not (hasattr(source, "shape") and hasattr(source, "dtype")):
        with reading("the array"):
            source = np.asarray(source)
    if 0 in source.shape:
        raise InputError(f"the array has no pixels: its shape is {tuple(source.shape)}")
    return RawMovie(Sliced(source, "the array") if isinstance(source, np.ndarray) else source)


def _read_path(path: Path, *, labels: bool) -> RawMovie:
    if "*" in path.name and not path.exists():
        return read_folder(path.parent, path.name, labels=labels)
    if not path.exists():
        raise FileNotFoundError
    if is_zarr(path):
        return read_zarr(path, labels=labels)
    if path.is_dir():
        return read_folder(path, labels=labels)
    if path.suffix.lower() == ".npy":  # mapped into memory; pickled objects are refused
        return RawMovie(Sliced(np.load(path, mmap_mode="r", allow_pickle=False), path))
    if is_tiff(path):
        return read_tiff(path)
    return _read_vendor(path)


def _read_vendor(path: Path) -> RawMovie:
    """Open a file of a microscope's own format by bioio, where it is installed, frame by frame.

    Of several positions the first is opened, and colours are made grey.
    """
    try:
        from bioio import BioImage

        image = BioImage(path)
        colours = "S" in image.dims.order
        data = image.get_image_dask_data("TCZYXS" if colours else "TCZYX")
        sizes, interval = image.physical_pixel_sizes, getattr(image, "time_interval", None)
        names, positions = tuple(map(str, image.channel_names)), len(image.scenes)
    except Exception as error:  # its readers raise anything
        raise InputError(
            f"{path}: unknown kind of file; give {_KNOWN_TYPES}; files of microscopes are read by "
            "bioio and its reader of the format: pip install bioio bioio-nd2 (or bioio-czi, "
            f"bioio-lif, ...); here: {error}"
        ) from error
    if positions > 1:
        warn(
            f"{path}: holds {positions} positions, of which the first is opened; save the others "
            "as files of their own"
        )
    if colours:
        data = data.mean(axis=-1).round().astype(data.dtype)
    scale = {axis: getattr(sizes, axis.upper()) for axis in "zyx"}
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    return RawMovie(data, "TCZYX", scale, minutes(seconds, "s"), names)


def _axes(raw: RawMovie, given: str | None, name: str) -> str:
    ndim = len(raw.data.shape)
    if given is not None:
        given = given.upper()
        if "T" not in given and len(given) < ndim:
            given = "T" + given
        if (raw.axes or "").startswith("TC") and "C" not in given and len(given) < ndim:
            given = f"TC{given[1:]}"  # of a folder with a file for every frame
        return check_axes(given, ndim, name)
    axes = raw.axes
    if axes is None or len(axes) != ndim:
        _refuse_colours(raw.data.shape, name)
        if ndim not in _GUESSES:
            raise InputError(
                f"{name}: an array with {ndim} axes is not a movie; expected 2 to 5 axes out of "
                f"{ORDER} (--axes or --image-axes says their order)"
            )
        axes = _GUESSES[ndim]
    if axes == "TYX" and time_seems_last(raw.data.shape):
        frames, *space = raw.data.shape
        warn(
            f"{name}: {frames} frames of {space[0]} x {space[1]} pixels; if the last axis is time, "
            "say so: --axes YXT (for an image beside labels --image-axes)"
        )
    if "T" not in axes and "Z" in axes and raw.data.shape[axes.index("Z")] > 1:
        warn(
            f"{name}: the file names a Z axis but no time; the Z axis is taken as time "
            f"(say the axis order {axes} if this is one 3D frame: --axes or --image-axes)"
        )
        return axes.replace("Z", "T")
    return axes


def _refuse_colours(shape: tuple[int, ...], name: str) -> None:
    """Refuse to guess that a last axis of three or four colours is space."""
    if len(shape) >= 3 and shape[-1] in (3, 4) and min(shape[-3:-1]) >= _WIDE:
        said = {3: "YXC", 4: "TYXC"}.get(len(shape), "TZYXC")
        raise InputError(
            f"{name}: the shape {tuple(shape)} ends in {shape[-1]}, which looks like the colours "
            f"of RGB pictures; say the axis order, e.g. {said} (--axes, for an image beside labels "
            "--image-axes)"
        )


def time_seems_last(shape: Sequence[int]) -> bool:
    """Whether the last of three axes is so short beside the others that it may be time."""
    return len(shape) == 3 and 1 < 4 * shape[-1] <= min(shape[:2])


def _channel_names(names: Sequence[str], n: int, source: str) -> tuple[str, ...]:
    if names and len(names) != n:
        raise InputError(f"{source}: {len(names)} channel names were given for {n} channels")
    if len(set(names)) != len(names):
        names = ()
    return tuple(name or f"channel {i}" for i, name in enumerate(names or [""] * n))


def _geometry(
    shape: tuple[int, ...],
    raw: RawMovie,
    scale: Sequence[float] | None,
    unit: str | None,
    interval: float | None,
) -> Geometry:
    """Geometry of an array of shape (T, C, [Z,] Y, X), from the arguments or else the source."""
    n_frames, _, *extent = (int(n) for n in shape)
    if unit not in (None, "pixel", "micrometer"):
        raise InputError(f"the unit must be 'micrometer' or 'pixel', not {unit!r}")
    known = "micrometer"
    if scale is None and unit in (None, raw.unit):
        scale, known = raw.spatial_scale(("z", "y", "x")[-len(extent) :]), raw.unit
    return Geometry(
        n_frames=n_frames,
        shape=tuple(extent),
        scale=tuple(float(s) for s in scale) if scale is not None else (1.0,) * len(extent),
        unit=unit or ("pixel" if scale is None else known),
        frame_interval=raw.frame_interval if interval is None else interval,
    )


def scale_of(known: Any) -> dict[str, Any]:
    """Scale, unit and interval of a geometry, or of options, as `open_movie` takes them."""
    return {name: getattr(known, name) for name in ("scale", "unit", "frame_interval")}


def scaled_like(labels: Movie, image: Movie) -> Movie:
    """Masks with the scale of their image, as files of masks rarely have one."""
    here, there = labels.geometry, image.geometry
    if here.unit != "pixel" or here.ndim != there.ndim:
        return labels
    interval = here.frame_interval or there.frame_interval
    return open_labels(labels, scale=there.scale, unit=there.unit, frame_interval=interval)


def movie_path(chosen: Path) -> Path:
    """The path for `open_movie` where a dialog can choose files only.

    This is the folder for a file inside a zarr or for one of several frames, otherwise the file.
    """
    if chosen.name in ZARR_MARKS:
        return chosen.parent
    if chosen.is_dir() or not is_tiff(chosen):
        return chosen
    beside = [p for p in chosen.parent.iterdir() if is_tiff(p)]
    if len(beside) > 1 and one_frame(chosen) and all(one_frame(p) for p in beside[:3]):
        return chosen.parent
    return chosen
