"""Projects: everything that is needed to go on or to repeat a run (files: `project_file`).

Project files: written in one step, read with every entry checked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridgetrack.annotations.annotation_set import History
from bridgetrack.annotations.store import FORMAT as ANNOTATIONS
from bridgetrack.annotations.store import encode
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.export.results import FORMATS, write_results
from bridgetrack.files import program_version, unreadable, write_text
from bridgetrack.importing.detections_csv import read_detections_csv
from bridgetrack.models.model import Model, from_json, to_json
from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.pipeline.tracking import Tracking, track_steps
from bridgetrack.progress import Progress, Steps

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


FORMAT = "bridgetrack-project"
VERSION = 1


def save_project(project: Project, path: Path | str) -> Path:
    """Write a project in one step.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    path = Path(path)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "program": program_version(),
        "labels": _file_to_json(project.labels, path),
        "image": None if project.image is None else _file_to_json(project.image, path),
        "n_frames": project.n_frames,
        "shape": list(project.shape),
        "scale": list(project.scale),
        "unit": project.unit,
        "frame_interval": project.frame_interval,
        "export": {"formats": list(project.formats), "preset": project.preset},
        "model": json.loads(to_json(project.model)),
        "start": None if project.start is None else json.loads(to_json(project.start)),
        "annotations": json.loads(encode(project.history)),
        "notes": project.notes,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return write_text(path, text, "the project")


def _file_to_json(movie: MovieFile, project: Path) -> dict[str, Any]:
    """Paths below the project's folder are kept relative, so that the folder can be moved."""
    full = movie.path.resolve()
    base = project.resolve().parent
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
            return f'"{FORMAT}"' in file.read(400)
    except (OSError, UnicodeDecodeError):
        return False


def load_project(path: Path | str) -> Project:
    """Read a project; its movies are not opened yet.

    Raises
    ------
    InputError
        Where the file is missing, damaged, of another kind or of a later version.
    ModelError
        Where its model cannot be used.
    """
    path = Path(path)
    content = _content(path)
    read = _Reader(path, content)
    export = read.get("export", dict)
    labels = read.movie("labels")
    if labels is None:
        raise InputError(f'{path}: "labels" must name a file')
    return Project(
        labels=labels,
        image=read.movie("image"),
        n_frames=read.get("n_frames", int),
        shape=tuple(read.numbers("shape", int)),
        scale=tuple(read.numbers("scale", float)),
        unit=read.get("unit", str),
        frame_interval=read.optional_number("frame_interval"),
        history=ANNOTATIONS.check(read.get("annotations", dict), f"{path}, annotations"),
        model=from_json(json.dumps(read.get("model", dict)), f"{path}, model"),
        formats=tuple(str(f) for f in export.get("formats", ["csv"])),
        preset=str(export.get("preset", "plain")),
        notes=read.get("notes", dict),
        start=read.start(),
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the project cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is not a project file (it is not text)") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {unreadable(text, 'a project file', error)}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f'{path}: this is not a project file (no "format": "{FORMAT}")')
    if content.get("version") != VERSION:
        raise InputError(
            f"{path}: the project has file version {content.get('version')}, this program "
            f"(bridgetrack {program_version()}) reads {VERSION}; update Bridgetrack"
        )
    return content


@dataclass(frozen=True)
class _Reader:
    """Checked access to the entries of a project file."""

    path: Path
    content: dict[str, Any]

    def get(self, name: str, kind: type) -> Any:
        value = self.content.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f'{self.path}: "{name}" is missing or of the wrong kind')
        return value

    def numbers(self, name: str, kind: type) -> list[Any]:
        values = self.get(name, list)
        if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            raise InputError(f'{self.path}: "{name}" must be a list of numbers')
        return [kind(v) for v in values]

    def optional_number(self, name: str) -> float | None:
        return None if self.content.get(name) is None else self.numbers_of([name])[0]

    def numbers_of(self, names: list[str]) -> list[float]:
        values = [self.content[n] for n in names]
        if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            raise InputError(f"{self.path}: {names[0]!r} must be a number")
        return [float(v) for v in values]

    def start(self) -> Model | None:
        """Absent from projects of earlier versions."""
        if self.content.get("start") is None:
            return None
        return from_json(json.dumps(self.get("start", dict)), f"{self.path}, start")

    def movie(self, name: str) -> MovieFile | None:
        entry = self.content.get(name)
        if entry is None:
            return None
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise InputError(f'{self.path}: "{name}" must name a file')
        channels = entry.get("channels", [])
        if not isinstance(channels, list) or not isinstance(entry.get("axes"), str | None):
            raise InputError(f'{self.path}: "{name}" has "axes" or "channels" of the wrong kind')
        full = self.path.resolve().parent / entry["path"]
        return MovieFile(full, entry.get("axes"), tuple(str(c) for c in channels))
