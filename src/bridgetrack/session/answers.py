"""The annotations of the open movie: kept on disk at every change, with undo and redo."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from platformdirs import user_data_path
from psygnal import Signal

from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet, History
from bridgetrack.annotations.contradictions import answer_to, conflicts_with
from bridgetrack.annotations.store import AutosavingStore, save_annotations
from bridgetrack.movie.geometry import Geometry

SUFFIX = ".annotations.json"
_QUESTIONS = ".suggestions.json"


def autosave_path(movie: Path | None, name: str, geometry: Geometry) -> Path:
    """Where the annotations of a movie are kept.

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
    """Where the annotations given after a project was saved are kept: beside it."""
    if _writable(project.parent):
        return project.with_name(f"{project.stem}{SUFFIX}")
    return autosave_path(project, project.stem, geometry)


def questions_path(answers: Path) -> Path:
    """Where the state of asking is kept: beside the annotations."""
    return answers.with_name(answers.name.removesuffix(SUFFIX) + _QUESTIONS)


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


class Answers:
    """Annotations with their file; emits `changed` after every change."""

    changed = Signal()

    def __init__(self, path: Path, geometry: Geometry) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._store = AutosavingStore(path, geometry)
        self.resumed = len(self._store.annotations)

    @property
    def path(self) -> Path:
        """Where they are kept."""
        return self._store.path

    @property
    def annotations(self) -> AnnotationSet:
        """The present annotations."""
        return self._store.annotations

    @property
    def history(self) -> History:
        """With what can be undone and redone."""
        return self._store.history

    def answer(
        self,
        kind: Kind,
        events: Iterable[EventRef],
        source: str,
        seconds: float | None = None,
        instead_of: Collection[str] = (),
    ) -> tuple[Annotation, int]:
        """Add an answer in place of those named and of those that it contradicts, as one step.

        Returns
        -------
        Annotation, int
            The answer, and how many earlier ones it replaced.
        """
        have = self.annotations
        noted, gone = answer_to(have, kind, events, source, seconds, instead_of)
        if noted.id not in have:
            self._store.edit(gone, [noted])
            self.changed.emit()
        return noted, len(gone)

    def remove(self, *ids: str) -> None:
        """Remove answers as one step."""
        if ids:
            self._store.remove(*ids)
            self.changed.emit()

    def add_all(self, annotations: Iterable[Annotation]) -> int:
        """Add answers from elsewhere, as one step, with ids of their own; returns how many."""
        added = []
        have = self.annotations
        for a in annotations:
            free = have.next_id("i") if have.given(a.id) else a.id
            renamed = Annotation(free, a.kind, a.events, a.created, a.source, a.seconds)
            if conflicts_with(have, renamed):
                continue
            have = have.add(renamed)
            added.append(renamed)
        if added:
            self._store.add(*added)
            self.changed.emit()
        return len(added)

    def start_afresh(self) -> Path:
        """Remove all answers as one step, with a copy put aside; returns where the copy is."""
        kept = self.path.with_name(self.path.name + ".old")
        save_annotations(self.history, kept)
        self.resumed = 0
        self.remove(*(a.id for a in self.annotations))
        return kept

    def undo(self) -> bool:
        """Take back the last step; whether there was one."""
        return self._step(bool(self.history.past), self._store.undo)

    def redo(self) -> bool:
        """Repeat the step undone last; whether there was one."""
        return self._step(bool(self.history.future), self._store.redo)

    def _step(self, possible: bool, step: Callable[[], AnnotationSet]) -> bool:
        if possible:
            step()
            self.changed.emit()
        return possible
