"""Finding the cells of a movie in the background, and trying it on one frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.movie import Movie
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.segmentation import (
    SegmentationSettings,
    movie_settings,
    segment_frame,
    segment_movie,
)


def decide(movie: Movie) -> Steps[SegmentationSettings]:
    """What suits a movie."""
    yield Progress("Looking at the movie", 0.0)
    return movie_settings(movie)


def preview(
    movie: Movie, frame: int, settings: SegmentationSettings, backend: str
) -> Steps[NDArray[Any]]:
    """Cells of one frame."""
    yield Progress("Preview", 0.0)
    return segment_frame(
        movie.channel_frame(frame), settings, scale=movie.geometry.scale, backend=backend
    )


def segment_all(movie: Movie, settings: SegmentationSettings, backend: str) -> Steps[NDArray[Any]]:
    """Cells of all frames, shape (T, [Z,] Y, X)."""
    shape = (movie.n_frames, *(movie.geometry.shape or ()))
    labels = np.zeros(shape, dtype=np.int32)
    yield Progress("Finding cells", 0.0)
    for done in segment_movie(movie, settings, backend=backend):
        labels[done.frame] = done.labels
        yield Progress("Finding cells", (done.frame + 1) / done.n_frames)
    return labels


def adjusted(
    settings: SegmentationSettings, diameter: float, faint: float, split: float
) -> SegmentationSettings:
    """Settings after three sliders.

    Parameters
    ----------
    settings
        What was decided for the movie.
    diameter
        Cell size in pixels.
    faint
        0 to 1: how faint a cell may be; 0.5 is the default.
    split
        0 to 1: how readily touching cells are split; 0.5 is the default.
    """
    defaults = SegmentationSettings()
    depth = settings.depth if settings.depth is not None else 0.05
    return replace(
        settings,
        diameter=diameter,
        sensitivity=defaults.sensitivity * 8 ** (1 - 2 * faint),
        depth=depth * 10 ** (1 - 2 * split),
    )
