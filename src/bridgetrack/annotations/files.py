"""Files of annotations: a journal, or one JSON object, which is also a part of a project."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import (
    AnnotationSet,
    AnswerChange,
    AnswerHistory,
    natural_key,
)
from bridgetrack.annotations.journal import JournalFormat
from bridgetrack.errors import InputError
from bridgetrack.files import write_text
from bridgetrack.hypotheses.events import Event, EventName
from bridgetrack.movie.geometry import GeometryField, geometry_to_json
from bridgetrack.schema import Count, FileFormat, FilePart, made, made_by


class _Cell(FilePart):
    frame: int
    label: int
    position: list[float]

    def ref(self) -> CellRef:
        return CellRef(self.frame, self.label, tuple(self.position))


_CellField = Annotated[CellRef, made_by(_Cell, _Cell.ref)]


class _Event(FilePart):
    event: EventName
    sources: list[_CellField]
    targets: list[_CellField]

    def ref(self) -> EventRef:
        return EventRef(Event.from_key(self.event), tuple(self.sources), tuple(self.targets))


class _Annotation(FilePart):
    id: str
    kind: Annotated[Kind, Field(strict=False)]
    events: list[Annotated[EventRef, made_by(_Event, _Event.ref)]]
    source: str
    created: str | None = None
    seconds: float | None = None

    def annotation(self) -> Annotation:
        return Annotation(
            self.id, self.kind, tuple(self.events), self.created, self.source, self.seconds
        )


_AnnotationField = Annotated[Annotation, made_by(_Annotation, _Annotation.annotation)]


def _mention(content: Any) -> str | Annotation:
    """An annotation of a step: in full, or (in earlier files) the id of one that is there now."""
    if isinstance(content, str):
        return content
    return made(content, _Annotation, _Annotation.annotation)


_Mentions = list[Annotated[str | Annotation, PlainValidator(_mention)]]


class _Step(FilePart):
    removed: _Mentions
    added: _Mentions

    def change(self, present: AnnotationSet) -> AnswerChange:
        removed, added = (
            tuple(present[m] if isinstance(m, str) else m for m in side)
            for side in (self.removed, self.added)
        )
        return AnswerChange(removed, added)


class _Steps(FilePart):
    undo: list[_Step]
    redo: list[_Step]


class _Content(FilePart):
    movie: GeometryField
    annotations: list[_AnnotationField]
    history: _Steps = Field(default_factory=lambda: _Steps(undo=[], redo=[]))
    last_ids: dict[str, Count] = Field(default_factory=dict)

    def made(self) -> AnswerHistory:
        steps = [*self.history.undo, *self.history.redo]
        last_ids = dict(self.last_ids)
        for a in (m for step in steps for m in (*step.removed, *step.added)):
            prefix, number, _ = natural_key(a if isinstance(a, str) else a.id)
            last_ids[prefix] = max(number, last_ids.get(prefix, number))
        present = AnnotationSet(self.movie, self.annotations, last_ids)
        try:
            past, future = (
                tuple(step.change(present) for step in side)
                for side in (self.history.undo, self.history.redo)
            )
            # Replayed both ways, so that undo and redo cannot fail later.
            for side in ([change.inverse for change in past], future):
                annotations = present
                for change in reversed(side):
                    annotations = change.apply(annotations)
        except InputError as error:
            raise InputError(
                f"history: its steps do not fit the annotations ({error}); delete the history"
            ) from None
        return AnswerHistory(present, past, future)


class _Change(FilePart):
    """A later line of a journal."""

    do: Literal["answer", "undo", "redo"]
    removed: list[str] = Field(default_factory=list)
    added: list[_AnnotationField] = Field(default_factory=list)


def _after(history: AnswerHistory, change: _Change) -> AnswerHistory:
    if change.do == "answer":
        return history.record(change.removed, change.added)
    if not (history.past if change.do == "undo" else history.future):
        raise InputError(f"there is nothing to {change.do}")
    return history.undo() if change.do == "undo" else history.redo()


def annotation_to_json(annotation: Annotation) -> dict[str, Any]:
    """An annotation as JSON values."""
    events = [
        {
            "event": ref.event.key,
            "sources": [asdict(c) for c in ref.sources],
            "targets": [asdict(c) for c in ref.targets],
        }
        for ref in annotation.events
    ]
    known = {"created": annotation.created, "seconds": annotation.seconds}
    return {
        "id": annotation.id,
        "kind": str(annotation.kind),
        "events": events,
        "source": annotation.source,
        **{key: value for key, value in known.items() if value is not None},
    }


def _listed(annotations: Iterable[Annotation]) -> list[dict[str, Any]]:
    return [annotation_to_json(a) for a in annotations]


def history_to_json(history: AnswerHistory) -> dict[str, Any]:
    """The entries of a file: annotations in the natural order of ids, steps to undo and redo."""
    present = history.annotations
    undo, redo = (
        [{"removed": _listed(c.removed), "added": _listed(c.added)} for c in side]
        for side in (history.past, history.future)
    )
    return {
        "movie": geometry_to_json(present.geometry),
        "annotations": _listed(present),
        "history": {"undo": undo, "redo": redo},
        "last_ids": {key: n for key, n in sorted(present.last_ids.items()) if n >= 0},
    }


ANNOTATION_FILE = FileFormat(
    "bridgetrack-annotations",
    1,
    "an annotation file",
    _Content,
    _Content.made,
    largest=1_000_000_000,
)
"""Annotations as one object, an `AnswerHistory`; `history_to_json` makes its entries."""

ANNOTATION_JOURNAL = JournalFormat(ANNOTATION_FILE, _Change, _after, history_to_json)
"""Files of annotations, as `AnswerHistory`."""


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file.

    Warns where the last line was not written to its end; it is left out.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    read = ANNOTATION_JOURNAL.read(Path(path))
    if read.notice:
        warnings.warn(read.notice, stacklevel=2)
    return read.content.annotations


def save_annotations(
    annotations: AnnotationSet | AnswerHistory, path: str | os.PathLike[str]
) -> None:
    """Write annotations, and the undo history where one is given, to a file in one step.

    Raises
    ------
    OutputError
        Where it cannot be written; what was there before is left as it was.
    """
    history = annotations if isinstance(annotations, AnswerHistory) else AnswerHistory(annotations)
    write_text(Path(path), ANNOTATION_JOURNAL.first_line(history), "the annotations")
