"""A movie: frames that are loaded when they are needed, and checked where they are labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from skimage.measure import label, regionprops_table

from bridgetrack.arrays import Index, Mask
from bridgetrack.errors import InputError, plural, warn
from bridgetrack.movie.geometry import Geometry

_HIGHEST = 2**32 - 1


def pixels_of(array: da.Array) -> NDArray[Any]:
    """Read a lazy part of a movie, in the calling thread where it is a single chunk."""
    # napari's cache of dask results fails with a KeyError where two threads compute at once.
    how: dict[str, Any] = {"callbacks": ()}
    if array.npartitions == 1:
        # Handing a chunk to a thread and back takes longer than reading a small one.
        how["scheduler"] = "synchronous"
    return np.asarray(array.compute(**how))


@dataclass(frozen=True)
class Movie:
    """A time-lapse, lazily loaded.

    Parameters
    ----------
    array
        Dask array of shape (T, C, Y, X) or (T, C, Z, Y, X), one chunk per frame and channel or
        smaller; label movies have one channel.
    geometry
        Extent, scale and units; ``geometry.shape`` is the spatial shape of `array`.
    channels
        One name per channel.
    source
        Where the movie came from, for messages and provenance.
    """

    array: da.Array
    geometry: Geometry
    channels: tuple[str, ...]
    source: str = "array"

    def __post_init__(self) -> None:
        expected = (self.geometry.n_frames, len(self.channels), *(self.geometry.shape or ()))
        if tuple(self.array.shape) != expected:
            raise InputError(
                f"{self.source}: the array has shape {tuple(self.array.shape)}, "
                f"expected (time, channel, space) = {expected}"
            )

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return self.geometry.n_frames

    def frame(self, t: int) -> NDArray[Any]:
        """Pixels of frame `t`, all channels, shape (C, [Z,] Y, X)."""
        return self._told(pixels_of(self.array[t]))

    def channel_frame(self, t: int, channel: int = 0) -> NDArray[Any]:
        """Pixels of one channel of frame `t`, shape ([Z,] Y, X)."""
        return self._told(pixels_of(self.array[t, channel]))

    def _told(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """The pixels; warns if some are not numbers, in the same words for all frames."""
        if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
            warn(
                f"{self.source}: pixels are NaN or infinite in some frames, and are taken as "
                "background; check whether these frames are damaged or were never recorded"
            )
        return pixels

    def channel_number(self, channel: int | str) -> int:
        """Number of a channel given by number or name.

        Raises
        ------
        InputError
            If there is no such channel.
        """
        if isinstance(channel, str):
            if channel in self.channels:
                return self.channels.index(channel)
        elif 0 <= channel < len(self.channels):
            return int(channel)
        known = plural(len(self.channels), "channel")
        raise InputError(
            f"{self.source}: there is no channel {channel!r}; the movie has {known}, counted from "
            f"0: {', '.join(self.channels)}"
        )


class LazyFrames:
    """Frames of labels that are made when they are looked at, as dask and napari read them.

    Parameters
    ----------
    shape, dtype
        Of all frames, time first.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype(dtype)

    def frame(self, t: int) -> NDArray[Any]:
        """One frame."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> NDArray[Any]:
        times, *rest = key if isinstance(key, tuple) else (key,)
        if not isinstance(times, slice):
            return np.asarray(self.frame(int(times))[tuple(rest)])
        frames = [self.frame(t)[tuple(rest)] for t in range(*times.indices(self.shape[0]))]
        return np.stack(frames) if frames else np.zeros((0, *self.shape[1:]), self.dtype)


class EditedFrames(LazyFrames):
    """Frames of a label movie, some of them changed in memory.

    Attributes
    ----------
    movie
        The movie with all changes, also those that are made later.
    """

    def __init__(self, movie: Movie) -> None:
        super().__init__(movie.array.shape, movie.array.dtype)
        self._array = movie.array
        self._changed: dict[int, NDArray[Any]] = {}
        chunks = tuple((1,) * n if k < 2 else (n,) for k, n in enumerate(self.shape))
        array = da.from_array(self, chunks=chunks, name=False, asarray=False)
        self.movie = replace(movie, array=array)

    def frame(self, t: int) -> NDArray[Any]:
        """One frame with its changes."""
        return self._changed[t] if t in self._changed else pixels_of(self._array[t])

    def write(self, t: int, where: tuple[Index, ...], labels: Index) -> None:
        """Change the labels of some pixels of a frame."""
        frame = self.frame(t).copy()
        frame[0][where] = labels
        self._changed[t] = frame


# ---------------------------------------------------------------------- labels


def label_frame(movie: Movie, t: int) -> NDArray[np.integer]:
    """Load one frame of a label movie, shape ([Z,] Y, X), and check that it holds labels."""
    return as_labels(movie.channel_frame(t), f"{movie.source}, frame {t}")


def as_labels(pixels: NDArray[Any], where: str) -> NDArray[np.integer]:
    """Check one label image and give it as whole numbers, unsigned ones as they are stored.

    Raises
    ------
    InputError
        If a pixel is negative, not finite or not a whole number; the message says which.
    """
    if pixels.dtype.kind == "u" and pixels.dtype.itemsize <= 4:
        return pixels
    if pixels.dtype.kind == "f":
        _refuse(~np.isfinite(pixels), pixels, where, "is not a finite number")
        _refuse(pixels != np.round(pixels), pixels, where, "is not a whole number")
    elif pixels.dtype.kind not in "bui":
        raise InputError(f"{where}: labels must be whole numbers, not {pixels.dtype}")
    if pixels.dtype.kind in "if":
        _refuse(pixels < 0, pixels, where, "is negative")
    _refuse(pixels > _HIGHEST, pixels, where, f"is above {_HIGHEST}")
    return pixels.astype(np.int64)


_EVEN = 0.9
"""Least share of pairs of neighbouring foreground pixels that are equal in masks."""
_FEW = 2
"""Distinct values up to which a frame is a binary mask and has no numbered cells."""


def looks_like_labels(movie: Movie) -> bool:
    """Whether the pixels of a movie look like cell numbers, judged by its middle frame.

    These are whole numbers, with 0 for the background, and areas of equal values.
    """
    if len(movie.channels) != 1 or movie.array.dtype.kind not in "uif":
        return False
    frame = movie.channel_frame(movie.n_frames // 2)
    if frame.dtype.kind == "f" and not (frame == np.round(frame)).all():
        return False
    if frame.min() != 0 or len(np.unique(frame)) <= _FEW:
        return False
    left, right = frame[..., :-1], frame[..., 1:]
    inside = (left > 0) & (right > 0)
    return bool(inside.any() and (left == right)[inside].mean() >= _EVEN)


_MIXED = 0.25
"""Share of pairs of neighbouring pixels that differ, above which a frame may be an image.

