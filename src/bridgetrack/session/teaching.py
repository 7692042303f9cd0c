"""What strokes teach while somebody paints, where it is doubtful most, and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, ModelError, OutputError
from bridgetrack.files import refuse_inputs
from bridgetrack.movie import Movie
from bridgetrack.progress import Progress, Steps
from bridgetrack.segmentation.pixels import (
    PaintedPixels,
    PixelModel,
    load_pixel_model,
    painted_pixels,
    save_pixel_model,
    taught_model,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.strokes import UncertainPlace, doubtful_place, with_guesses


@dataclass(frozen=True)
class Taught:
    """What strokes taught so far, by frame, and what it says of the frame in view.

    Parameters
    ----------
    marks
        Strokes as they were learned from; frames stay here when they are wiped.
    pixels
        What each frame taught.
    model
        None until two classes are painted.
    probability
        Of the frame in view, None without a model.
    frame
        The frame in view.
    settings
        With which cells they were learned from, above all of what size; None before the first.
    """

    marks: dict[int, NDArray[np.uint8]]
    pixels: dict[int, PaintedPixels]
    model: PixelModel | None = None
    probability: NDArray[np.float32] | None = None
    frame: int = -1
    settings: SegmentationSettings | None = None


def teach(
    movie: Movie,
    marks: dict[int, NDArray[np.uint8]],
    known: Taught,
    settings: SegmentationSettings,
    start: PixelModel | None,
    frame: int,
) -> Steps[Taught]:
    """Learn from strokes that changed, and look at a frame with what was learned.

    With other settings than those of `known`, all strokes are learned from anew.
    """
    yield Progress("Learning from strokes", 0.0)
    pixels = dict(known.pixels) if known.settings == settings else {}
    diameter, scale = settings.diameter or 20.0, movie.geometry.scale
    for k, (t, drawn) in enumerate(marks.items()):
        if t not in pixels or t not in known.marks or (known.marks[t] != drawn).any():
            picture = movie.channel_frame(t)
            more = with_guesses(picture, drawn, settings, scale)
            pixels[t] = painted_pixels(picture, more, diameter, scale)
        yield Progress("Learning from strokes", (k + 1) / (len(marks) + 1))
    parts = [*pixels.values(), *([] if start is None else [start.painted])]
    try:
        model = taught_model(parts, diameter, movie) if parts else None
    except InputError:  # one class only, so far
        model = None
    if model is None:
        return Taught(marks, pixels, frame=frame, settings=settings)
    yield Progress("Looking at the frame", 0.9)
    seen = model.probability(movie.channel_frame(frame))
    return Taught(marks, pixels, model, seen, frame, settings)


def next_place(movie: Movie, known: Taught, frame: int) -> Steps[UncertainPlace]:
    """The least certain place of the frame in view and of some others."""
    assert known.model is not None
    others = np.linspace(0, movie.n_frames - 1, 4).round().astype(int).tolist()
    wanted, found = list(dict.fromkeys([frame, *others])), []
    for k, t in enumerate(wanted):
        yield Progress("Looking for doubtful pixels", k / len(wanted))
        pixels = movie.channel_frame(t)
        marks = known.marks.get(t, np.zeros(pixels.shape, np.uint8))
        found.append(doubtful_place(known.model.probability(pixels), marks, known.model, t))
    return max(found, key=lambda place: place.doubt)


def open_taught(path: Path, movie: Movie) -> Steps[PixelModel]:
    """What strokes on another movie taught, from its file, for the movie at hand.

    Raises
    ------
    ModelError
        Where the file is missing, damaged, or of another kind.
    InputError
        Where it was never shown a cell, or was taught on planes and the movie has volumes.
    """
    yield Progress("Reading what was taught", 0.0)
    found = load_pixel_model(path)
    try:
        found.check_finds_cells()
        return found.fitted_to(movie.geometry)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def save_taught(model: PixelModel, path: Path, movie: Path | None) -> None:
    """Write what strokes taught to a file; `movie` is the one that is read.

    Raises
    ------
    OutputError
        Where it cannot be written, or something else stands there.
    """
    refuse_inputs([path], [movie])
    if path.exists():
        try:
            load_pixel_model(path)
        except ModelError:
            raise OutputError(
                f"{path} holds no such model, so it is not replaced; give another name"
            ) from None
    save_pixel_model(model, path)
