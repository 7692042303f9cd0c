"""Projects: a folder with everything about a movie, from which a run can be repeated.

``NAME.bridgetrack`` beside a movie has the journal of answers, settings and the model
(``answers.json``), which movie and cells they are about (``project.json``), and cells that are in
no file of their own. Earlier versions saved a project as one JSON file, which is read, too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import (
    ANNOTATION_FILE,
    ANSWERS,
    ENDING,
    PROJECT,
    Journal,
    folder_of,
    save_annotations,
)
from bridgetrack.annotations.history import AnswerHistory
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.evaluation.sample import Sample, read_sample
from bridgetrack.files import as_path, replacing, resolved, staged, write_text
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.results import FORMATS
from bridgetrack.io.tables import TABLES, read_detections_csv
from bridgetrack.models.model import MODEL_FILE, Model, shipped_model
from bridgetrack.movie import Geometry, Movie, label_writer, open_labels, open_movie
from bridgetrack.movie.geometry import GeometryField, geometry_to_json
from bridgetrack.movie.movie import label_frame
from bridgetrack.movie.opening import scale_of
from bridgetrack.pipeline.finding import FINDING_FILE, Finding, finding_to_json
from bridgetrack.pipeline.mask_changes import mended
from bridgetrack.progress import Progress, Steps
from bridgetrack.schema import (
    FileFormat,
    JsonObject,
    OpenEntry,
    check,
    json_text,
    made_by,
    of_dataclass,
)
from bridgetrack.tracks.tracks import Tracks

SAMPLE = "check.csv"
CELLS, TABLE, IMAGE = "cells.zarr", "cells.csv", "image.npy"
"""Files of a project beside `ANSWERS` and `PROJECT`; the latter three for data without a file of
its own."""


# ---------------------------------------------------------------------- settings


@dataclass(frozen=True)
class Scale:
    """Length of a pixel along each axis of space, its unit, and minutes of a frame if known."""

    pixel: tuple[Annotated[float, Field(gt=0)], ...]
    unit: str
    minutes: Annotated[float, Field(gt=0)] | None = None

    @classmethod
    def of(cls, geometry: Geometry) -> Scale:
        """The scale of a movie."""
        return cls(tuple(geometry.scale), geometry.unit, geometry.frame_interval)

    def like(self, other: Scale) -> bool:
        """Whether both are equal up to rounding."""
        here, there = ((*s.pixel, s.minutes or 0.0) for s in (self, other))
        alike = len(here) == len(there) and all(map(math.isclose, here, there))
        return alike and self.unit == other.unit


@dataclass(frozen=True)
class Outcome:
    """Outcome of a training, as it is shown."""

    words: tuple[str, ...]  # the result, as sentences
    suited: bool = True  # whether the starting model suits the movie, see `Training`
    doubtful: tuple[str, ...] = ()  # ids of answers that contradict the starting model clearly
    # whether it gets fewer held-out answers wrong than the starting model; None: as many, or it is
    # not known
    better: bool | None = None


class Settings(OpenEntry):
    """Settings and learned values of a movie."""

    # model, start: the model in use, None for the shipped one; what it began with, where it learned
    # from the answers about this movie
    model: Annotated[Model, MODEL_FILE.nested] | None = None
    start: Annotated[Model, MODEL_FILE.nested] | None = None
    # kinds of events that do not occur, in the words of `EventKinds`
    without: list[str] = Field(default_factory=list)
    # read, given: the scale that the movie came with, and the one that was set in its place
    read: Annotated[Scale, of_dataclass(Scale)] | None = None
    given: Annotated[Scale, of_dataclass(Scale)] | None = None
    # outcome of the last training; None if the model in use was not trained on this movie
    training: Annotated[Outcome, of_dataclass(Outcome)] | None = None
    formats: list[str] = Field(default_factory=lambda: ["csv"])  # formats ticked for export

    @property
    def kinds(self) -> EventKinds:
        """What can happen."""
        return EventKinds.without(self.without)

    def checked(self) -> Settings:
        """Raise an `InputError` if a kind of event is unknown; returns the settings."""
        EventKinds.without(self.without)
        return self


def settings_of(content: Mapping[str, Any], where: str) -> Settings:
    """Settings from JSON values.

    Raises an `InputError` where they are damaged; the message names the entry of `where`.
    """

    made = Annotated[Any, made_by(Settings, Settings.checked)]
    settings: Settings = check(made, dict(content), where)
    return settings


# ---------------------------------------------------------------------- the project


@dataclass(frozen=True)
class MovieFile:
    """A movie by its file."""

    path: Path  # file or folder
    axes: str | None = None  # axis order in the file, None where the file says it
    channels: tuple[str, ...] = ()  # names of the channels, empty for those of the file
    channel: int | None = None  # number of the only one that is looked at, None for all


@dataclass(frozen=True)
class Project:
    """The content of a project."""

    # labels, image: the segmentation, or a CSV table of centroids, and the movie; the latter may be
    # None
    labels: MovieFile
    image: MovieFile | None
    geometry: Geometry  # extent and scale of both
    history: AnswerHistory  # the answers and settings, with the steps that can be undone
    channel: int | str = 0  # of the image, the one that shows the cells
    found: Finding | None = None  # how the cells were found; None where they were not found here
    # whether movie and cells are in these files; else the project is opened with its movie
    complete: bool = True

    @cached_property
    def settings(self) -> Settings:
        """Settings and learned values."""
        return settings_of(self.history.settings, "the settings of the project")

    @property
    def model(self) -> Model:
        """The weights in use."""
        return self.settings.model or shipped_model()

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats that a run writes, as in `write_results`."""
        return tuple(f for f in self.settings.formats if f in FORMATS) or ("csv",)

    def cells(self) -> Movie | Detections:
        """The cells, as answers left them; those of a CSV file come as a table.

        Raises an `InputError` where the file is missing or has another extent than the project
        says.
        """
        if not self.complete:
            raise InputError(
                "the movie of this project, or its cells, were in no file when it was made; open "
                "them in the window, and save the project there under another name"
            )
        geometry, path = self.geometry, self.labels.path
        where, extent = scale_of(geometry), {"shape": geometry.shape, "n_frames": geometry.n_frames}
        if path.suffix.lower() in TABLES:
            # positions in micrometres are pixels of 1 um: then no other size of them is known
            scale = None if set(geometry.scale) == {1.0} else geometry.scale
            return read_detections_csv(path, **where | extent | {"scale": scale})
        labels = open_labels(path, axes=self.labels.axes, **where)
        self._check(labels, path)
        return mended(labels, self.history.masks)

    def open(self) -> tuple[Movie | Detections, Movie | None]:
        """The cells, see `cells`, and the image; raises as that."""
        cells, file = self.cells(), self.image
        if file is None:
            return cells, None
        image = open_movie(
            file.path, axes=file.axes, channels=file.channels or None, channel=file.channel,
            **scale_of(self.geometry),
        )  # fmt: skip
        self._check(image, file.path)
        return cells, image

    def _check(self, movie: Movie, path: Path) -> None:
        have, want = ((g.n_frames, *(g.shape or ())) for g in (movie.geometry, self.geometry))
        if have != want:
            raise InputError(
                f"{path}: the movie has shape {have} (time, space), the project was made with "
                f"{want}; put the old file back, or make the project again"
            )


