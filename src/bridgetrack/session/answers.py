"""The answers about the open movie: kept on disk at every change, with undo and redo."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path
from psygnal import Signal

from bridgetrack.annotations.annotation import VERIFIED, Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerHistory
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.store import AutosavingStore, save_annotations
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry

SUFFIX = ".annotations.json"
_QUESTIONS = ".suggestions.json"
_CHOSEN = ".chosen.json"
_CHECK = ".check.csv"
_SETTINGS = ".settings.json"
_CELLS = ".cells.zarr"  # no .tif, which would be taken for a frame in a folder of frames


class Answers(AutosavingStore):
    """Annotations with their file; emits `changed` after every change.

    Parameters
    ----------
    path
        The file; None to keep them in memory alone.
    geometry
        Extent and scale of the movie.

    Attributes
    ----------
    resumed
        How many answers were in the file already.
    locked
        Whether other answers may not take the place of one; the session also locks those that
        people gave one by one where a verified track rests on them.
    """

    changed = Signal()

    def __init__(self, path: Path | None, geometry: Geometry) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, geometry)
        self.resumed = len(self.annotations)
        self.locked: Callable[[Annotation], bool] = lambda a: a.source == VERIFIED

    def _keep(self, history: AnswerHistory) -> AnnotationSet:
        kept = super()._keep(history)
        self.changed.emit()
        return kept

    def refuse_locked(self, answers: Iterable[Annotation]) -> None:
        """Complain where a verified track rests on one of these answers, which may not go.

        Raises
        ------
        InputError
            With the first of them, and what to do.
        """
        locked = next((a for a in answers if self.locked(a)), None)
        if locked is not None:
            raise InputError(
                f"this contradicts a track that is verified and locked, at {locked.cells[0]}; "
                "release it first: press Shift-V and click it"
            )

    def put_aside(self) -> Path:
        """Keep a copy of all answers; returns where it is."""
        assert self.path is not None
        kept = self.path.with_name(self.path.name + ".old")
        save_annotations(self.history, kept)
        return kept


# ---------------------------------------------------------------------- the order of steps


@dataclass(frozen=True)
class UndoOrder:
    """Which of two stores every step to undo or to redo belongs to, the next one last."""

    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()

    def then(self, of: str) -> UndoOrder:
        """After a new step."""
        return UndoOrder((*self.past, of))

    def back(self) -> UndoOrder:
        """After the last step was undone."""
        return UndoOrder(self.past[:-1], (*self.future, *self.past[-1:]))

    def forth(self) -> UndoOrder:
        """After the last step was redone."""
        return UndoOrder((*self.past, *self.future[-1:]), self.future[:-1])

    def without_last(self, of: str) -> UndoOrder:
        """Without the last step of a store, which somebody else undid."""
        at = max((k for k, name in enumerate(self.past) if name == of), default=-1)
        return UndoOrder(
            self.past[:at] + self.past[at + 1 :] if at >= 0 else self.past, self.future
        )


def steps_of(history: AnswerHistory, masks: MaskAnswers | None) -> UndoOrder:
    """The steps of a movie that is opened again, in order of time as far as it is known."""
    timed = [("", "answers")]
    for change in history.past:
        times = [a.created or "" for a in change.added]
        timed.append((max([timed[-1][0], *times]), "answers"))
    marked = [] if masks is None else [(a.created, "masks") for a in masks.past]
    past = tuple(name for _, name in sorted(timed[1:] + marked, key=lambda step: step[0]))
    undone = 0 if masks is None else len(masks.future)
    return UndoOrder(past, ("masks",) * undone + ("answers",) * len(history.future))


# ---------------------------------------------------------------------- where they are kept


def autosave_path(movie: Path | None, name: str, geometry: Geometry) -> Path:
    """Where the answers about a movie are kept.

    Beside the movie, or in the user's data folder where there is no file or its folder cannot
    be written to.
    """
    if movie is not None and _writable(movie.parent):
        stem = movie.name if movie.is_dir() else movie.stem
        return movie.parent / f"{stem}{SUFFIX}"
    known = f"{movie.resolve() if movie else name}|{geometry.n_frames}|{geometry.shape}"
    mark = hashlib.sha256(known.encode()).hexdigest()[:12]
    plain = "".join(c if c.isalnum() else "_" for c in (movie.stem if movie else name))[:40]
    folder = user_data_path("bridgetrack", appauthor=False) / "annotations"
    return folder / f"{plain}-{mark}{SUFFIX}"


def project_answers(project: Path, geometry: Geometry) -> Path:
    """Where the answers given after a project was saved are kept: beside it."""
    if _writable(project.parent):
        return project.with_name(f"{project.stem}{SUFFIX}")
    return autosave_path(project, project.stem, geometry)


def questions_path(answers: Path) -> Path:
    """Where the state of asking is kept: beside the answers."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _QUESTIONS)


def chosen_path(answers: Path) -> Path:
    """Where masks of a file that were chosen anew are kept: beside the answers."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _CHOSEN)


def check_path(answers: Path) -> Path:
    """Where a sample of the tracks is kept with what was said of it: beside the answers."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _CHECK)


def settings_path(answers: Path) -> Path:
    """Where what was set and learned about the movie is kept: beside the answers."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _SETTINGS)


def cells_path(answers: Path) -> Path:
    """Where cells that are in no file are kept: beside the answers."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _CELLS)


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)
