"""Answers and settings of an open movie: every change is on disk when the call returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from psygnal import Signal

from bridgetrack.annotations.annotation import (
    VERIFIED,
    Annotation,
    EventRef,
    Kind,
    Name,
    by_label,
    now,
)
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.contradictions import conflicts_with
from bridgetrack.annotations.files import Journal
from bridgetrack.annotations.history import NOTHING, AnswerChange, AnswerHistory, Do
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry


class AutosavingStore:
    """Answers and settings of a movie kept in a file: a change is on disk when the call returns.

    Emits `changed` after every change, with the `AnswerChange`. Its methods raise an `OutputError`
    if a change cannot be saved; then nothing has changed. Raises an `InputError` if the file is not
    valid, or belongs to a movie of another extent.

    Parameters
    ----------
    path
        The file; read if it exists (to resume), else made at the first change. None to keep
        everything in memory.
    geometry
        Extent and scale of the movie.
    begin
        The content if there is no file yet; it is written at once.
    """

    changed = Signal(object)

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        geometry: Geometry,
        begin: AnswerHistory | None = None,
    ) -> None:
        known = begin or AnswerHistory(AnnotationSet(geometry))
        self._journal = journal = None if path is None else Journal(Path(path))
        self.notice = ""  # what was wrong with the end of the file
        if journal is not None:
            known = journal.read(known)
            self.notice = journal.notice
        self.history = known.of_movie(geometry, path)
        if journal is not None:
            if self.annotations is not known.annotations:
                journal.end = None  # its first line is about a shorter movie
            if begin is not None and not journal.path.exists():
                journal.begin(self.history)
        self.resumed = len(self.annotations) + len(self.masks)  # answers that were in the file
        # Whether an annotation may not be replaced by others: verified tracks rest on it.
        self.locked: Callable[[Annotation], bool] = lambda a: a.source == VERIFIED
        self.name: Name = by_label  # names of cells in messages

    @property
    def path(self) -> Path | None:
        """The file; None if everything is in memory."""
        return None if self._journal is None else self._journal.path

    @property
    def annotations(self) -> AnnotationSet:
        """The present answers about events."""
        return self.history.annotations

    @property
    def masks(self) -> MaskAnswers:
        """The present answers about masks."""
        return self.history.masks

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings and learned values, as JSON values by name."""
        return self.history.settings

    # ------------------------------------------------------------------ answers

    def answer(
        self,
        said: Iterable[tuple[Kind, EventRef]],
        source: str,
        seconds: float | None = None,
        right: bool | None = None,
        named: str | None = None,
    ) -> tuple[list[Annotation], int]:
        """Add answers in place of those that they contradict, as one step.

        Nothing changes if all was said before with the same `named`. Returns the annotation that
        now holds for each, and the number of earlier answers that were replaced. Raises an
        `InputError` if a verified track is locked against one of them. All else is as in
        `Annotation`.
        """
        have, created = self.annotations, now()
        stand, new, renamed = list[Annotation](), list[Annotation](), set[str]()
        for kind, event in said:
            same = self._same(kind, event)
            if same is None or named not in (None, same.named):
                known = (created, source, seconds, right, named)
                made = Annotation(f"a{have.last_id + len(new) + 1}", kind, (event,), *known)
                if same is not None:
                    made = replace(same, id=made.id, created=created, named=named)
                    renamed.add(same.id)
                new.append(made)
                same = made
            stand.append(same)
        if not new:
            return stand, 0
        gone = {i for c in conflicts_with(have, new) for i in c.ids if i in have}
        self.refuse_locked(have[i] for i in sorted(gone - renamed))
        removed = tuple(have[i] for i in sorted(gone | renamed))
        self.edit(AnswerChange(removed, tuple(new)))
        return stand, len(removed)

    def _same(self, kind: Kind, event: EventRef) -> Annotation | None:
        """The annotation that says the same."""
        near = self.annotations.at(*event.cells[0].cell)
        said = (a for a in near if a.kind == kind and [e.key for e in a.events] == [event.key])
        return next(said, None)

    def refuse_locked(self, annotations: Iterable[Annotation]) -> None:
        """Raise an `InputError` if a verified track rests on one of these, which must stay."""
        locked = next((a for a in annotations if self.locked(a)), None)
        if locked is not None:
            cell = locked.cells[0]
            raise InputError(
                f"this contradicts a track that is verified and locked, at {self.name(cell)} in "
                f"frame {cell.frame}; unlock it first: press Verify track in step 2 and click it"
            )

    # ------------------------------------------------------------------ steps

    def edit(self, change: AnswerChange) -> None:
        """Take a step, which can be undone; raises an `InputError` if it does not fit."""
        self._take("answer", change)

    def set(self, settings: Mapping[str, Any], *, undoable: bool = False) -> None:
        """Change settings, by their JSON values; None removes a setting."""
        known = self.settings
        change = AnswerChange(settings={k: (known.get(k), new) for k, new in settings.items()})
        self._take("answer" if undoable else "set", change)

    def undo(self) -> None:
        """Undo the last step; raises an `InputError` if there is none."""
        self._take("undo")

    def redo(self) -> None:
        """Repeat the step undone last; raises an `InputError` if there is none."""
        self._take("redo")

    def _take(self, do: Do, change: AnswerChange = NOTHING) -> None:
        history, changed = self.history.after(do, change)
        if self._journal is not None:
            self._journal.write(do, change, self.history, history)
        self.history = history
        self.changed.emit(changed)
