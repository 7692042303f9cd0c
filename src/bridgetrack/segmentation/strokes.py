"""Strokes, in which a few pixels are painted as background, cell or edge, and what they teach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.segmentation.builtin import estimate_diameter, segment_builtin
from bridgetrack.segmentation.movie import movie_settings
from bridgetrack.segmentation.pixels import (
    CLASSES,
    GUESSED,
    PixelModel,
    painted_pixels,
    taught_model,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import gaussian, sampling_of

_OFF = 1.6
"""Where cells turn out to be so many times as wide as was assumed, the filters are chosen anew."""


def learn_pixels(
    image: Any,
    strokes: Any,
    *,
    channel: int | str = 0,
    diameter: float | None = None,
    start: PixelModel | None = None,
) -> PixelModel:
    """Learn from painted strokes what background, cells and edges between cells look like.

    Parameters
    ----------
    image
        The movie, or anything that `open_movie` takes.
    strokes
        A label movie of the same extent: 0 where nothing is painted, 1 background, 2 cell,
        3 edge between cells; two of them at least. Some strokes on a few frames are enough.
    channel
        Number or name of the channel that shows the cells.
    diameter
        Diameter of a typical cell in pixels; found out unless given.
    start
        A model of an earlier movie; its strokes count too.

    Raises
    ------
    InputError
        Where nothing or one class only is painted, or the strokes have another extent.
    """
    movie = image if isinstance(image, Movie) else open_movie(image)
    labels = strokes if isinstance(strokes, Movie) else open_labels(strokes)
    return run(learn_steps(movie, labels, channel=channel, diameter=diameter, start=start))


def learn_steps(
    movie: Movie,
    strokes: Movie,
    *,
    channel: int | str = 0,
    diameter: float | None = None,
    start: PixelModel | None = None,
) -> Steps[PixelModel]:
    """`learn_pixels` in steps."""
    check_strokes(movie, strokes)
    number = movie.channel_number(channel)
    yield Progress("Reading strokes", 0.0)
    painted = painted_frames(strokes)
    if not painted and start is None:
        raise InputError(
            f"{strokes.source}: nothing is painted; paint some pixels of the "
            "background (1) and some of cells (2)"
        )
    given = diameter
    if start is not None:
        start = start.fitted_to(movie.geometry)
        diameter = start.diameter
    settings = SegmentationSettings(diameter=diameter)
    if painted:
        yield Progress("Looking at the movie", 0.0)
        settings = movie_settings(movie, settings, channel=number)
    diameter = float(settings.diameter or 20.0)
    for _ in range(2):
        taught = [] if start is None else [start.painted]
        yield Progress("Learning from strokes", 0.0)
        for k, (t, marks) in enumerate(painted.items()):
            frame = movie.channel_frame(t, number)
            scale = movie.geometry.scale
            more = with_guesses(frame, marks, settings, scale)
            taught.append(painted_pixels(frame, more, diameter, scale))
            yield Progress("Learning from strokes", (k + 1) / len(painted))
        model = taught_model(taught, diameter, movie)
        if given is not None or start is not None:
            break
        seen = _diameter_seen(model, [movie.channel_frame(t, number) for t in list(painted)[:3]])
        if seen is None or 1 / _OFF < seen / diameter < _OFF:
            break
        diameter = seen
        settings = replace(settings, diameter=seen)
    return model


def with_guesses(
    frame: NDArray[Any],
    marks: NDArray[np.integer[Any]],
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None = None,
) -> NDArray[np.uint8]:
    """Strokes on a frame, and some pixels of what the built-in segmentation says of the rest.

    Parameters
    ----------
    frame
        One channel, shape ([Z,] Y, X).
    marks
        Strokes on it, 0 to 3.
    settings
        Decided for the movie.
    scale
        Pixel size per axis; only ratios matter.

    Returns
    -------
    NDArray[np.uint8]
        The strokes, and 4 to 6 where background, cell or edge is guessed.
    """
    found = np.array(marks, dtype=np.uint8)
    # Cells that are left out at the frame's edge are no background for that.
    labels = segment_builtin(frame, replace(settings, clear_border=False), scale)
    if not labels.any() or not found.any():
        return found
    diameter = float(settings.diameter or 20.0)
    sampling = sampling_of(scale, frame.shape, diameter)
    none = int(labels.max()) + 1
    lowest = ndi.minimum_filter(np.where(labels > 0, labels, none), 3)
    highest = ndi.maximum_filter(labels, 3)
    away = ndi.distance_transform_edt(labels == 0, sampling=sampling)
    inner = ndi.minimum_filter(labels, 3) == highest
    edge = (highest > 0) & (lowest < none) & (highest != lowest)
    near = (away > 1.5) & (away < diameter)
    for region, value, most in (near, 1, 200), ((labels > 0) & inner, 2, 150), (edge, 3, 40):
        places = np.flatnonzero(region & (found == 0))
        some = np.linspace(0, len(places) - 1, min(len(places), most)).round().astype(np.intp)
        found.flat[places[some]] = value + GUESSED
    return found


def _diameter_seen(model: PixelModel, frames: list[NDArray[Any]]) -> float | None:
    """Diameter of the cells that a model finds in some frames; None where it finds none."""
    if "cell" not in model.classes:
        return None
    row = model.classes.index("cell")
    found = [estimate_diameter(model.probability(frame)[row]) for frame in frames]
    known = [d for d in found if d is not None]
    return float(np.median(known)) if known else None


def check_strokes(movie: Movie, strokes: Movie) -> None:
    """Check that strokes have the extent of the movie.

    Raises
    ------
    InputError
        Where they have another; the message names both.
    """
    extents = [(m.n_frames, *(m.geometry.shape or ())) for m in (movie, strokes)]
    if extents[0] != extents[1]:
        raise InputError(
            f"the strokes ({strokes.source}) have shape {extents[1]} and the movie "
            f"({movie.source}) has shape {extents[0]} (time, space); they must be the same: paint "
            "on all frames of this movie, in a label layer of its shape"
        )


def painted_frames(strokes: Movie) -> dict[int, NDArray[np.uint8]]:
    """Frames on which something is painted, by number; shape ([Z,] Y, X) each.

    Raises
    ------
    InputError
        Where there are other values than 0 to 3.
    """
    found = {}
    for t in range(strokes.n_frames):
        marks = label_frame(strokes, t)
        if marks.max(initial=0) > len(CLASSES):
            raise InputError(
                f"{strokes.source}, frame {t}: strokes are 1 (background), 2 (cell) or 3 (edge "
                f"between cells), but one is {int(marks.max())}; are these labels of cells?"
            )
        if marks.any():
            found[t] = marks.astype(np.uint8)
    return found


@dataclass(frozen=True)
class UncertainPlace:
    """Where a stroke would teach most.

    Parameters
    ----------
    frame
        Number of the frame.
    point
        The pixel, ([z,] y, x).
    doubt
        Mean entropy of the classes around it, 0 (sure) to 1 (all are equally probable).
    """

    frame: int
    point: tuple[int, ...]
    doubt: float


def doubtful_place(
    probability: NDArray[np.float32], marks: NDArray[Any], model: PixelModel, frame: int = 0
) -> UncertainPlace:
    """The least certain place of a frame, away from what is painted.

    Parameters
    ----------
    probability
        Of the frame, see `PixelModel.probability`.
    marks
        Strokes on the frame, 0 to 3.
    model
        The model behind it.
    frame
        Its number.
    """
    entropy = -np.sum(probability * np.log(np.maximum(probability, 1e-6)), axis=0)
    doubt = gaussian(
        (entropy / np.log(len(probability))).astype(np.float32), model.diameter / 6, model.sampling
    )
    if marks.any():
        away = ndi.distance_transform_edt(marks == 0, sampling=model.sampling)
        doubt = np.where(away > model.diameter / 2, doubt, 0)
    point = tuple(int(k) for k in np.unravel_index(int(np.argmax(doubt)), doubt.shape))
    return UncertainPlace(frame, point, float(doubt[point]))


def uncertain_pixels(
    movie: Movie,
    model: PixelModel,
    strokes: Movie | None = None,
    *,
    channel: int | str = 0,
    frames: Iterable[int] | None = None,
) -> Steps[tuple[UncertainPlace, ...]]:
    """Where to paint next: the least certain place of each of some frames, least certain first.

    Parameters
    ----------
    movie, channel
        The movie, and the channel that shows the cells.
    model
        What was learned so far.
    strokes
        What is painted; places close to it are not named again.
    frames
        Frames to look at; five over the movie where None.
    """
    number = movie.channel_number(channel)
    model = model.fitted_to(movie.geometry)
    if frames is None:
        frames = np.unique(np.linspace(0, movie.n_frames - 1, 5).round().astype(int)).tolist()
    wanted, found = list(frames), []
    yield Progress("Looking for doubtful pixels", 0.0)
    for k, t in enumerate(wanted):
        pixels = movie.channel_frame(t, number)
        marks = np.zeros(pixels.shape) if strokes is None else label_frame(strokes, t)
        found.append(doubtful_place(model.probability(pixels), marks, model, t))
        yield Progress("Looking for doubtful pixels", (k + 1) / len(wanted))
    return tuple(sorted(found, key=lambda place: -place.doubt))
