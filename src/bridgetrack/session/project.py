"""Saving the open movie with its answers and its model as a project, and opening one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bridgetrack.annotations.annotation_set import AnswerHistory
from bridgetrack.annotations.files import read_history, save_annotations
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.files import replacing, resolved, write_text
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.io.may_write import refuse_other, signed
from bridgetrack.movie import Movie, open_labels, open_movie, save_labels
from bridgetrack.pipeline.finding import FINDING_FILE, Finding, finding_to_json
from bridgetrack.pipeline.project import MovieFile, Project, is_project, load_project, project_text
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.kept import check_path, project_answers
from bridgetrack.session.movie import MovieAndCells

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

_FOUND = "cells_found"
"""Under which note a project keeps how its cells were found."""
_CHANNEL = "channel"
"""Under which note a project keeps the number of the channel that shows the cells."""


def saving(session: Session, path: Path, formats: tuple[str, ...] = ("csv",)) -> Steps[list[str]]:
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
        Where something cannot be written, or stands where others wrote it; where another program
        saved the project since it was read or written here.
    """
    movie, answers, model, start = session.movie, session.answers, session.model, session.start
    if movie is None or answers is None:
        raise InputError("there is no movie to save a project of; choose one first")
    if path.exists() and not is_project(path):
        raise OutputError(f"{path} is no project, so it is not replaced; give another name")
    history, known, without = answers.history, movie.geometry, session.kinds.words
    place = resolved(path)
    # without one that was read or written here, what stands there now was chosen to be replaced
    usual = session.projects.get(place, _digest_of(place))

    def refuse_changed() -> None:
        if _digest_of(place) not in (None, usual):
            raise OutputError(
                f"{path} was saved by another window or program since this one read or wrote it; "
                "give another name, or open it again"
            )

    def steps() -> Steps[list[str]]:
        notes: list[str] = []
        stem, own = path.name.split(".")[0], _copies_of(path)
        image = None
        if movie.image is not None:
            yield Progress("Saving the movie", 0.0)
            copy = path.with_name(f"{stem}_image.npy")
            image = _file_of(movie.image, movie.files[0], copy, own, notes)
        yield Progress("Saving the cells", 0.5)
        labels = _cells_file(movie, path.with_name(f"{stem}_cells"), own, notes)
        yield Progress("Saving the project", 0.9)
        more: dict[str, Any] = {_CHANNEL: movie.channel} if movie.channel else {}
        if movie.found is not None:
            more[_FOUND] = finding_to_json(movie.found)
        project = Project(
            labels,
            image,
            known.n_frames,
            tuple(known.shape or ()),
            known.scale,
            known.unit,
            known.frame_interval,
            # the file beside it has all else that is known, with what can be undone
            AnswerHistory(history.annotations),
            model,
            formats or ("csv",),
            notes=more,
            start=None if start is model else start,
            without=without,
        )
        text = project_text(project, path)
        write_text(path, text, "the project", last=refuse_changed)
        session.projects[place] = _digest(text.encode())
        beside = project_answers(path, known)
        if beside != answers.path:
            settings = {**history.settings, "formats": list(project.formats)}
            save_annotations(replace(history, settings=settings), beside)
        _carry(None if answers.path is None else check_path(answers.path), check_path(beside))
        return notes

    refuse_changed()
    return steps()


def resume(session: Session, movie: MovieAndCells, file: Path) -> bool:
    """Open a project's movie with its model and its answers, or with later answers."""
    try:
        place = resolved(file)
        read = _digest_of(place)
        project = load_project(file)
        path = project_answers(file, movie.geometry)
        # what was set later stands beside it, but for projects of earlier versions
        known = path.exists() and bool(read_history(path).content.settings)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            save_annotations(project.history, path)
    except (BridgetrackError, OSError) as error:
        session.tell(error)
        return False
    if not session.open(movie, path):
        return False
    session.projects[place] = read
    if not known:
        session.set_kinds(EventKinds.without(project.without), undoable=False)
        session.set_model(project.model, project.start, undoable=False)
        session.settings.write(formats=list(project.formats))
    return True


def found_of(project: Project, file: Path) -> Finding | None:
    """How the cells of a project were found; None where they were not found here.

    Raises
    ------
    InputError
        Where what the project says of it is damaged.
    """
    if _FOUND not in project.notes:
        return None
    return FINDING_FILE.check(project.notes[_FOUND], str(file))


def channel_of(project: Project) -> int | str:
    """The channel of a project's image that shows the cells."""
    said = project.notes.get(_CHANNEL, 0)
    return said if isinstance(said, int | str) else 0


def _digest_of(path: Path) -> str | None:
    """Tells one content of a file from another; None where there is no file."""
    try:
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _carry(here: Path | None, there: Path) -> None:
    """Copy what stands beside the answers; what an earlier project of this name has there goes."""
    if here is not None and here.exists():
        if here != there:
            content = here.read_bytes()
            _write(there, lambda file: file.write(content))
    elif here != there:
        there.unlink(missing_ok=True)


def _copies_of(path: Path) -> list[Path]:
    """The files that an earlier project of this name has beside it."""
    try:
        earlier = load_project(path)
    except BridgetrackError:
        return []
    return [file.path for file in (earlier.labels, earlier.image) if file is not None]


def _cells_file(movie: MovieAndCells, copy: Path, own: list[Path], notes: list[str]) -> MovieFile:
    """Where the cells are; a table is always written anew, for points are moved easily."""
    if movie.labels is not None:
        return _file_of(movie.labels, movie.files[1], copy.with_suffix(".tif"), own, notes)
    assert movie.table is not None
    file, table = copy.with_suffix(".csv"), movie.table
    columns = ["frame", "label", *table.geometry.axes, "area"]
    text = table.table[columns].to_csv(index=False, lineterminator="\n")
    _keep_others(file, own)
    with signed(file) as spare:
        _write(spare, lambda f: f.write(text.encode()))
    notes.append(f"The cells are in {file.name}.")
    return MovieFile(file, None, ())


def _keep_others(copy: Path, own: list[Path]) -> None:
    """Refuse to replace a file that is no copy of ours."""
    if copy.resolve() not in own:
        refuse_other(copy)


def _file_of(
    movie: Movie, known: Path | None, copy: Path, own: list[Path], notes: list[str]
) -> MovieFile:
    """The movie's file where it still holds these pixels, else a copy."""
    labels = copy.suffix == ".tif"
    axes = f"T{'C' * (len(movie.channels) > 1)}{'Z' * (movie.geometry.ndim == 3)}YX"
    names = () if labels else movie.channels
    if known is not None:
        for guess in (None, axes):
            if _same(movie, known, guess, labels):
                return MovieFile(known, guess, names)
    _keep_others(copy, own)
    with signed(copy) as spare:
        if labels:
            highest = max(int(movie.channel_frame(t).max()) for t in range(movie.n_frames))
            save_labels(movie, spare, dtype="uint16" if highest < 2**16 else "uint32")
        else:
            # one of one channel has no axis for it
            array = movie.array if len(movie.channels) > 1 else movie.array[:, 0]
            pixels = np.asarray(array.compute())
            _write(spare, lambda file: np.save(file, pixels, allow_pickle=False))
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


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file in one step."""
    with replacing(path, "the file", text=False) as file:
        fill(file)
