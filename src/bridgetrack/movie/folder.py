"""Folders with one TIFF per frame, as the Cell Tracking Challenge stores movies."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.raw import RawMovie, reading, resolve_unknown
from bridgetrack.movie.tiff import TiffStack, is_tiff, read_tiff

_CHANNEL = re.compile(r"(?:^|[_\-. ])(?:c|ch|channel|w)(\d+)(?=$|[_\-. ])", re.IGNORECASE)


def read_folder(folder: Path, pattern: str = "*") -> RawMovie:
    """Open a folder of TIFFs as a movie, in natural order of the names.

    Names with a channel token (``c0_t000.tif``) give several channels. A single TIFF in the
    folder is opened as a stack. `pattern` takes names in the way of a shell, e.g. ``mask*.tif``.
    """
    with reading(folder):
        found = (p for p in folder.iterdir() if is_tiff(p) and p.match(pattern))
        files = sorted(found, key=_natural_key)
        _check_some(folder, pattern, files)
        if len(files) == 1:
            return read_tiff(files[0])
        frames = FolderFrames(_by_channel(folder, files))
    axes = resolve_unknown(frames.first.axes, str(folder), one_frame=True)
    if "T" in axes:
        raise InputError(
            f"{folder}: each file holds several time points (axes {axes}); open one file, or "
            "say the axis order, e.g. ZYX (--axes or --image-axes)"
        )
    metadata = frames.first.metadata
    if "C" in axes:  # the files hold the channels themselves: there is one file per frame
        array = RawMovie(frames).lazy("TC" + axes)[:, 0]
        return RawMovie(array, replace(metadata, axes="T" + axes))
    return RawMovie(frames, replace(metadata, axes="TC" + axes))


class FolderFrames:
    """TIFF files (T, C) as one array (T, C, *file shape), read file by file.

    A file whose pixels differ in shape from those of the first is refused when it is read.
    """

    def __init__(self, files: list[list[Path]]) -> None:
        self.files = files  # paths, shape (T, C)
        self.first = TiffStack(files[0][0])
        self.shape = (len(files), len(files[0]), *self.first.shape)
        self.dtype = self.first.dtype
        self.ndim = len(self.shape)
        page_shape = _page_shape(files[0][0])
        for path in (path for row in files for path in row):
            self._check_shape(path, _page_shape(path), page_shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice, reading only the files that it touches."""
        key = key if isinstance(key, tuple) else (key,)
        numbers = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape[:2])[key[:2]]
        frames = [self._frame(*divmod(int(n), self.shape[1]))[key[2:]] for n in np.ravel(numbers)]
        return np.stack(frames).reshape(np.shape(numbers) + frames[0].shape)

    def _frame(self, t: int, channel: int) -> NDArray[Any]:
        path = self.files[t][channel]
        stack = TiffStack(path)
        self._check_shape(path, stack.shape, self.shape[2:])
        return stack[()].astype(self.dtype, copy=False)

    def _check_shape(self, path: Path, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        if found != wanted:
            raise InputError(
                f"{path}: the frame has shape {found} but the first, {self.files[0][0].name}, has "
                f"{wanted}; all frames of a movie must have the same shape"
            )


def _natural_key(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Sorting key in which ``t2`` comes before ``t10``."""
    parts = re.split(r"(\d+)", path.name.lower())
    return tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts if p)


def _check_some(folder: Path, pattern: str, files: list[Path]) -> None:
    if files:
        return
    inside = sorted({p.parent.name for p in folder.glob("*/*") if is_tiff(p)})
    hint = f"; its folders {', '.join(inside[:6])} do: open one of them" if inside else ""
    which = "" if pattern == "*" else f" named {pattern}"
    raise InputError(f"{folder}: the folder holds no TIFF files{which}{hint}")


def _by_channel(folder: Path, files: list[Path]) -> list[list[Path]]:
    """Files by frame and channel, from the channel token in their names."""
    patterns = sorted({re.sub(r"\d+", "*", p.name) for p in files})
    if len(patterns) > 1:
        raise InputError(
            f"{folder}: the names tell of {len(patterns)} movies ({', '.join(patterns[:4])}); "
            f"say which one by a pattern, e.g. {folder / patterns[0]}"
        )
    groups: dict[str, list[Path]] = defaultdict(list)
    for path in files:
        token = _CHANNEL.search(path.stem)
        groups[token.group(1) if token else ""].append(path)
    counts = {len(group) for group in groups.values()}
    if len(groups) == 1 or "" in groups or len(counts) > 1:
        groups = {"": files}
    _warn_of_gaps(folder, next(iter(groups.values())))
    ordered = [groups[name] for name in sorted(groups, key=lambda n: int(n or 0))]
    return [list(row) for row in zip(*ordered, strict=True)]


def _warn_of_gaps(folder: Path, files: list[Path]) -> None:
    """Warn where the frame numbers do not rise in equal steps."""
    numbers = [[int(n) for n in re.findall(r"\d+", p.stem)] for p in files]
    if not numbers[0] or len({len(n) for n in numbers}) > 1:
        return
    table = np.array([[min(n, 2**62) for n in row] for row in numbers])
    column = int(np.argmax([len(np.unique(c)) for c in table.T]))
    steps = np.diff(table[:, column])
    usual = int(steps.min(initial=2**62))
    if usual > 0 and np.any(steps > usual) and np.all(steps % usual == 0):
        after = [files[i].name for i in np.flatnonzero(steps > usual)[:3]]
        warnings.warn(
            f"{folder}: frames seem to be missing after {', '.join(after)}; the remaining ones "
            "are taken as consecutive; put the missing files there if they exist",
            stacklevel=2,
        )


def _page_shape(path: Path) -> tuple[int, ...]:
    """Shape of a file's first page, read from its header alone."""
    with reading(path), tifffile.TiffFile(path) as file:
        return tuple(file.pages[0].shape)
