"""Strokes painted to teach the pixels: kept beside the answers, and there again on opening."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.files import write_text, writing
from bridgetrack.schema import Count, FileFormat, FilePart, OpenEntry, json_text
from bridgetrack.segmentation.pixels import (
    CLASSES,
    PIXEL_MODEL_FILE,
    PixelModel,
    pixel_model_to_json,
)


@dataclass(frozen=True)
class Strokes:
    """What was painted on a movie.

    Parameters
    ----------
    shape
        Frames of the movie and the shape of each.
    frames
        Strokes on frames that have any, by number: 0 where nothing is painted, otherwise the number
        of a class from 1.
    diameter
        Of a typical cell in pixels, as assumed when learning from them; None where not yet known.
    start
        What an earlier movie taught, where learning began with it.
    """

    shape: tuple[int, ...]
    frames: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    diameter: float | None = None
    start: PixelModel | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to learn from."""
        return not self.frames and self.start is None

    def same(self, other: Strokes) -> bool:
        """Whether the other says the same."""
        if (self.shape, self.diameter) != (other.shape, other.diameter):
            return False
        if self.start is not other.start or self.frames.keys() != other.frames.keys():
            return False
        return all(np.array_equal(marks, other.frames[t]) for t, marks in self.frames.items())


class _Frame(FilePart):
    frame: Count
    runs: list[Annotated[list[Count], Field(min_length=3, max_length=3)]]


class _Content(OpenEntry):
    shape: list[Annotated[int, Field(ge=1, lt=2**31)]] = Field(min_length=3, max_length=4)
    frames: list[_Frame]
    diameter: Annotated[float, Field(ge=1, le=1e5)] | None = None
    start: Annotated[PixelModel, PIXEL_MODEL_FILE.nested] | None = None

    def strokes(self) -> Strokes:
        """What it says; takes memory by the shape, which is that of the movie at hand."""
        n_frames, *space = self.shape
        if any(part.frame >= n_frames for part in self.frames):
            raise InputError(f"frames: the movie has frames 0 to {n_frames - 1} only")
        shape = tuple(space)
        frames = {part.frame: _painted(part.runs, shape) for part in self.frames}
        return Strokes((n_frames, *shape), frames, self.diameter, self.start)


def _as_it_is(content: _Content) -> _Content:
    return content


STROKES_FILE = FileFormat("bridgetrack-strokes", 1, "a file of strokes", _Content, _as_it_is)
"""Files of strokes; a frame is told by runs of pixels: the first one, how many, and their class."""


def load_strokes(path: Path, shape: tuple[int, ...]) -> Strokes:
    """What was painted on a movie of this shape (time, [z,] y, x); nothing where there is no file.

    Raises
    ------
    InputError
        Where the file is damaged.
    """
    if not path.exists():
        return Strokes(shape)
    found = STROKES_FILE.read(path)
    if tuple(found.shape) != shape:  # another movie has taken the place of the one painted on
        return Strokes(shape)
    try:
        return found.strokes()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def save_strokes(strokes: Strokes, path: Path) -> None:
    """Write the file of strokes in one step; with nothing to keep there is none.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    if strokes.empty:
        with writing(path, "the strokes"):
            path.unlink(missing_ok=True)
        return
    content: dict[str, Any] = {
        **STROKES_FILE.head,
        "shape": list(strokes.shape),
        "diameter": strokes.diameter,
        "start": None if strokes.start is None else pixel_model_to_json(strokes.start),
        "frames": [{"frame": t, "runs": _runs(marks)} for t, marks in strokes.frames.items()],
    }
    write_text(path, json_text(content, "the strokes", ascii_only=False), "the strokes")


def _runs(marks: NDArray[np.uint8]) -> list[list[int]]:
    """Where pixels of one class follow each other: the first of them, their number, their class."""
    line = np.concatenate([[0], marks.ravel(), [0]])
    cuts = np.flatnonzero(line[1:] != line[:-1])
    length, value = np.diff(cuts), line[cuts[:-1] + 1]
    painted = value > 0
    runs = np.stack([cuts[:-1][painted], length[painted], value[painted]], axis=1)
    return [[int(number) for number in run] for run in runs]


def _painted(runs: list[list[int]], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The strokes on a frame."""
    marks = np.zeros(shape, dtype=np.uint8)
    line = marks.reshape(-1)
    for first, length, value in runs:
        if first + length > line.size or not 1 <= value <= len(CLASSES):
            raise InputError(
                f"runs: {[first, length, value]} lies outside of a frame of {line.size} pixels, "
                f"or is none of the classes 1 to {len(CLASSES)}"
            )
        line[first : first + length] = value
    return marks
