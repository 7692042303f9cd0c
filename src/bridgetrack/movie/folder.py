"""Folders of TIFFs, a file for every frame, channel or plane, read file by file.

Names say which: a number after ``z`` counts planes, after ``ch`` or ``w`` channels, after ``pos``
or ``xy`` positions, which are movies of their own. One number is left to count frames.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError, warn
from bridgetrack.movie.raw import RawMovie, resolve_unknown
from bridgetrack.movie.tiff import TiffStack, is_tiff, page_head, read_tiff, stacked

_WORDS = {
    "channel": "c ch channel w",
    "plane": "z plane slice",
    "position": "pos position xy series site scene field well tile",
}
_LETTERS_OF_POSITIONS = ("s", "p", "f", "v")
"""They may also count frames if no number occurs twice."""
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
"""Endings of pictures that hold one frame but are not read."""
_NUMBER = re.compile(r"((?:\d+[ydhms]_?){2,}|\d+)")
"""A number in a name, or a time such as Incucyte's ``00d00h30m``."""
_HARMONY = re.compile(r"r(\d+)c(\d+)f(\d+)p(\d+)-ch(\d+)sk(\d+)")
"""Row, column, field, plane, channel and time of Operetta and Opera Phenix."""


_WELL = re.compile(r"(?<![A-Za-z\d])C(\d{1,2})(?![A-Za-z\d])")
"""A well in the third row of a plate, or a channel."""
_CAPITALS = re.compile(r"(?<![A-Za-z\d])[TZ]\d")
"""Times or planes with a capital letter; ``C`` is then a channel."""


def read_folder(folder: Path, pattern: str = "*", *, labels: bool = False) -> RawMovie:
    """Open a folder of TIFFs as a movie, in natural order of the names.

    A single TIFF in the folder is opened as a stack. `pattern` selects names as in a shell, e.g.
    ``mask*.tif``.

    Raises
    ------
    InputError
        If the names are those of several movies, or a file cannot be read.
    """
    found = (p for p in folder.iterdir() if is_tiff(p) and p.match(pattern))
    files = sorted(found, key=_natural_key)
    _check_some(folder, pattern, files)
    if len(files) == 1:
        return read_tiff(files[0])
    ordered = _in_order(folder, files)
    first = TiffStack(ordered.flat[0])
    axes = first.axes
    if labels and axes.startswith("S"):  # taken for colours, which labels do not have
        axes = f"Z{axes[1:]}"
    axes = resolve_unknown(axes, str(folder), one_frame=True)
    if "T" in axes:
        raise InputError(
            f"{folder}: each file holds several time points (axes {axes}); open one file, or "
            "say the axis order, e.g. ZYX (--axes or --image-axes)"
        )
    if ordered.shape[2] > 1:
        axes = f"Z{axes}"
    else:
        ordered = ordered[:, :, 0]
    if "C" in axes:  # the files hold the channels themselves: there is one file per frame
        ordered = ordered[:, 0]
    else:
        axes = f"C{axes}"
    return RawMovie(FolderFrames(ordered, first), f"T{axes}", **first.said)


