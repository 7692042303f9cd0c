"""Saving the open movie with its answers and its model as a project, and opening one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from bridgetrack.annotations.store import save_annotations
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import replacing
from bridgetrack.movie import Movie, open_labels, open_movie, save_labels
from bridgetrack.pipeline.project import MovieFile, Project, load_project, save_project
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.answers import project_answers, questions_path
from bridgetrack.session.movie import MovieAndCells, TrackedMovie


def saving(
    session: TrackedMovie, path: Path, formats: tuple[str, ...] = ("csv",), preset: str = "plain"
) -> Steps[list[str]]:
    """Save what is needed to go on or to repeat the run: the state at the time of the call.

    Pixels that are in no file, or that were painted over since, are written beside the project.

    Returns
    -------
    list of str
        What was written besides the project.

    Raises
    ------
    InputError
        Where no movie is open.
    OutputError
        Where something cannot be written.
    """
    movie, answers, model = session.movie, session.answers, session.model
    if movie is None or answers is None:
        raise InputError("there is no movie to save a project of; choose one first")
    history, known = answers.history, movie.geometry
    start = None if session.start is model else session.start

    def steps() -> Steps[list[str]]:
        notes: list[str] = []
        stem = path.name.split(".")[0]
        image = None
        if movie.image is not None:
            yield Progress("Saving the movie", 0.0)
            copy = path.with_name(f"{stem}_image.npy")
            image = _file_of(movie.image, movie.files[0], copy, notes)
        yield Progress("Saving the cells", 0.5)
        labels = _cells_file(movie, path.with_name(f"{stem}_cells"), notes)
        yield Progress("Saving the project", 0.9)
        extent = (known.n_frames, tuple(known.shape or ()), known.scale, known.unit)
        what = (history, model, formats or ("csv",), preset)
        project = Project(labels, image, *extent, known.frame_interval, *what, start=start)
        save_project(project, path)
        beside = project_answers(path, known)
        if beside.exists() and beside != answers.path:
            # Of an earlier project of this name; opening this one must not bring them back.
            save_annotations(history, beside)
        _carry_questions(answers.path, beside)
        return notes

    return steps()


def resume(session: TrackedMovie, movie: MovieAndCells, file: Path) -> bool:
    """Open a project's movie with its model and its answers, or with later answers."""
    try:
        project = load_project(file)
        path = project_answers(file, movie.geometry)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            save_annotations(project.history, path)
    except (BridgetrackError, OSError) as error:
        session.tell(error)
        return False
    if not session.open(movie, path):
        return False
    session.set_model(project.model, project.start)
    return True


def _carry_questions(answers: Path | None, beside: Path) -> None:
    """What the model asked goes with the project, so that it goes on asking where it stood."""
    here, there = None if answers is None else questions_path(answers), questions_path(beside)
    if here == there:
        return
    if here is not None and here.exists():
        content = here.read_bytes()
        _write(there, lambda file: file.write(content))
    else:
        # Of an earlier project of this name.
        there.unlink(missing_ok=True)


def _cells_file(movie: MovieAndCells, copy: Path, notes: list[str]) -> MovieFile:
    """Where the cells are; a table is always written anew, for points are moved easily."""
    if movie.labels is not None:
        return _file_of(movie.labels, movie.files[1], copy.with_suffix(".tif"), notes)
    assert movie.table is not None
    file, table = copy.with_suffix(".csv"), movie.table
    _write(file, lambda f: _table_to_csv(table, f))
    notes.append(f"The cells are in {file.name}.")
    return MovieFile(file, None, ())


def _file_of(movie: Movie, known: Path | None, copy: Path, notes: list[str]) -> MovieFile:
    """The movie's file where it still holds these pixels, else a copy."""
    labels = copy.suffix == ".tif"
    axes = "TZYX" if movie.geometry.ndim == 3 else "TYX"
    names = () if labels else movie.channels
    if known is not None:
        for guess in (None, axes):
            if _same(movie, known, guess, labels):
                return MovieFile(known, guess, names)
    if labels:
        highest = max(int(movie.channel_frame(t).max()) for t in range(movie.n_frames))
        save_labels(movie, copy, dtype="uint16" if highest < 2**16 else "uint32")
    else:
        _save_array(movie, copy)
    notes.append(f"The {'cells' if labels else 'images'} are in {copy.name}.")
    return MovieFile(copy, axes, names)


def _same(movie: Movie, path: Path, axes: str | None, labels: bool) -> bool:
    try:
        there = open_labels(path, axes=axes) if labels else open_movie(path, axes=axes)
    except BridgetrackError:
        return False
    if there.array.shape != movie.array.shape:
        return False
    frames: Any = range(movie.n_frames) if labels else {0, movie.n_frames // 2, movie.n_frames - 1}
    return all(np.array_equal(movie.frame(t), there.frame(t)) for t in frames)


def _save_array(movie: Movie, path: Path) -> None:
    """Write the first channel as .npy in one step."""
    pixels = np.asarray(movie.array[:, 0].compute())
    _write(path, lambda file: np.save(file, pixels, allow_pickle=False))


def _table_to_csv(table: Detections, file: IO[bytes]) -> None:
    columns = ["frame", "label", *table.geometry.axes, "area"]
    file.write(table.table[columns].to_csv(index=False, lineterminator="\n").encode())


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file in one step."""
    with replacing(path, "the file", text=False) as file:
        fill(file)
