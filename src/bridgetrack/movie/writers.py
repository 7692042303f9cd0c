"""Writers that take label frames one by one; partial output never has the final name.

Write whole label movies, one frame in memory at a time.
"""

from __future__ import annotations

import shutil
import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import cure
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie, as_labels, label_frame

_STACK_SUFFIXES = (".tif", ".tiff")
_CLASSIC_LIMIT = 2**34  # compressed labels stay far below a quarter of their raw size


class LabelWriter(ABC):
    """Takes frames one by one; the result appears under its name when all are written.

    Use it as a context manager: leaving it normally moves the result into place, leaving it by
    an exception (a cancelled generator included) removes what was written.

    Parameters
    ----------
    path
        Final name.
    geometry
        Extent and scale, written into the files.
    dtype
        ``"uint16"`` or ``"uint32"``.
    """

    def __init__(self, path: Path, geometry: Geometry, dtype: str = "uint16") -> None:
        if dtype not in ("uint16", "uint32"):
            raise InputError(f"labels are written as uint16 or uint32, not {dtype}")
        self.path = path
        self.geometry = geometry
        self.dtype = np.dtype(dtype)
        self.n_written = 0

    def __enter__(self) -> LabelWriter:
        """Open a temporary name beside the final one."""
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._begin()
        return self

    def write(self, labels: NDArray[Any]) -> None:
        """Append one frame, shape ([Z,] Y, X)."""
        where = f"{self.path.name}, frame {self.n_written}"
        checked = as_labels(np.asarray(labels), where)
        if self.geometry.shape is not None and checked.shape != self.geometry.shape:
            raise InputError(
                f"{where}: the frame has shape {checked.shape}, expected {self.geometry.shape}"
            )
        highest = int(checked.max(initial=0))
        if highest > np.iinfo(self.dtype).max:
            raise OutputError(
                f"{where}: label {highest} does not fit into {self.dtype}; write with "
                "dtype='uint32' or renumber the labels"
            )
        with writing(self.path):
            self._append(checked.astype(self.dtype))
        self.n_written += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Move the result into place, or remove it."""
        if kind is not None:
            with suppress(Exception):  # the first failure is the one to report
                self._close()
            self._remove()
            return
        complete = self.n_written == self.geometry.n_frames
        try:
            with writing(self.path):
                self._close()
                if complete:
                    self._publish()
        finally:
            self._remove()
        if not complete:
            raise OutputError(
                f"{self.path}: {self.n_written} frames were given, expected "
                f"{self.geometry.n_frames}; nothing was written"
            )

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _append(self, labels: NDArray[Any]) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def _publish(self) -> None: ...

    @abstractmethod
    def _remove(self) -> None: ...


class StackWriter(LabelWriter):
    """One compressed TIFF stack with ImageJ's description of axes and scale."""

    def _begin(self) -> None:
        self._temporary = _temporary_beside(self.path)
        size = np.prod([self.geometry.n_frames, *(self.geometry.shape or ()), 4], dtype=np.float64)
        self._tiff = tifffile.TiffWriter(self._temporary, bigtiff=bool(size > _CLASSIC_LIMIT))

    def _append(self, labels: NDArray[Any]) -> None:
        tags = _imagej_tags(self.geometry, self.geometry.n_frames) if self.n_written == 0 else {}
        _append_pages(self._tiff, labels, tags)

    def _close(self) -> None:
        self._tiff.close()

    def _publish(self) -> None:
        self._temporary.replace(self.path)

    def _remove(self) -> None:
        self._temporary.unlink(missing_ok=True)


class FolderWriter(LabelWriter):
    """A folder with one compressed TIFF per frame, ``mask000.tif`` and so on."""

    def __enter__(self) -> LabelWriter:
        """Check that the folder is ours to fill, then open a temporary one beside it."""
        foreign = [p.name for p in self.path.glob("*") if not p.match("mask*.tif")]
        if foreign or self.path.is_file():
            what = f"holds other files ({foreign[0]})" if foreign else "is a file"
            raise OutputError(f"{self.path}: the output folder {what}; give another name")
        return super().__enter__()

    def _begin(self) -> None:
        self._temporary = _temporary_beside(self.path)
        self._temporary.mkdir()

    def _append(self, labels: NDArray[Any]) -> None:
        digits = max(3, len(str(self.geometry.n_frames - 1)))
        name = self._temporary / f"mask{self.n_written:0{digits}d}.tif"
        with tifffile.TiffWriter(name) as tiff:
            _append_pages(tiff, labels, _imagej_tags(self.geometry, 1))

    def _close(self) -> None:
        pass

    def _publish(self) -> None:
        old = self.path.with_name(f"{self._temporary.name}.old")
        if self.path.exists():
            self.path.rename(old)
        self._temporary.rename(self.path)
        shutil.rmtree(old, ignore_errors=True)

    def _remove(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)


