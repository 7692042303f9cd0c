"""TIFF stacks (plain, ImageJ, OME), read frame by frame, with their scale."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.raw import RawMovie, micrometers, minutes, reading, resolve_unknown

TIFF_SUFFIXES = (".tif", ".tiff", ".btf", ".tf8", ".lsm")


def is_tiff(path: Path) -> bool:
    """Whether a file's name says that it is a TIFF."""
    return path.suffix.lower() in TIFF_SUFFIXES and not path.name.startswith(".")


def read_tiff(path: Path) -> RawMovie:
    """Open a TIFF file as a movie; only its headers are read."""
    stack = TiffStack(path)
    return RawMovie(stack, resolve_unknown(stack.axes, str(path)), **stack.said)


_FRAME = re.compile(r"(t|mask|man_track|man_seg)_?\d{3,}", re.IGNORECASE)
"""Names of files of single frames in the Cell Tracking Challenge."""


def one_frame(path: Path) -> bool:
    """Whether a TIFF holds one frame, as the files of a folder of frames do.

    This is a single plane, or a stack that has depth but no time according to its metadata, or to a
    name as in the Cell Tracking Challenge.
    """
    try:
        stack = TiffStack(path)
    except InputError:
        return False
    deep = ("Z" in stack.axes and "T" not in stack.axes) or _FRAME.fullmatch(path.stem) is not None
    return len(stack.axes.removesuffix("S")) == 2 or (len(stack.shape) == 3 and deep)


class TiffStack:
    """The stack of a TIFF file, sliced without reading the rest.

    A file that holds several stacks (other sizes or types of pages, a second stack behind the
    first, several images of an OME-TIFF) is refused.

    The axes that vary between pages are read page by page. Uncompressed contiguous files are
    mapped into memory instead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        with reading(path), _errors_logged() as errors:
            self._file = tifffile.TiffFile(path)
            self._series = self._file.series[0]
            if len(self._file.pages) and errors:  # all pages are sought only when they are counted
                raise InputError(f"{path}: the TIFF is cut off or damaged; copy or save it again")
            _check_one_stack(path, self._file)
            _check_complete(path, self._series)
            self.shape = tuple(int(n) for n in self._series.shape)
            self.dtype = np.dtype(self._series.dtype).newbyteorder("=")
            self.ndim, self.axes = len(self.shape), str(self._series.axes)
            self.said = _metadata(self._file)
            self._mapped: NDArray[Any] | None = None
            if (start := self._series.dataoffset) is not None:  # uncompressed and in one piece
                dtype = self.dtype.newbyteorder(self._file.byteorder)
                self._mapped = np.memmap(path, dtype, mode="r", offset=start, shape=self.shape)
            page = tuple(self._series.keyframe.shape)
            n = max(self.ndim - len(page), 0)
            by_pages = self.shape[n:] == page and np.prod(self.shape[:n]) == len(self._series)
            self._n_page_axes = n if by_pages else 0  # leading axes that vary between pages

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice, reading only the pages that it touches."""
        key = key if isinstance(key, tuple) else (key,)
        n = self._n_page_axes
        with reading(self.path), self._lock:
            if self._mapped is not None:
                return np.array(self._mapped[key], dtype=self.dtype)
            if n == 0:
                return np.asarray(self._series.asarray(), dtype=self.dtype)[key]
            key = key + (slice(None),) * (n - len(key))
            numbers = np.arange(len(self._series)).reshape(self.shape[:n])[key[:n]]
            pages = [self._page(int(k))[key[n:]] for k in np.ravel(numbers)]
            return stacked(pages, np.shape(numbers))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open file, so that other processes can open their own."""
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file anew."""
        self.__init__(state["path"])  # type: ignore[misc]

    def __del__(self) -> None:
        """Close the file."""
        if "_file" in vars(self):
            self._file.close()

    def _page(self, number: int) -> NDArray[Any]:
        return np.asarray(self._series[number].asarray(), dtype=self.dtype)


def stacked(parts: list[NDArray[Any]], shape: tuple[int, ...]) -> NDArray[Any]:
    """Stack arrays of one shape; a single one is not copied."""
    whole = parts[0][None] if len(parts) == 1 else np.stack(parts)
    return whole.reshape(shape + parts[0].shape)


def _check_complete(path: Path, series: Any) -> None:
    """Raise where pixels are missing, or lie beyond the end of the file."""
    size = path.stat().st_size
    last = max(len(series) - 1, 0)
    in_one_piece = series.dataoffset is not None
    for number in range(last if in_one_piece else 0, len(series)):
        page = series[number]
        if page is None or not np.multiply(page.dataoffsets, page.databytecounts).any():
            # it would be read as zeros
            raise InputError(f"{path}: the picture of page {number} is missing from the file")
        if int(np.add(page.dataoffsets, page.databytecounts).max(initial=0)) > size:
            raise InputError(f"{path}: the TIFF is cut off (copy it again; {size} bytes are there)")


