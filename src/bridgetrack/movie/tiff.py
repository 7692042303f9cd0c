"""TIFF stacks: plain, ImageJ and OME, read one frame at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.axes import resolve_unknown
from bridgetrack.movie.lazy import RawMovie, reading
from bridgetrack.movie.tiff_metadata import tiff_metadata

TIFF_SUFFIXES = (".tif", ".tiff", ".btf", ".tf8", ".lsm")
_BROKEN = ("invalid page offset", "invalid value offset", "failed to reshape", "corrupted")


class TiffStack:
    """First image series of a TIFF file, sliced without reading the rest.

    The axes that vary between pages are read page by page. Uncompressed contiguous files are
    mapped into memory instead.

    Parameters
    ----------
    path
        A TIFF file.

    Raises
    ------
    InputError
        Where the file is missing, unreadable, cut off or not a TIFF.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: tifffile.TiffFile | None = None
        with reading(path), _refusing_broken(path):
            self._open()
            _check_complete(path, self._series)
            self.metadata = tiff_metadata(self._file)
            self.shape = tuple(int(n) for n in self._series.shape)
            self.dtype = np.dtype(self._series.dtype).newbyteorder("=")
            self.axes = str(self._series.axes)
            self._n_page_axes = self._count_page_axes()
        self.ndim = len(self.shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice, reading only the pages that it touches."""
        with reading(self.path), self._lock:
            self._open()
            if self._memory_map is not None:
                return np.array(self._memory_map[key], dtype=self.dtype)
            return self._from_pages(_full_key(key, self.shape))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open file, so that other processes can open their own."""
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file anew."""
        self.__init__(state["path"])  # type: ignore[misc]

    def __del__(self) -> None:
        """Close the file."""
        file: tifffile.TiffFile | None = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def _open(self) -> None:
        if self._file is None:
            self._file = tifffile.TiffFile(self.path)
            self._series = self._file.series[0]
            self._memory_map = _memory_map(self.path, self._file, self._series)

    def _count_page_axes(self) -> int:
        """Number of leading axes that vary between pages."""
        page_shape = tuple(self._series.keyframe.shape)
        n_leading = len(self.shape) - len(page_shape)
        tiled_by_pages = n_leading >= 0 and self.shape[n_leading:] == page_shape
        n_pages = int(np.prod(self.shape[: max(n_leading, 0)]))
        if self._memory_map is None and not (tiled_by_pages and n_pages == len(self._series)):
            return 0
        return max(n_leading, 0)

    def _from_pages(self, key: tuple[Any, ...]) -> NDArray[Any]:
        if self._n_page_axes == 0:
            whole: NDArray[Any] = np.asarray(self._series.asarray(), dtype=self.dtype)
            return np.asarray(whole[key])
        leading = self.shape[: self._n_page_axes]
        numbers = np.arange(int(np.prod(leading))).reshape(leading)[key[: self._n_page_axes]]
        inside = key[self._n_page_axes :]
        pages = [self._page(int(n))[inside] for n in np.ravel(numbers)]
        return np.stack(pages).reshape(np.shape(numbers) + pages[0].shape)

    def _page(self, number: int) -> NDArray[Any]:
        page = self._series[number]
        if page is None:
            raise InputError(f"{self.path}: the picture of page {number} is missing from the file")
        return np.asarray(page.asarray(), dtype=self.dtype)


def read_tiff(path: Path) -> RawMovie:
    """Open a TIFF file as a movie; only its headers are read."""
    stack = TiffStack(path)
    axes = resolve_unknown(stack.axes, str(path))
    return RawMovie(stack, replace(stack.metadata, axes=axes))


def _full_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    given: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
    return given + (slice(None),) * (len(shape) - len(given))


def _memory_map(path: Path, file: tifffile.TiffFile, series: Any) -> NDArray[Any] | None:
    """The pixels mapped into memory, where the file holds them uncompressed in one piece."""
    if series.dataoffset is None:
        return None
    dtype = np.dtype(series.dtype).newbyteorder(file.byteorder)
    return np.memmap(path, dtype=dtype, mode="r", offset=series.dataoffset, shape=series.shape)


def _check_complete(path: Path, series: Any) -> None:
    """Raise where pixels of the last page lie beyond the end of the file."""
    size = path.stat().st_size
    page = series[len(series) - 1] if len(series) else None
    if page is None:
        return
    ends = np.add(page.dataoffsets, page.databytecounts)
    if ends.size == 0 or int(ends.max()) > size:
        raise InputError(f"{path}: the TIFF is cut off (copy it again; {size} bytes are there)")


@contextmanager
def _refusing_broken(path: Path) -> Iterator[None]:
    """Raise where the TIFF library only logs that a file is cut off."""
    logger = logging.getLogger("tifffile")
    heard = _Listener(threading.get_ident())
    logger.addFilter(heard)
    try:
        yield
    finally:
        logger.removeFilter(heard)
    if heard.broken:
        raise InputError(f"{path}: the TIFF is cut off or damaged; copy or save it again")


class _Listener(logging.Filter):
    """Notes messages on damage from one thread and keeps them off the terminal."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self.thread = thread
        self.broken = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self.thread:
            return True
        self.broken = self.broken or any(word in record.getMessage() for word in _BROKEN)
        return False
