"""Projects: everything that is needed to go on or to repeat a run (files: `project_file`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgetrack.annotations.history import History
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.export.results import FORMATS, write_results
from bridgetrack.importing.detections_csv import read_detections_csv
from bridgetrack.models.model import Model
from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.tracking import Tracking, track_steps

PRESETS = ("plain", "trackmate", "ilastik")


@dataclass(frozen=True)
class MovieFile:
    """A movie by its file.

    Parameters
    ----------
    path
        File or folder.
    axes
        Axis order in the file, None where the file says it.
    channels
        Names of the channels, empty for those of the file.
    """

    path: Path
    axes: str | None = None
    channels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Project:
    """What a project file holds.

    Parameters
    ----------
    labels, image
        The segmentation, or a CSV table of centroids, and the movie; the latter may be None.
    n_frames, shape
        Extent of both, to notice that a file was replaced.
    scale, unit, frame_interval
        As in `Geometry`.
    history
        The answers with what can be undone.
    model
        The weights.
    formats, preset
        What a run writes, as in `write_results`.
    notes
        Whatever else is worth keeping.
    start
        What the model began with, where it learned from these answers: training begins there
        again. None where it did not.
    """

    labels: MovieFile
    image: MovieFile | None
    n_frames: int
    shape: tuple[int, ...]
    scale: tuple[float, ...]
    unit: str
    frame_interval: float | None
    history: History
    model: Model
    formats: tuple[str, ...] = ("csv",)
    preset: str = "plain"
    notes: dict[str, Any] = field(default_factory=dict)
    start: Model | None = None

    def __post_init__(self) -> None:
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InputError(
                f"the formats {list(self.formats)} must be out of {', '.join(FORMATS)}"
            )
        if self.preset not in PRESETS:
            raise InputError(
                f"there is no preset {self.preset!r}; choose from {', '.join(PRESETS)}"
            )

    def open(self) -> tuple[Movie | Detections, Movie | None]:
        """The cells and the image; cells that a CSV file holds come as a table.

        Raises
        ------
        InputError
            Where a file is missing or has another extent than the project says.
        """
        where: dict[str, Any] = {
            "scale": self.scale,
            "unit": self.unit,
            "frame_interval": self.frame_interval,
        }
        labels = self._cells(where)
        if self.image is None:
            return labels, None
        names = self.image.channels or None
        image = open_movie(self.image.path, axes=self.image.axes, channels=names, **where)
        self._check(image, self.image.path)
        return labels, image

    def _cells(self, where: dict[str, Any]) -> Movie | Detections:
        path = self.labels.path
        if path.suffix.lower() == ".csv":
            return read_detections_csv(
                path,
                **where,
                shape=self.shape or None,
                n_frames=self.n_frames,
                positions="pixel",
            )
        labels = open_labels(path, axes=self.labels.axes, **where)
        self._check(labels, path)
        return labels

    def _check(self, movie: Movie, path: Path) -> None:
        have = (movie.geometry.n_frames, *(movie.geometry.shape or ()))
        want = (self.n_frames, *self.shape)
        if have != want:
            raise InputError(
                f"{path}: the movie has shape {have} (time, space), the project was made with "
                f"{want}; put the old file back, or make the project anew"
            )


def run_project(project: Project) -> Steps[Tracking]:
    """Track a project's movie with its model and answers.

    Raises
    ------
    BridgetrackError
        Where a file is missing or does not fit.
    """
    cells, image = project.open()
    if isinstance(cells, Detections):
        # Without masks there is nothing to measure the image in.
        image = None
    return (yield from track_steps(cells, image, project.model, project.history.annotations))


def export_project(project: Project, tracking: Tracking, folder: Path) -> Steps[tuple[str, ...]]:
    """Write what the project asks for; returns what a format could not hold."""
    yield Progress("Writing", 0.0)
    return write_results(
        tracking.tracks, tracking.scene.labels, folder, project.formats, preset=project.preset
    )