Of the label movies at hand the highest share is 0.005, of camera images the lowest 0.3."""
_MANY = 20
"""Distinct values from which a frame may be an image."""
_TINY, _TORN = 4, 3
"""In an image, values have fewer pixels than this on average, or more separate pieces than this."""
_ALIKE, _APART = 0.25, 1.5
"""Area relative to the largest piece of a label, and distance to it in diameters, above which both
may be cells."""


def check_labels(labels: Movie) -> None:
    """Refuse a label movie that looks like an image or a yes/no mask.

    The fullest of its first, middle and last frame is looked at: others may be dark.

    Raises
    ------
    InputError
        Where neighbouring pixels mostly have different numbers and the numbers are many: specks
        of a few pixels, or each in many places. Where all cells have one number.

    Warns
    -----
    BridgetrackWarning
        Where a label lies in places far apart, or seems to be the background; it is measured as one
        cell.
    """
    few = labels.n_frames // 2, 0, labels.n_frames - 1
    t = max(few, key=lambda t: np.count_nonzero(label_frame(labels, t)))
    frame = label_frame(labels, t)
    numbers, area = np.unique(frame[frame > 0], return_counts=True)
    where = f"{labels.source}, frame {t}"
    if len(numbers) >= _MANY and _share_mixed(frame) > _MIXED:
        pieces = int(label(frame, background=0, connectivity=1).max())
        if area.sum() < _TINY * len(numbers) or pieces > _TORN * len(numbers):
            raise InputError(
                f"{where}: this looks like an image, not like labels: it has {len(numbers)} "
                f"different numbers in {pieces} separate places, and neighbouring pixels mostly "
                "differ. Labels give every pixel the number of its cell, 0 is background: segment "
                "the image first (bridgetrack segment), or give the label movie"
            )
    apart = _in_places_apart(frame)
    if len(apart) and len(numbers) == 1:
        way = f"bridgetrack segment {labels.source} --choose plain --out numbered.tif"
        if labels.source == Movie.source:  # that of arrays, which are in no file
            way = 'bt.find_cells(labels, choose="plain").labels, or Find cells in the window'
        raise InputError(
            f"{where}: every cell has the number {numbers[0]}, so this is a binary mask; number "
            f"its cells first, which also separates touching ones: {way}"
        )
    if len(apart):
        others = f" (and {len(apart) - 1} others)" if len(apart) > 1 else ""
        warn(
            f"{where}: label {apart[0]}{others} lies in places far apart and is measured as one "
            "cell; if these are different cells, give each its own number"
        )
    if len(numbers) > 1 and area.sum() == frame.size < 2 * area.max(initial=0):
        warn(
            f"{where}: no pixel is 0, and label {numbers[area.argmax()]} covers most of the frame; "
            "it is measured as a cell; if it is the background, give its pixels the number 0"
        )


def _in_places_apart(frame: NDArray[np.integer]) -> Index:
    """Labels with pieces of about one size that lie more than 1.5 of their diameters apart."""
    found = regionprops_table(label(frame), frame, ("intensity_max", "area", "centroid"))
    parts = pd.DataFrame(found).sort_values("area", ascending=False)
    centre = parts.filter(like="centroid")
    of_label = parts.groupby("intensity_max")["area"]
    area = of_label.transform("sum")
    first = centre.groupby(parts["intensity_max"]).transform("first")
    diameter = 2 * np.sqrt(area / np.pi) if frame.ndim == 2 else np.cbrt(6 * area / np.pi)
    far = np.linalg.norm(centre - first, axis=1) > _APART * diameter
    far &= parts["area"] >= _ALIKE * of_label.transform("max")
    return np.unique(parts.loc[far, "intensity_max"].to_numpy(dtype=np.int64))


def _share_mixed(frame: NDArray[Any]) -> float:
    """Share of pairs of neighbouring foreground pixels whose values differ."""
    pairs = different = 0
    for axis in range(frame.ndim):
        here = np.moveaxis(frame, axis, 0)[1:]
        there = np.moveaxis(frame, axis, 0)[:-1]
        both = (here != 0) & (there != 0)
        pairs += int(both.sum())
        different += int((both & (here != there)).sum())
    return different / max(pairs, 1)


def check_same_extent(
    image: Movie | None,
    labels: Movie,
    cure: str = "give the movie that the labels were made from, or the axis order of both (--axes "
    "for the labels, --image-axes for the image, e.g. TYX or TZYX)",
    names: tuple[str, str] | None = None,
) -> None:
    """Check that an image movie, where there is one, has the frames and pixels of the labels.

    `cure` says what to do if they differ; `names` are what the message calls image and labels if
    users know them by other names than those of their files.

    Raises
    ------
    InputError
        If they differ; the message names both.
    """
    if image is None:
        return
    there, ours = image.geometry, labels.geometry
    if (there.n_frames, there.shape) != (ours.n_frames, ours.shape):
        names = names or (f"the image ({image.source})", f"the labels ({labels.source})")
        raise InputError(
            f"{names[0]}: {there.extent}; {names[1]}: {ours.extent}; they must be the same: {cure}"
        )


def _refuse(bad: Mask, pixels: NDArray[Any], where: str, why: str) -> None:
    if not bad.any():
        return
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    raise InputError(
        f"{where}: the label {pixels[position]} at pixel {position} {why}; labels are whole "
        "numbers from 1, background is 0 (is this the image instead of its segmentation? then "
        "segment it first: bridgetrack segment)"
    )