class FolderFrames:
    """TIFF files, in an array of any shape, as one array (*files, *file shape), read file by file.

    A file whose pixels differ in shape from those of the first is refused when it is read. The
    type is one that holds the values of all files.
    """

    def __init__(self, files: NDArray[Any], first: TiffStack) -> None:
        self.files, self.first = files, first
        self.shape = (*files.shape, *first.shape)
        self.ndim = len(self.shape)
        pages = [page_head(path) for path in files.flat]
        for path, (shape, _) in zip(files.flat, pages, strict=True):
            self._check_shape(path, shape, pages[0][0])
        self.dtype = np.result_type(*(dtype for _, dtype in pages))

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Pixels of a slice, reading only the files that it touches."""
        n, key = self.files.ndim, key if isinstance(key, tuple) else (key,)
        chosen = np.asarray(self.files[key[:n]])
        pixels = []
        for path in chosen.flat:
            stack = TiffStack(path)
            self._check_shape(path, stack.shape, self.first.shape)
            pixels.append(stack[()].astype(self.dtype, copy=False)[key[n:]])
        return stacked(pixels, chosen.shape)

    def _check_shape(self, path: Path, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        if found != wanted:
            raise InputError(
                f"{path}: the frame has shape {found} but the first, {self.first.path.name}, has "
                f"{wanted}; all frames of a movie must have the same shape: move the file out of "
                "the folder if it is no frame of this movie, or crop all frames to one shape"
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
    pictures = sorted(p for p in folder.iterdir() if p.suffix.lower() in _PICTURES)
    if pictures:
        hint = f"; pictures such as {pictures[0].name} are not read: save them as TIFF{hint}"
    which = "" if pattern == "*" else f" named {pattern}"
    raise InputError(f"{folder}: the folder holds no TIFF files{which}{hint}")


def _in_order(folder: Path, files: list[Path]) -> NDArray[Any]:
    """Files by frame, channel and plane, shape (T, C, Z)."""
    found = Counter(re.sub(r"\d+", "*", p.name) for p in files)
    patterns = sorted(found, key=lambda pattern: (-found[pattern], pattern))
    if len(patterns) > 1:
        raise InputError(
            f"{folder}: the names are those of {len(patterns)} movies ({', '.join(patterns[:4])}); "
            f"say which one by a pattern, e.g. {folder / patterns[0]}"
        )
    parts = pd.DataFrame([_NUMBER.split(p.name) for p in files])
    name = _HARMONY.sub(r"well\1well\2field\3z\4-ch\5t\6", files[0].name)
    words = _NUMBER.split(name if _CAPITALS.search(name) else _WELL.sub(r"well\1", name))
    counts = {k: n for k, n in enumerate(parts.nunique()) if k % 2 and n > 1}
    counted = {k: _counted(words[k - 1], n < len(files)) for k, n in counts.items()}
    positions = [k for k, what in counted.items() if what == "position"]
    if any(counts[k] < len(files) for k in positions):
        raise _several(folder, parts, counted, counts)
    if positions:
        warn(
            f"{folder}: the names count positions ({files[0].name}, {files[1].name}, ...); they "
            "are taken as the frames of one movie; open one of them if each is a movie of its own"
        )
    # the first number that counts channels, and the first that counts planes
    inner = {c: k for k, c in reversed(counted.items()) if c in ("channel", "plane")}
    place = {c: np.unique(parts[k].astype(int), return_inverse=True)[1] for c, k in inner.items()}
    frame = parts.groupby([k for k in parts if k not in inner.values()], sort=False).ngroup()
    at = np.stack([frame, *(place.get(c, 0 * frame) for c in ("channel", "plane"))])
    shape = at.max(axis=1) + 1
    whole = shape.prod() == len(files) == np.unique(at, axis=1).shape[1]
    left = [counts[k] for k in counts if k not in inner.values()]
    if not whole or (left and max(left) < shape[0]):
        raise _several(folder, parts, counted, counts)
    ordered = np.empty(shape, dtype=object)
    ordered[tuple(at)] = files
    _warn_of_gaps(folder, ordered[:, 0, 0].tolist())
    return ordered


def _counted(before: str, again: bool) -> str:
    """What a number that may occur `again` counts, by the letters before it; empty if unknown."""
    found = re.search(r"([a-z]+)[_\-. ]*$", before.lower())
    word = found[1] if found else ""
    if again and word in _LETTERS_OF_POSITIONS:
        return "position"
    return next((what for what, words in _WORDS.items() if word in words.split()), "")


def _several(
    folder: Path, parts: pd.DataFrame, counted: dict[int, str], counts: dict[int, int]
) -> InputError:
    """The error about names that count positions, or several unknown things."""

    def pattern(starred: set[int]) -> str:
        first = parts.iloc[0]
        return str(folder / "".join("*" if k in starred else p for k, p in enumerate(first)))

    positions = {k for k, what in counted.items() if what == "position"}
    if positions:
        values = sorted({parts[k - 1][0] + name for k in positions for name in parts[k]})
        return InputError(
            f"{folder}: the names tell of several positions ({', '.join(values[:6])}), each a "
            f"movie of its own; open one by its pattern, e.g. {pattern(set(counted) - positions)}"
        )
    readings = [
        f"{pattern({k})} ({counts[k]} numbers)" for k in sorted(counts, key=lambda k: -counts[k])
    ]
    return InputError(
        f"{folder}: the names of the {len(parts)} files hold {len(counted)} numbers that change, "
        "so these are several movies or the planes of one; open one movie by its pattern: "
        f"{', or '.join(readings)}; or save the planes of a movie as one stack"
    )


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
        warn(
            f"{folder}: frames seem to be missing after {', '.join(after)}; the remaining ones "
            "are taken as consecutive; put the missing files there if they exist"
        )