# ---------------------------------------------------------------------- files

_MovieField = Annotated[MovieFile, of_dataclass(MovieFile)]


class _Content(OpenEntry):
    movie: GeometryField
    labels: _MovieField
    image: _MovieField | None = None
    channel: int | str = 0
    found: Annotated[Finding, FINDING_FILE.nested] | None = None
    complete: bool = True

    def project(self) -> Project:
        known = {name: value for name, value in self if name != "movie"}
        history = AnswerHistory(AnnotationSet(self.movie))
        return Project(geometry=self.movie, history=history, **known)


PROJECT_FILE = FileFormat("bridgetrack-project", 2, "a project", _Content, _Content.project)
"""Which movie and cells a project is about; paths in it are seen from the project's folder."""


class _Earlier(OpenEntry):
    """A project in one file, with its answers; settings are checked when they are used."""

    labels: _MovieField
    image: _MovieField | None = None
    n_frames: int
    shape: list[int]
    scale: list[float]
    unit: str
    frame_interval: float | None = None
    export: JsonObject
    model: JsonObject
    start: JsonObject | None = None
    annotations: Annotated[AnswerHistory, replace(ANNOTATION_FILE, version=1).nested]
    notes: JsonObject
    without: list[str] = Field(default_factory=list)

    def project(self) -> Project:
        shape, scale = tuple(self.shape) or None, tuple(self.scale)
        movie = Geometry(self.n_frames, shape, scale, self.unit, self.frame_interval)
        settings = {
            "model": self.model,
            "start": self.start,
            "without": self.without,
            "formats": self.export.get("formats"),
        }
        history = replace(
            self.annotations, settings={name: value for name, value in settings.items() if value}
        )
        found, channel = self.notes.get("cells_found"), self.notes.get("channel", 0)
        how = None if found is None else FINDING_FILE.check(found, "cells_found")
        return Project(self.labels, self.image, movie, history, channel, how)


