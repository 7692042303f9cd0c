"""A movie with its cells, as masks or as a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.movie import Geometry, Movie
from bridgetrack.pipeline.finding import Finding


@dataclass(frozen=True)
class MovieAndCells:
    """What is worked on: a movie with its cells, as masks or as a table of centroids."""

    labels: Movie | None  # the cells as masks
    image: Movie | None = None  # intensities
    name: str = "movie"  # what to call it
    path: Path | None = None  # file or folder that the image, or else the segmentation, came from
    files: tuple[Path | None, Path | None] = (None, None)  # those of both
    layers: tuple[Any, Any] = (None, None)  # of both, for panels
    table: Detections | None = None  # the cells where they are no masks
    # the array (time, [z,] y, x) that `labels` show, for masks that are mended to be written into
    # it; None to leave it alone
    pixels: Any = None
    found: Finding | None = None  # how the masks were found, where they were found here
    kept: bool = False  # whether they are those kept when the movie was open before
    channel: int = 0  # number of the channel of the image that shows the cells

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