def label_writer(path: str | Path, geometry: Geometry, *, dtype: str = "uint16") -> LabelWriter:
    """The writer for a path: a TIFF stack for ``.tif``, otherwise a folder of masks.

    Raises
    ------
    OutputError
        Where the name ends like a kind of file that is not written.
    """
    path = Path(path).expanduser()
    if path.suffix.lower() in _STACK_SUFFIXES:
        return StackWriter(path, geometry, dtype)
    if path.suffix and not path.is_dir():
        raise OutputError(
            f"{path}: labels are written as a TIFF stack (a name that ends in .tif) or as a "
            f"folder of masks (a name without a dot), not as {path.suffix}"
        )
    return FolderWriter(path, geometry, dtype)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the failures of writing to `path` into an OutputError that names it."""
    try:
        yield
    except PermissionError as error:
        raise OutputError(f"{path}: no permission to write there; choose another folder") from error
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{path}: cannot be written ({why}); {cure(error)}") from error
    except (ValueError, struct.error) as error:
        raise OutputError(f"{path}: cannot be written ({error})") from error


def _append_pages(tiff: tifffile.TiffWriter, labels: NDArray[Any], tags: dict[str, Any]) -> None:
    """Append the planes of one frame; the description stands on the first page of a file."""
    planes = labels if labels.ndim == 3 else labels[np.newaxis]
    for plane in planes:
        tiff.write(plane, compression="zlib", metadata=None, photometric="minisblack", **tags)
        tags = {}


def _imagej_tags(geometry: Geometry, n_frames: int) -> dict[str, Any]:
    n_slices = geometry.shape[0] if geometry.shape is not None and geometry.ndim == 3 else 1
    lines = ["ImageJ=1.11a", f"images={n_frames * n_slices}", f"slices={n_slices}"]
    lines += [f"frames={n_frames}", "hyperstack=true", "mode=grayscale"]
    tags: dict[str, Any] = {}
    if geometry.unit == "micrometer":
        lines.append("unit=um")
        if geometry.ndim == 3:
            lines.append(f"spacing={geometry.scale[0]!r}")
        tags["resolution"] = (1 / geometry.scale[-1], 1 / geometry.scale[-2])
        tags["resolutionunit"] = "NONE"
    if geometry.frame_interval is not None:
        lines.append(f"finterval={geometry.frame_interval * 60!r}")
    return {"description": "\n".join([*lines, ""]), **tags}


def _temporary_beside(path: Path) -> Path:
    """A name on the same disk, so that moving it into place is one step."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")


def save_labels(
    labels: Movie | Iterable[NDArray[Any]],
    path: str | Path,
    *,
    geometry: Geometry | None = None,
    dtype: str = "uint16",
) -> Path:
    """Write a label movie, one frame in memory at a time.

    Parameters
    ----------
    labels
        A label movie, or frames of shape ([Z,] Y, X) in order.
    path
        A name that ends in ``.tif`` gives a TIFF stack, any other a folder with ``mask000.tif``
        and so on. Both are zlib-compressed and appear under the name only when complete.
    geometry
        Extent and scale; needed where `labels` is not a movie and has no length.
    dtype
        ``"uint16"`` or ``"uint32"``.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        Where a frame has the wrong shape or is no label image.
    OutputError
        Where the files cannot be written, or a label does not fit into `dtype`.
    """
    frames, geometry = _frames(labels, geometry)
    with label_writer(path, geometry, dtype=dtype) as writer:
        for frame in frames:
            writer.write(frame)
    return writer.path


def _frames(
    labels: Movie | Iterable[NDArray[Any]], geometry: Geometry | None
) -> tuple[Iterable[NDArray[Any]], Geometry]:
    if isinstance(labels, Movie):
        movie = labels
        return (label_frame(movie, t) for t in range(movie.n_frames)), geometry or movie.geometry
    if geometry is not None:
        return labels, geometry
    if not isinstance(labels, Sized) or len(labels) == 0:
        raise InputError("frames without a length or without content need the movie's geometry")
    shape = tuple(int(n) for n in np.shape(next(iter(labels))))
    return labels, Geometry(n_frames=len(labels), shape=shape, scale=(1.0,) * len(shape))
