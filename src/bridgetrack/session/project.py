"""The project of the open movie: a folder beside it, in which everything is saved at once."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path
from psygnal import Signal

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import ANSWERS, ENDING, PROJECT, SUFFIX, Journal, folder_of
from bridgetrack.annotations.history import AnswerChange, AnswerHistory
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.evaluation.sample import write_sample
from bridgetrack.files import is_ours, resolved, signed, write_text
from bridgetrack.movie import Movie, open_labels
from bridgetrack.movie.geometry import Geometry
from bridgetrack.pipeline.finding import Finding, how_found
from bridgetrack.pipeline.project import (
    CELLS,
    PROJECT_FILE,
    SAMPLE,
    Project,
    cells_in,
    file_of,
    is_in,
    is_project,
    load_project,
    project_text,
    save_project,
    write_cells,
    write_image,
)
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.movie import MovieAndCells

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "keep cells"
"""Name of the background work that saves cells and the movie that they belong to."""


# ---------------------------------------------------------------------- where it is


def usual_folder(movie: Path | None, name: str, geometry: Geometry) -> Path:
    """The folder of a movie's project.

    Beside the movie, or in the user's data folder where there is no file or its folder cannot
    be written to. It has the name of the movie, the whole one where it has a `namesake`.
    """
    if movie is not None and os.access(movie.parent, os.W_OK):
        return _whole(movie) if namesake(movie) else _stem(movie)
    known = f"{movie.resolve() if movie else name}|{geometry.n_frames}|{geometry.shape}"
    mark = hashlib.sha256(known.encode()).hexdigest()[:12]
    plain = "".join(c if c.isalnum() else "_" for c in (movie.stem if movie else name))[:40]
    folder = user_data_path("bridgetrack", appauthor=False) / "annotations"
    return folder / f"{plain}-{mark}{ENDING}"


def namesake(movie: Path) -> Path | None:
    """Another movie of the same stem, which has the project of that name; None without one.

    Where it is gone, this one is taken to be the same in another format, unless there is a project
    of its own.
    """
    folder = _stem(movie)
    try:
        known = PROJECT_FILE.read(folder / PROJECT)
        other = resolved(folder / (known.image or known.labels).path)
        shared = other != resolved(movie) and _stem(other) == resolved(folder)
    except InputError:
        return None
    return other if shared and (other.exists() or _whole(movie).exists()) else None


def _stem(movie: Path) -> Path:
    return movie.with_name(f"{movie.name if movie.is_dir() else movie.stem}{ENDING}")


def _whole(movie: Path) -> Path:
    return movie.with_name(f"{movie.name}{'-folder' if movie.is_dir() else ''}{ENDING}")


def open_store(project: Path, geometry: Geometry) -> AutosavingStore:
    """The answers of a project; those in files of earlier versions are taken over into its folder.

    Parameters
    ----------
    project
        The folder, which need not be there; or a file of an earlier version: a project or one of
        answers, whose folder is beside it.
    geometry
        Extent and scale of the movie.

    Raises
    ------
    BridgetrackError
        Where a file is not valid, or belongs to another movie; where nothing can be written.
    """
    project = project.absolute()
    folder = folder_of(project) or project
    earlier = folder.with_name(f"{folder.name.removesuffix(ENDING)}{SUFFIX}")
    nothing = begin = AnswerHistory(AnnotationSet(geometry))
    if project.is_file() and folder is project:
        stem = project.name.removesuffix(SUFFIX).removesuffix(".json").removesuffix(ENDING)
        earlier = project
        if is_project(project):
            begin, stem = load_project(project).history, f"{stem}-project"
            earlier = project.with_name(f"{project.stem}{SUFFIX}")
        folder = project.with_name(f"{stem}{ENDING}")
        if not os.access(folder.parent, os.W_OK):
            folder = usual_folder(project.with_name(f"{stem}.json"), stem, geometry)
    if (folder / ANSWERS).exists():
        return AutosavingStore(folder / ANSWERS, geometry)
    journal = Journal(earlier)
    known = journal.read(begin)
    if not known.settings:
        known = replace(known, settings=begin.settings)
    store = AutosavingStore(folder / ANSWERS, geometry, None if known == nothing else known)
    store.notice = journal.notice
    sample = earlier.with_name(earlier.name.removesuffix(SUFFIX) + ".check.csv")
    if sample.is_file() and not (folder / SAMPLE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sample, folder / SAMPLE)
    return store


def cells_file(folder: Path) -> Path | None:
    """The file that has the cells of a project, where they are not kept in its folder."""
    with suppress(InputError):
        path = resolved(folder / PROJECT_FILE.read(folder / PROJECT).labels.path)
        return path if path.exists() and not is_in(path, folder) else None
    return None


def kept_cells(folder: Path, geometry: Geometry) -> tuple[Movie, Finding | None] | None:
    """Cells in a project's folder, or where earlier versions kept them, and how they were found.

    None where there are none of this movie.
    """
    path, found = folder / CELLS, None
    if path.exists():
        with suppress(InputError):  # then it is not known
            found = PROJECT_FILE.read(folder / PROJECT).found
    else:
        path = folder.with_suffix(".cells.zarr")
        found = how_found(path)
    try:
        labels = open_labels(path, scale=geometry.scale, unit=geometry.unit)
    except InputError:
        return None
    there = labels.geometry
    fits = (there.n_frames, there.shape) == (geometry.n_frames, geometry.shape)
    return (labels, found) if fits else None


# ---------------------------------------------------------------------- keeping it


class ProjectFolder:
    """Saves which movie is open, and cells that have no file of their own.

    Answers and settings are written by the store. Signals: `aging` when cells changed without an
    answer, so that they must be saved soon.
    """

    aging = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.problem = ""  # why it could not be written last, empty where it could
        self._changes = self._kept = 0  # changes of cells: number so far, last one saved
        self._told = False  # whether it is saved which movie is open
        self._first = True
        session.movie_changed.connect(self._on_movie)
        session.scene_changed.connect(self._on_scene)

    @property
    def path(self) -> Path | None:
        """The folder; None where nothing is open or all is in memory."""
        answers = self._session.answers
        return None if answers is None or answers.path is None else answers.path.parent

    @property
    def stale(self) -> bool:
        """Whether there are cells that are not saved yet."""
        movie, folder = self._session.movie, self.path
        ours = movie is not None and folder is not None and _is_ours(movie, folder)
        return ours and self._kept < self._changes

    def follow(self, change: AnswerChange) -> None:
        """Note that the store has written something.

        The first time, the rest of the project is written, too. Cells may be kept with a change of
        masks that was taken back, which their answers do not contain any more.
        """
        self._changes += bool(change.masks_removed)
        if not self._told or (change.masks_removed and self.stale):
            self.keep()

    def keep(self) -> None:
        """Save, in the background, what is not saved yet."""
        self._write(self._session.work)

    def keep_now(self) -> None:
        """Save at once what is not saved yet; `problem` says why that fails."""
        if self.stale or self._session.busy(JOB):
            self._session.cancel(JOB)
            with suppress(BridgetrackError, OSError):
                self._write(BackgroundWork())

    def _write(self, work: BackgroundWork) -> None:
        movie, folder, changes = self._session.movie, self.path, self._changes
        if movie is None or folder is None:
            return
        self._told, steps = True, _writing(movie, folder, cells=self.stale)

        def done(_: None) -> None:
            self._kept, self.problem = changes, ""

        def failed(error: Exception) -> None:
            self.problem = str(error)

        work.run(JOB, lambda: steps, done, failed)

    def _on_movie(self) -> None:
        movie, folder = self._session.movie, self.path
        self._kept, self._told, self._first, self.problem = self._changes, False, True, ""
        if movie is None or folder is None:
            return
        kept = movie.kept and (folder / CELLS).exists()
        self._changes += not (kept or is_in(movie.files[1], folder))
        known = any((folder / name).exists() for name in (ANSWERS, PROJECT))
        if (self.stale and movie.labels is not None) or known:
            self.keep()

    def _on_scene(self) -> None:
        first, self._first = self._first, False
        self._changes += not first
        if not first and self.stale:
            self.aging.emit()


def saving(session: Session, path: Path, formats: tuple[str, ...] | None = None) -> Steps[Path]:
    """Save a copy of the project in another folder; see `Session.save`.

    The state of the session at the time of the call is saved.
    """
    movie, answers, sample = session.movie, session.answers, session.questions.check.sample
    if movie is None or answers is None:
        raise InputError("there is no movie to save a project of; choose one first")
    if path.name in ("", ".."):
        raise OutputError(f"{path} ends in no name; give that of a new folder for the copy")
    folder = path if path.suffix == ENDING else path.with_name(f"{path.name}{ENDING}")
    if session.project.path is not None and resolved(folder) == resolved(session.project.path):
        raise OutputError(
            f"{folder} is the project that is open, and everything is already saved in it; give "
            "another name for a copy"
        )
    if folder.exists() and not is_ours(folder):
        raise OutputError(
            f"{folder} is there already, and was not saved from here or was changed since; give "
            "another name"
        )
    history = answers.history
    if formats is not None:
        history = replace(history, settings={**history.settings, "formats": list(formats)})

    def steps() -> Steps[Path]:
        with signed(folder) as spare:
            spare.mkdir()
            yield from _writing(movie, folder, history, spare)
            if sample is not None:
                write_sample(sample, spare / SAMPLE)
        return folder

    return steps()


def _writing(
    movie: MovieAndCells,
    place: Path,
    history: AnswerHistory | None = None,
    folder: Path | None = None,
    *,
    cells: bool = False,
) -> Steps[None]:
    """Write which movie a project is about, and cells that are in no file of their own.

    With its `history` it becomes whole: a movie that is in no file comes along, too. `folder` is
    where to write what will be at its `place`; `cells` says whether they are to be written.
    """
    whole, folder = history is not None, folder or place
    masks = None if history is None else history.masks
    image = labels = None
    if movie.image is not None:
        yield Progress("Saving the movie", 0.0)
        if not (whole and is_in(movie.files[0], place)):  # whose place the copy takes
            image = file_of(movie.image, movie.files[0], place)
        if whole and image is None:
            image = write_image(movie.image, folder, place)
    ours = _is_ours(movie, place)
    if movie.labels is not None and not ours:
        labels = file_of(movie.labels, movie.files[1], place, labels=True, masks=masks)
    if cells or (whole and labels is None):
        yield from write_cells(movie.cells, folder)
    complete = whole or ((ours or labels is not None) and (image is None) == (movie.image is None))
    nothing = AnswerHistory(AnnotationSet(movie.geometry))
    project = Project(
        labels or cells_in(place, movie.cells), image, movie.geometry, history or nothing,
        movie.channel, movie.found, complete,
    )  # fmt: skip
    if history is not None:
        save_project(project, folder, place)
        return
    file, text = folder / PROJECT, project_text(project, place)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text(file, text, "the project")


def _is_ours(movie: MovieAndCells, folder: Path) -> bool:
    """Whether the cells have no lasting file of their own outside the folder."""
    file = movie.files[1]
    return movie.table is not None or file is None or is_in(file, folder)
