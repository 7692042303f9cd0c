"""Segment whole movies, one frame in memory at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.files import refuse_inputs
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.writers import label_writer
from bridgetrack.segmentation.backends import Segmenter, make_probability, make_segmenter
from bridgetrack.segmentation.cells import Labels
from bridgetrack.segmentation.pixels import PixelModel
from bridgetrack.segmentation.readings import estimate_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.spread import Here, Workers


@dataclass(frozen=True)
class SegmentedFrame:
    """One frame that is done.

    Parameters
    ----------
    frame
        Its number.
    n_frames
        How many there are.
    labels
        Labels 1 to n, 0 for background, shape ([Z,] Y, X).
    margins
        How sure each cell is, where masks were chosen among candidates: a table of ``frame``,
        ``label``, ``score`` (log-odds that it is a cell) and ``margin_at_least``, by how much the
        total score would be lower without it; NaN where each frame was decided by itself.
    """

    frame: int
    n_frames: int
    labels: Labels
    margins: pd.DataFrame | None = None


def movie_settings(
    movie: Movie, settings: SegmentationSettings | None = None, *, channel: int | str = 0
) -> SegmentationSettings:
    """Settings in which what was left open is decided for the whole movie.

    Parameters
    ----------
    movie, settings, channel
        See `estimate_settings`, which also says how sure that is.
    """
    return estimate_settings(movie, settings, channel=channel).settings


def segment_movie(
    movie: Movie,
    settings: SegmentationSettings | None = None,
    *,
    channel: int | str = 0,
    backend: str = "builtin",
    model: PixelModel | str | None = None,
    workers: Workers | None = None,
    frames: Iterable[int] | None = None,
) -> Iterator[SegmentedFrame]:
    """Segment a movie frame by frame; close the generator to cancel.

    Parameters
    ----------
    movie
        The movie.
    settings, backend, model
        See `make_segmenter`; what the settings leave open is decided once for the movie.
    channel
        Number or name of the channel that shows the cells.
    workers
        Who segments the frames; this process where None.
    frames
        Which frames, in order of time; all where None.

    Yields
    ------
    SegmentedFrame
        In order of time.

    Raises
    ------
    InputError
        Where a frame cannot be read or there is no such channel.
    DependencyError
        Where the back end is not installed.
    """
    number = movie.channel_number(channel)
    todo = list(range(movie.n_frames) if frames is None else frames)
    shared = _Frames(movie, number, backend, *_decided(movie, settings, number, backend, model))
    found = (workers or Here()).stream(_segment, shared, todo)
    for t, labels in zip(todo, found, strict=True):
        yield SegmentedFrame(t, movie.n_frames, labels)


@dataclass(frozen=True)
class _Frames:
    """A movie to be segmented; what segments it is made once in every process."""

    movie: Movie
    channel: int
    backend: str
    settings: SegmentationSettings | None
    model: PixelModel | str | None

    @cached_property
    def segmenter(self) -> Segmenter:
        """From a frame to labels."""
        scale = self.movie.geometry.scale
        return make_segmenter(self.settings, scale=scale, backend=self.backend, model=self.model)


def _segment(frames: _Frames, t: int) -> Generator[float, None, Labels]:
    yield 0.0
    return frames.segmenter(frames.movie.channel_frame(t, frames.channel))


def segment_to_file(
    movie: Movie,
    path: str | Path,
    settings: SegmentationSettings | None = None,
    *,
    channel: int | str = 0,
    backend: str = "builtin",
    model: PixelModel | str | None = None,
) -> Generator[SegmentedFrame, None, Path]:
    """Segment a movie and write each frame at once; the result appears when all are done.

    Closing the generator cancels, and removes what was written.

    Parameters
    ----------
    movie, settings, channel, backend, model
        See `segment_movie`.
    path
        A name that ends in ``.tif`` gives a TIFF stack, any other a folder of masks.

    Yields
    ------
    SegmentedFrame
        After it was written.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    OutputError
        Where it cannot be written, or is what the movie is read from.
    """
    refuse_inputs([Path(path)], [movie.source])
    frames = segment_movie(movie, settings, channel=channel, backend=backend, model=model)
    with label_writer(path, movie.geometry) as writer:
        for done in frames:
            writer.write(done.labels)
            yield done
    return writer.path


def segment_lazily(
    movie: Movie,
    settings: SegmentationSettings | None = None,
    *,
    channel: int | str = 0,
    backend: str = "builtin",
    model: PixelModel | str | None = None,
) -> Movie:
    """A label movie whose frames are segmented when they are looked at.

    Parameters
    ----------
    movie, settings, channel, backend, model
        See `segment_movie`.
    """
    number = movie.channel_number(channel)
    segmenter = _segmenter(movie, settings, number, backend, model)

    def segment(block: NDArray[Any]) -> NDArray[np.int32]:
        return segmenter(block[0, 0])[np.newaxis, np.newaxis]

    array = movie.array[:, number : number + 1]
    array = array.rechunk((1, 1, *(movie.geometry.shape or ())))
    labels = array.map_blocks(segment, dtype=np.int32, meta=np.empty((0,) * array.ndim, np.int32))
    return replace(movie, array=labels, channels=("labels",))


def probability_movie(
    movie: Movie,
    model: PixelModel | str | None = None,
    *,
    settings: SegmentationSettings | None = None,
    channel: int | str = 0,
    backend: str = "builtin",
) -> Movie:
    """How probable it is that a pixel belongs to a cell, computed when a frame is looked at.

    Parameters
    ----------
    movie
        The movie.
    model
        What was learned from strokes; or, for the other back ends, name or path of a network.
    settings, channel, backend
        See `segment_movie`.

    Returns
    -------
    Movie
        Channels ``"cell"`` and, where edges between cells were painted, ``"edge"``; float32.
    """
    number = movie.channel_number(channel)
    if isinstance(model, PixelModel):
        model = model.fitted_to(movie.geometry)
    scale = movie.geometry.scale
    kinds, prober = make_probability(settings, scale=scale, backend=backend, model=model)

    def told(block: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(prober(block[0, 0])[np.newaxis], dtype=np.float32)

    array = movie.array[:, number : number + 1]
    array = array.rechunk((1, 1, *(movie.geometry.shape or ())))
    chunks = (array.chunks[0], (len(kinds),), *array.chunks[2:])
    meta = np.empty((0,) * array.ndim, np.float32)
    found = array.map_blocks(told, dtype=np.float32, meta=meta, chunks=chunks)
    return replace(movie, array=found, channels=kinds)


def _segmenter(
    movie: Movie,
    settings: SegmentationSettings | None,
    channel: int,
    backend: str,
    model: PixelModel | str | None,
) -> Segmenter:
    """The segmenter of a movie; networks find out what the built-in one is told, once for all."""
    settings, model = _decided(movie, settings, channel, backend, model)
    return make_segmenter(settings, scale=movie.geometry.scale, backend=backend, model=model)


def _decided(
    movie: Movie,
    settings: SegmentationSettings | None,
    channel: int,
    backend: str,
    model: PixelModel | str | None,
) -> tuple[SegmentationSettings | None, PixelModel | str | None]:
    """Settings and model with all that hangs on the whole movie."""
    if isinstance(model, PixelModel):
        model = model.fitted_to(movie.geometry)
    elif backend == "builtin":
        settings = movie_settings(movie, settings, channel=channel)
    return settings, model
