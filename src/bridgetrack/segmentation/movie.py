"""Segment whole movies, one frame in memory at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from bridgetrack.movie.movie import Movie
from bridgetrack.segmentation.backends import Segmenter, make_segmenter
from bridgetrack.segmentation.cells import Labels
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
        total score would be lower without it.
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
    network: str | None = None,
    workers: Workers | None = None,
    frames: Iterable[int] | None = None,
) -> Iterator[SegmentedFrame]:
    """Segment a movie frame by frame; close the generator to cancel.

    Parameters
    ----------
    movie
        The movie.
    settings, backend, network
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
    if backend == "builtin":
        settings = movie_settings(movie, settings, channel=number)
    shared = _Frames(movie, number, backend, settings, network)
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
    network: str | None

    @cached_property
    def segmenter(self) -> Segmenter:
        """From a frame to labels."""
        scale = self.movie.geometry.scale
        return make_segmenter(
            self.settings, scale=scale, backend=self.backend, network=self.network
        )


def _segment(frames: _Frames, t: int) -> Generator[float, None, Labels]:
    yield 0.0
    return frames.segmenter(frames.movie.channel_frame(t, frames.channel))
