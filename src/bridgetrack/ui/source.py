"""What is worked on: a movie with its cells, as masks or as a table of centroids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.movie import Geometry, Movie
from bridgetrack.pipeline.progress import Steps
from bridgetrack.pipeline.remeasure import fingerprints, remeasure
from bridgetrack.pipeline.scene import Scene, prepare

Prints = tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The movie that is worked on.

    Parameters
    ----------
    labels
        The segmentation; None where there are only centroids.
    image
        Intensities, None where there are none.
    name
        What to call it.
    path
        File or folder that the image (or else the segmentation) came from.
    files
        Files of image and segmentation, where they have any.
    layers
        Layers that image and cells were taken from, for panels.
    table
        The cells, where there is no segmentation.
    """

    labels: Movie | None
    image: Movie | None = None
    name: str = "movie"
    path: Path | None = None
    files: tuple[Path | None, Path | None] = (None, None)
    layers: tuple[Any, Any] = (None, None)
    table: Detections | None = None

    def __post_init__(self) -> None:
        if (self.labels is None) == (self.table is None):
            raise InputError("a movie needs its cells either as masks or as a table")

    @property
    def geometry(self) -> Geometry:
        """Extent and scale."""
        if self.labels is not None:
            return self.labels.geometry
        assert self.table is not None
        return self.table.geometry


def measured(source: Source, known: tuple[Scene, Prints] | None) -> Steps[tuple[Scene, Prints]]:
    """The cells of a movie with what can happen to them, and marks to notice changes by.

    Parameters
    ----------
    source
        The movie.
    known
        What this returned before the cells were touched up: then only frames that changed are
        measured again.
    """
    labels = source.labels
    if labels is None:
        assert source.table is not None
        return (yield from prepare(source.table)), ()
    prints = yield from fingerprints(labels)
    if known is None:
        return (yield from prepare(labels, source.image)), prints
    scene, before = known
    pairs = enumerate(zip(before, prints, strict=True))
    changed = {t for t, (a, b) in pairs if a != b}
    return (yield from remeasure(scene, labels, source.image, changed)), prints