def _check_one_stack(path: Path, file: tifffile.TiffFile) -> None:
    """Raise where a file holds more than one stack; previews of smaller size do not count."""
    stacks = [s for s in file.series if not s.keyframe.is_reduced]
    if len(stacks) < 2:
        return
    listed = ", ".join(f"{tuple(s.shape)} {s.dtype}" for s in stacks[:4])
    what, why = "stacks", ""
    if file.is_ome:
        what = "images (positions)"
    elif len({(s.shape[1:], s.dtype) for s in stacks}) == 1:
        why = "; their pages differ in compression, or one was appended"
    raise InputError(
        f"{path}: the file holds {len(stacks)} {what} ({listed}){why}; save the one that you want "
        "in a file of its own, or all pages anew as one stack"
    )


@contextmanager
def _errors_logged() -> Iterator[list[str]]:
    """Collect errors that the TIFF library logs in this thread, and keep them off the terminal."""
    thread, logger = threading.get_ident(), logging.getLogger("tifffile")
    errors: list[str] = []

    def of_others(record: logging.LogRecord) -> bool:
        if record.thread == thread and record.levelno >= logging.ERROR:
            errors.append(record.getMessage())
        return record.thread != thread

    logger.addFilter(of_others)
    try:
        yield errors
    finally:
        logger.removeFilter(of_others)


def _metadata(file: tifffile.TiffFile) -> dict[str, Any]:
    """Metadata of a TIFF file, as fields of a `RawMovie`.

    The resolution tags of plain TIFFs are ignored, because most programs fill them with a
    screen's resolution.
    """
    if file.is_ome and file.ome_metadata:
        return _ome_metadata(file.ome_metadata)
    if file.is_imagej and file.imagej_metadata:
        return _imagej_metadata(file.imagej_metadata, file.pages[0])
    return {}


def _ome_metadata(text: str) -> dict[str, Any]:
    """Metadata of the first image of an OME-XML document.

    The attributes ``PhysicalSize[XYZ]``, their ``Unit`` (default micrometre), ``TimeIncrement``
    (default second) and ``DeltaT`` are those of the OME schema 2016-06.
    """
    try:
        pixels = ElementTree.fromstring(text).find(".//{*}Pixels")
    except ElementTree.ParseError:
        return {}
    if pixels is None:
        return {}
    sizes = ((a.lower(), f"PhysicalSize{a}") for a in "ZYX")
    channels = tuple(c.get("Name") or "" for c in pixels.findall("{*}Channel"))
    return {
        "scale": {a: micrometers(pixels.get(s), pixels.get(f"{s}Unit", "um")) for a, s in sizes},
        "frame_interval": _ome_interval(pixels),
        "channels": channels if any(channels) else (),
    }


def _ome_interval(pixels: ElementTree.Element) -> float | None:
    stated = minutes(pixels.get("TimeIncrement"), pixels.get("TimeIncrementUnit", "s"))
    if stated is not None:
        return stated
    planes = [p for p in pixels.findall("{*}Plane") if p.get("DeltaT") is not None]
    first = [p for p in planes if p.get("TheC", "0") == p.get("TheZ", "0") == "0"]
    times = {int(p.get("TheT", "0")): float(p.get("DeltaT", "0")) for p in first}
    if len(times) < 2:
        return None
    frames = sorted(times)
    steps = np.diff([times[t] for t in frames]) / np.diff(frames)
    return minutes(float(np.median(steps)), first[-1].get("DeltaTUnit", "s"))


def _imagej_metadata(found: dict[str, Any], page: Any) -> dict[str, Any]:
    unit = found.get("unit", "")
    sizes = {
        "z": micrometers(found.get("spacing"), found.get("zunit", unit)),
        "y": micrometers(_pixel_size(page, "YResolution"), found.get("yunit", unit)),
        "x": micrometers(_pixel_size(page, "XResolution"), unit),
    }
    n_channels = int(found.get("channels", 1))
    labels = found.get("Labels") or []
    return {
        "scale": sizes,
        "frame_interval": minutes(found.get("finterval"), found.get("tunit", "s")),
        "channels": tuple(str(name) for name in labels[:n_channels]) if n_channels > 1 else (),
    }


def _pixel_size(page: Any, tag: str) -> float | None:
    """Units per pixel; the tag holds pixels per unit as a fraction."""
    value = page.tags.get(tag)
    if value is None:
        return None
    pixels, units = value.value
    return float(units) / float(pixels) if pixels else None


def page_head(path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of a file's first page, read from its header alone."""
    with reading(path), _errors_logged(), tifffile.TiffFile(path) as file:
        page = file.pages[0]
        return tuple(page.shape), np.dtype(page.dtype).newbyteorder("=")