_EARLIER_FILE = FileFormat(PROJECT_FILE.name, 1, "a project file", _Earlier, _Earlier.project)


def is_project(path: str | os.PathLike[str]) -> bool:
    """Whether a folder or file is a project of any version; not by a name without the ending, which
    a model may have, too."""
    folder = folder_of(path) if as_path(path).exists() else None
    file = as_path(path) if folder is None else folder / PROJECT
    try:
        with file.open(encoding="utf-8") as content:
            return f'"{PROJECT_FILE.name}"' in content.read(400)
    except (OSError, UnicodeDecodeError):
        return False


def load_project(path: str | os.PathLike[str]) -> Project:
    """Read a project: its folder, the ``project.json`` in it, or a file of an earlier version.

    Its movies are not opened yet. Raises an `InputError` where it is missing, damaged, of another
    kind or of a later version, or its settings or answers are.
    """
    folder = folder_of(path)
    if folder is None and not Path(path).exists():
        raise InputError(f"{path}: there is no such project")
    other = folder is None and Path(path).is_file() and Path(path).suffix.lower() != ".json"
    if other or (folder and not any((folder / name).exists() for name in (PROJECT, ANSWERS))):
        raise InputError(
            f"{path}: this is not a project; give the folder NAME{ENDING} beside the movie, or "
            "track masks by bridgetrack track"
        )
    if folder is None:
        found, base = _EARLIER_FILE.read(Path(path)), Path(path).resolve().parent
    else:
        found, base = PROJECT_FILE.read(folder / PROJECT), folder.resolve()
        found = replace(found, history=Journal(folder / ANSWERS).read(found.history))
    settings_of(found.history.settings, str(path if folder is None else folder / ANSWERS))

    def there(movie: MovieFile) -> MovieFile:
        return replace(movie, path=resolved(base / movie.path))

    image = None if found.image is None else there(found.image)
    return replace(found, labels=there(found.labels), image=image)


def judged_sample(project: Path | None, tracks: Tracks) -> Sample | None:
    """The judged sample of these tracks, if a project's folder holds one; else None."""
    with suppress(InputError):  # there is none, or one of tracks that do not exist any more
        return None if project is None else read_sample(project / SAMPLE, tracks)
    return None


def save_project(project: Project, folder: Path, place: Path | None = None) -> None:
    """Write a project into its folder: its answers, and which movie they are about.

    `place` is where the folder will be, if that is elsewhere. Raises an `OutputError` where it
    cannot be written.
    """
    save_annotations(project.history, folder / ANSWERS)
    write_text(folder / PROJECT, project_text(project, place or folder), "the project")


