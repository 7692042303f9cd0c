"""Projects: everything that is needed to go on or to repeat a run, and their files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bridgetrack.annotations.annotation_set import AnswerHistory
from bridgetrack.annotations.files import ANNOTATION_FILE, history_to_json
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.files import program_version, resolved
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.results import FORMATS
from bridgetrack.io.tables import read_detections_csv
from bridgetrack.models.model import MODEL_FILE, Model, model_to_json
from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import track_steps
from bridgetrack.progress import Steps
from bridgetrack.schema import FileFormat, JsonObject, OpenEntry, json_text, of_dataclass


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
    formats
        What a run writes, as in `write_results`.
    notes
        Whatever else is worth keeping.
    start
        What the model began with, where it learned from these answers: training begins there
        again. None where it did not.
    without
        Kinds of events that do not occur, in the words of `EventKinds`.
    """

    labels: MovieFile
    image: MovieFile | None
    n_frames: int
    shape: tuple[int, ...]
    scale: tuple[float, ...]
    unit: str
    frame_interval: float | None
    history: AnswerHistory
    model: Model
    formats: tuple[str, ...] = ("csv",)
    notes: dict[str, Any] = field(default_factory=dict)
    start: Model | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        EventKinds.without(self.without)
        if not self.formats or not set(self.formats) <= set(FORMATS):
            raise InputError(
                f"the formats {list(self.formats)} must be out of {', '.join(FORMATS)}"
            )

    def open(self) -> tuple[Movie | Detections, Movie | None]:
        """The cells and the image; cells that a CSV file holds come as a table.

        Raises
        ------
        InputError
            Where a file is missing or has another extent than the project says.
        """
        where = {name: getattr(self, name) for name in ("scale", "unit", "frame_interval")}
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
                path, **where, shape=self.shape or None, n_frames=self.n_frames, positions="pixel"
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
    kinds, answers = EventKinds.without(project.without), project.history.annotations
    return (yield from track_steps(cells, image, project.model, answers, kinds=kinds))


_MovieField = Annotated[MovieFile, of_dataclass(MovieFile)]


_AS_THEY_ARE = ("n_frames", "shape", "scale", "unit", "frame_interval", "notes", "without")


class _Export(OpenEntry):
    formats: list[str] = Field(default_factory=lambda: ["csv"])


class _Content(OpenEntry):
    labels: _MovieField
    image: _MovieField | None = None
    n_frames: int
    shape: list[int]
    scale: list[float]
    unit: str
    frame_interval: float | None = None
    export: _Export
    model: Annotated[Model, MODEL_FILE.nested]
    start: Annotated[Model, MODEL_FILE.nested] | None = None
    annotations: Annotated[AnswerHistory, ANNOTATION_FILE.nested]
    notes: JsonObject
    without: list[str] = Field(default_factory=list)

    def project(self) -> Project:
        known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in self}
        history, export = known.pop("annotations"), known.pop("export")
        # "zarr" was a format of earlier versions
        formats = tuple(f for f in export.formats if f != "zarr") or ("csv",)
        return Project(**known, history=history, formats=formats)


PROJECT_FILE = FileFormat(
    "bridgetrack-project",
    1,
    "a project file",
    _Content,
    _Content.project,
    largest=1_000_000_000,
)
"""Project files; paths of movies in them are relative to the file."""


def project_text(project: Project, path: Path) -> str:
    """What stands in the file of a project; its movies are named as seen from there.

    Raises
    ------
    InputError
        Where its models or notes are not made of finite JSON values.
    """
    content = {
        **PROJECT_FILE.head,
        "program": program_version(),
        "labels": _file_to_json(project.labels, path),
        "image": None if project.image is None else _file_to_json(project.image, path),
        **{name: getattr(project, name) for name in _AS_THEY_ARE},
        "export": {"formats": project.formats},
        "model": model_to_json(project.model),
        "start": None if project.start is None else model_to_json(project.start),
        "annotations": {**ANNOTATION_FILE.head, **history_to_json(project.history)},
    }
    return json_text(content, "the project", ascii_only=False)


def _file_to_json(movie: MovieFile, project: Path) -> dict[str, Any]:
    """Paths below the project's folder are kept relative, so that the folder can be moved."""
    full = resolved(movie.path)
    base = resolved(project).parent
    inside = full.is_relative_to(base)
    return {
        "path": full.relative_to(base).as_posix() if inside else str(full),
        "axes": movie.axes,
        "channels": list(movie.channels),
    }


def is_project(path: Path | str) -> bool:
    """Whether a file says that it is a project, whatever its version."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8") as file:
            return f'"{PROJECT_FILE.name}"' in file.read(400)
    except (OSError, UnicodeDecodeError):
        return False


def load_project(path: Path | str) -> Project:
    """Read a project; its movies are not opened yet.

    Raises
    ------
    InputError
        Where the file is missing, damaged, of another kind or of a later version, or its model
        or annotations are.
    """
    project = PROJECT_FILE.read(path)
    base = Path(path).resolve().parent

    def found(movie: MovieFile) -> MovieFile:
        return replace(movie, path=base / movie.path)

    image = None if project.image is None else found(project.image)
    return replace(project, labels=found(project.labels), image=image)
