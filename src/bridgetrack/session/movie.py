"""A movie with its cells, as masks or as a table; measuring the cells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.features.default import default_features
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds
from bridgetrack.movie import Geometry, Movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.scene import Scene, fingerprints, prepare, remeasure
from bridgetrack.progress import Steps

Prints = dict[int, int]
"""A number for each frame that changes when its pixels do."""


@dataclass(frozen=True)
class MovieAndCells:
    """What is worked on: a movie with its cells, as masks or as a table of centroids.

    Parameters
    ----------
    labels, table
        The cells: a segmentation, or a table where there is none.
    image
        Intensities, None where there are none.
    name
        What to call it.
    path, files
        File or folder that the image (or else the segmentation) came from; files of both.
    layers
        Layers that image and cells were taken from, for panels.
    pixels
        The array (time, [z,] y, x) that `labels` show, for masks that are mended to be written
        into it; None to leave it alone.
    found, kept
        How the masks were found, where they were found here; whether they are those that were kept
        when the movie was open before.
    channel
        Number of the channel of the image that shows the cells.
    """

    labels: Movie | None
    image: Movie | None = None
    name: str = "movie"
    path: Path | None = None
    files: tuple[Path | None, Path | None] = (None, None)
    layers: tuple[Any, Any] = (None, None)
    table: Detections | None = None
    pixels: Any = None
    found: Finding | None = None
    kept: bool = False
    channel: int = 0

    def __post_init__(self) -> None:
        if (self.labels is None) == (self.table is None):
            raise InputError("a movie needs its cells either as masks or as a table")

    @property
    def cells(self) -> Movie | Detections:
        """The cells, whatever they are."""
        cells = self.table if self.labels is None else self.labels
        assert cells is not None
        return cells

    @property
    def geometry(self) -> Geometry:
        """Extent and scale."""
        return self.cells.geometry


def measured(
    movie: MovieAndCells,
    known: tuple[Scene, Prints] | None = None,
    touched: Collection[int] | None = None,
    kinds: EventKinds = EVERYTHING,
) -> Steps[tuple[Scene, Prints]]:
    """The cells of a movie with what can happen to them, and marks to notice changes by.

    Given what was `known` before the cells were touched up, only frames that changed are measured
    again, out of those `touched` (None: all are looked at).
    """
    labels = movie.labels
    if labels is None:
        assert movie.table is not None
        return (yield from prepare(movie.table, kinds=kinds)), {}
    if known is None:
        prints = yield from fingerprints(labels)
        return (yield from prepare(labels, movie.image, kinds=kinds)), prints
    scene, before = known
    prints = yield from fingerprints(labels, touched)
    changed = {t for t, mark in prints.items() if mark != before.get(t)}
    scene = replace(scene, kinds=kinds)
    base = yield from remeasure(scene, labels, movie.image, changed, default_features())
    return base, {**before, **prints}