def project_text(project: Project, folder: Path) -> str:
    """The text of ``project.json``; paths of movies nearby are relative to the folder."""
    found = project.found
    content = {
        **PROJECT_FILE.head,
        "movie": geometry_to_json(project.geometry),
        "labels": _file_to_json(project.labels, folder),
        "image": None if project.image is None else _file_to_json(project.image, folder),
        "channel": project.channel,
        "found": None if found is None else finding_to_json(found),
        "complete": project.complete,
    }
    return json_text(content, "the project", ascii_only=False)


def _file_to_json(movie: MovieFile, folder: Path) -> Mapping[str, Any]:
    """A path beside the folder, or in it, is kept relative, so that all can be moved together."""
    full, base = resolved(movie.path), resolved(folder)
    near = full.is_relative_to(base.parent)
    path = Path(os.path.relpath(full, base)).as_posix() if near else str(full)
    return {**asdict(movie), "path": path, "channels": list(movie.channels)}


# ---------------------------------------------------------------------- movies and cells in it


def is_in(file: Path | None, folder: Path) -> bool:
    """Whether a file is in a project's folder."""
    return file is not None and resolved(file).parent == resolved(folder)


def cells_in(folder: Path, cells: Movie | Detections) -> MovieFile:
    """The file in a folder for cells that have no file of their own."""
    return MovieFile(folder / (TABLE if isinstance(cells, Detections) else CELLS))


def write_cells(cells: Movie | Detections, folder: Path) -> Steps[None]:
    """Write cells that have no file of their own."""
    yield Progress("Keeping the cells", 0.0)
    path = cells_in(folder, cells).path
    if isinstance(cells, Detections):
        columns = ["frame", "label", *cells.geometry.axes, "area"]
        with replacing(path, "the cells") as spare:
            cells.table[columns].to_csv(spare, index=False, lineterminator="\n")
        return
    with staged(path) as spare, label_writer(spare, cells.geometry, dtype="uint32") as write:
        for t in range(cells.n_frames):
            write(label_frame(cells, t))
            yield Progress("Keeping the cells", (t + 1) / cells.n_frames)


def write_image(image: Movie, folder: Path, place: Path) -> MovieFile:
    """Write a movie that is in no file into a project's folder, which will be at `place`."""
    # one of one channel has no axis for it
    array = image.array if len(image.channels) > 1 else image.array[:, 0]
    with replacing(folder / IMAGE, "the movie") as spare:
        np.save(spare, np.asarray(array.compute()), allow_pickle=False)
    return MovieFile(place / IMAGE, _axes_of(image), image.channels)


def file_of(
    movie: Movie,
    known: Path | None,
    place: Path,
    *,
    labels: bool = False,
    masks: MaskAnswers | None = None,
) -> MovieFile | None:
    """The file that a movie came from, as far as that holds it.

    What is in another project may go on changing. Pixels of labels are compared where there are
    `masks`, with their changes.
    """
    if known is None or (known.parent.suffix == ENDING and not is_in(known, place)):
        return None
    frames = {0, movie.n_frames // 2}
    if labels:
        frames = set() if masks is None else set(range(movie.n_frames))
    for axes in (None, _axes_of(movie)):
        try:
            whole = open_labels(known, axes=axes) if labels else open_movie(known, axes=axes)
        except BridgetrackError:
            continue
        n = len(whole.channels)
        for channel in [None] if n == len(movie.channels) else range(n):
            there = whole if channel is None else open_movie(whole, channel=channel)
            if there.array.shape != movie.array.shape:
                continue
            there = there if masks is None else mended(there, masks)
            if all(np.array_equal(movie.frame(t), there.frame(t)) for t in frames):
                names = () if labels or channel is not None else movie.channels
                return MovieFile(known, axes, names, channel)
    return None


def _axes_of(movie: Movie) -> str:
    return f"T{'C' * (len(movie.channels) > 1)}{'Z' * (movie.geometry.ndim == 3)}YX"
