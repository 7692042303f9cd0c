"""The annotations of a movie at work: every change is on disk when the call returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from psygnal import Signal

from bridgetrack.annotations.annotation import VERIFIED, Annotation, EventRef, Kind, now
from bridgetrack.annotations.annotation_set import (
    AnnotationSet,
    AnswerHistory,
    conflicts_with,
    natural_key,
)
from bridgetrack.annotations.files import ANNOTATION_JOURNAL, annotation_to_json
from bridgetrack.annotations.journal import Journal
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry


class AutosavingStore:
    """Annotations of a movie kept in a file: a change is on disk when the call returns.

    Emits `changed` after every change. What changes it raises `OutputError` where that cannot be
    saved; then nothing has changed.

    Parameters
    ----------
    path
        The file; read where it is there (to resume), made at the first change where not. None
        to keep them in memory alone.
    geometry
        Extent and scale of the movie, for a new file.
    begin
        Annotations to begin with where there is no file yet.

    Attributes
    ----------
    resumed
        How many annotations were in the file already.
    notice
        What was wrong with the end of the file; empty where nothing was.
    locked
        Whether others may not take the place of an annotation: those that verified tracks rest on.

    Raises
    ------
    InputError
        Where the file is there but not valid, or belongs to a movie with another number of
        axes.
    """

    changed = Signal()

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        geometry: Geometry,
        begin: AnnotationSet | None = None,
    ) -> None:
        file = None if path is None else Path(path)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        first = AnswerHistory(AnnotationSet(geometry) if begin is None else begin)
        self._journal = Journal(file, ANNOTATION_JOURNAL, first, "the annotations")
        self.resumed, self.notice = len(self.annotations), self._journal.notice
        self.locked: Callable[[Annotation], bool] = lambda a: a.source == VERIFIED
        ndim = self.annotations.geometry.ndim
        if ndim != geometry.ndim:
            raise InputError(
                f"{self.path} belongs to a movie with {ndim} spatial axes, this one has "
                f"{geometry.ndim}; choose another file"
            )

    @property
    def path(self) -> Path | None:
        """Where the annotations are kept; None where they are in memory alone."""
        return self._journal.path

    @property
    def history(self) -> AnswerHistory:
        """The present annotations with what can be undone and redone."""
        return self._journal.content

    @property
    def annotations(self) -> AnnotationSet:
        """The present annotations."""
        return self.history.annotations

    def answer(
        self, kind: Kind, event: EventRef, source: str, seconds: float | None = None
    ) -> tuple[Annotation, int]:
        """Add an answer in place of those that it contradicts, as one step.

        Parameters
        ----------
        kind, event, source, seconds
            As in `Annotation`.

        Returns
        -------
        Annotation, int
            The answer, and how many earlier ones it replaced. Where the same was said before,
            that annotation, and nothing changes.
        """
        same = self._same(kind, event)
        if same is not None:
            return same, 0
        [new], replaced = self.answer_all([(kind, event)], source, seconds)
        return new, replaced

    def answer_all(
        self, said: Iterable[tuple[Kind, EventRef]], source: str, seconds: float | None = None
    ) -> tuple[list[Annotation], int]:
        """Add answers in place of those that they contradict, as one step.

        Returns
        -------
        list of Annotation, int
            The answers that were not there before, and how many earlier ones they replaced.

        Raises
        ------
        InputError
            Where a verified track is locked against one of them.
        """
        have, created = self.annotations, now()
        fresh = [(kind, event) for kind, event in said if self._same(kind, event) is None]
        _, first, _ = natural_key(have.next_id())
        new = [
            Annotation(f"a{k}", kind, (event,), created, source, seconds)
            for k, (kind, event) in enumerate(fresh, first)
        ]
        if not new:
            return [], 0
        replaced = sorted({i for c in conflicts_with(have, new) for i in c.ids if i in have})
        self.refuse_locked(have[i] for i in replaced)
        self.edit(replaced, new)
        return new, len(replaced)

    def _same(self, kind: Kind, event: EventRef) -> Annotation | None:
        """The annotation that says this already."""
        near = self.annotations.at(*event.cells[0].cell)
        said = (a for a in near if a.kind == kind and [e.key for e in a.events] == [event.key])
        return next(said, None)

    def refuse_locked(self, annotations: Iterable[Annotation]) -> None:
        """Complain where a verified track rests on one of these annotations, which may not go.

        Raises
        ------
        InputError
            With the first of them, and what to do.
        """
        locked = next((a for a in annotations if self.locked(a)), None)
        if locked is not None:
            raise InputError(
                f"this contradicts a track that is verified and locked, at {locked.cells[0]}; "
                "release it first: press Shift-V and click it"
            )

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnnotationSet:
        """Remove and add annotations as one step.

        Raises
        ------
        InputError
            Where the step does not fit the set.
        """
        gone, new = list(remove), list(add)
        change = {"do": "answer", "removed": gone, "added": [annotation_to_json(a) for a in new]}
        return self._keep(self.history.record(gone, new), change)

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """Add annotations as one step; raises as `edit`."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """Remove annotations as one step; raises as `edit`."""
        return self.edit(remove=ids)

    def undo(self) -> AnnotationSet:
        """Take back the last step, where there is one."""
        if not self.history.past:
            return self.annotations
        return self._keep(self.history.undo(), {"do": "undo"})

    def redo(self) -> AnnotationSet:
        """Repeat the step undone last, where there is one."""
        if not self.history.future:
            return self.annotations
        return self._keep(self.history.redo(), {"do": "redo"})

    def _keep(self, history: AnswerHistory, change: dict[str, Any]) -> AnnotationSet:
        self._journal.keep(history, change)
        self.changed.emit()
        return history.annotations
