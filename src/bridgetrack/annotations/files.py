"""Files of what is known of a movie: answers about events and masks, and settings.

A file is a journal, see `journal`. Version 1 was one JSON object, which is also a part of a
project; versions 1 and 2 hold answers about events alone, and answers about masks, masks that were
chosen anew and settings have files of their own beside it. All are read.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import (
    LIMIT,
    AnnotationSet,
    AnswerChange,
    AnswerHistory,
    natural_key,
)
from bridgetrack.annotations.journal import Read, read_journal
from bridgetrack.annotations.mask_answers import HIGHEST, MaskAnswer, MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.files import write_text
from bridgetrack.hypotheses.events import Event, EventName
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.notes import plural
from bridgetrack.regions.mend import MendKind
from bridgetrack.schema import (
    Count,
    FileFormat,
    FilePart,
    JsonObject,
    made,
    made_by,
    parse_json,
    read_text,
)

VERSION = 3
ENDING = ".bridgetrack"
"""Of the name of a project's folder."""

ANSWERS, PROJECT = "answers.json", "project.json"
"""Files in it: of answers, and of which movie and cells they are about."""

SUFFIX = ".annotations.json"
"""Of the name of a file of answers beside a movie, as earlier versions had it."""

_LARGEST = 1_000_000_000
_HEAD = 256
"""Bytes at the beginning of a file in which its format stands."""

# ---------------------------------------------------------------------- answers about events


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
    right: bool | None = None
    named: str | None = None

    def annotation(self) -> Annotation:
        known = self.created, self.source, self.seconds, self.right, self.named
        return Annotation(self.id, self.kind, tuple(self.events), *known)


_AnnotationField = Annotated[Annotation, made_by(_Annotation, _Annotation.annotation)]


# ---------------------------------------------------------------------- answers about masks

_Flat = list[Count]


def _grouped(flat: list[int], size: int) -> Any:
    if len(flat) % size:
        raise InputError(f"a list of runs must have {size} numbers for each")
    return tuple(zip(*[iter(flat)] * size, strict=True))


class _MaskAnswer(FilePart):
    id: str
    frame: Count
    kind: Annotated[MendKind, Field(strict=False)]
    created: str
    right: list[_Flat]
    wrong: list[_Flat]
    change: _Flat

    def answer(self) -> MaskAnswer:
        right, wrong = (
            tuple(_grouped(flat, 2) for flat in side) for side in (self.right, self.wrong)
        )
        change = _grouped(self.change, 4)
        return MaskAnswer(self.id, self.frame, self.kind, self.created, right, wrong, change)


_MaskField = Annotated[MaskAnswer, made_by(_MaskAnswer, _MaskAnswer.answer)]


def answer_to_json(answer: Annotation | MaskAnswer) -> dict[str, Any]:
    """An answer as JSON values."""
    known: dict[str, Any]
    if isinstance(answer, MaskAnswer):
        known = {
            "frame": answer.frame,
            "created": answer.created,
            "right": [_flat(runs) for runs in answer.right],
            "wrong": [_flat(runs) for runs in answer.wrong],
            "change": _flat(answer.change),
        }
    else:
        events = [
            {
                "event": ref.event.key,
                "sources": [asdict(c) for c in ref.sources],
                "targets": [asdict(c) for c in ref.targets],
            }
            for ref in answer.events
        ]
        rest = ("source", "created", "seconds", "right", "named")
        known = {"events": events, **{name: getattr(answer, name) for name in rest}}
    said = {key: value for key, value in known.items() if value is not None}
    return {"id": answer.id, "kind": str(answer.kind), **said}


def _flat(runs: Iterable[tuple[int, ...]]) -> list[int]:
    return [number for run in runs for number in run]


# ---------------------------------------------------------------------- everything


def _mention(schema: type[FilePart], make: Callable[[Any], Any]) -> PlainValidator:
    """An answer of a step: in full, or by its id."""
    return PlainValidator(lambda x: x if isinstance(x, str) else made(x, schema, make))


_Mentions = list[Annotated[Any, _mention(_Annotation, _Annotation.annotation)]]
_MaskMentions = list[Annotated[Any, _mention(_MaskAnswer, _MaskAnswer.answer)]]


class _Step(FilePart):
    """A step, which names by their ids what is there when it is read."""

    removed: _Mentions = Field(default_factory=list)
    added: _Mentions = Field(default_factory=list)
    masks_removed: _MaskMentions = Field(default_factory=list)
    masks_added: _MaskMentions = Field(default_factory=list)
    settings: dict[str, list[Any]] = Field(default_factory=dict)  # values before and after

    def change(self, present: AnswerHistory) -> AnswerChange:
        def found(mentions: list[Any], there: AnnotationSet | MaskAnswers) -> tuple[Any, ...]:
            return tuple(there[each] if isinstance(each, str) else each for each in mentions)

        return AnswerChange(
            found(self.removed, present.annotations),
            found(self.added, present.annotations),
            found(self.masks_removed, present.masks),
            found(self.masks_added, present.masks),
            {key: (values[0], values[-1]) for key, values in self.settings.items()},
        )


class _Line(_Step):
    """A later line of a journal."""

    do: Literal["answer", "undo", "redo", "set"]


class _Steps(FilePart):
    undo: list[_Step]
    redo: list[_Step]


class _Masks(FilePart):
    answers: list[_MaskField] = Field(default_factory=list)
    last_id: Count = 0
    last_label: Annotated[int, Field(ge=0, le=HIGHEST)] = 0

    def made(self, movie: Geometry) -> MaskAnswers:
        if movie.shape is None and self.answers:
            raise InputError("movie: answers about masks need the extent of its frames")
        return MaskAnswers(movie, tuple(self.answers), self.last_id, self.last_label)


class _Content(FilePart):
    movie: GeometryField
    annotations: list[_AnnotationField]
    history: _Steps = Field(default_factory=lambda: _Steps(undo=[], redo=[]))
    last_ids: dict[str, Count] = Field(default_factory=dict)
    masks: _Masks = Field(default_factory=_Masks)
    settings: JsonObject = Field(default_factory=dict)

    def made(self) -> AnswerHistory:
        steps = [*self.history.undo, *self.history.redo]
        last_ids = dict(self.last_ids)
        for a in (m for step in steps for m in (*step.removed, *step.added)):
            prefix, number, _ = natural_key(a if isinstance(a, str) else a.id)
            last_ids[prefix] = max(number, last_ids.get(prefix, number))
        masks = self.masks.made(self.movie)
        annotations = AnnotationSet(self.movie, self.annotations, last_ids)
        found = AnswerHistory(annotations, masks=masks, settings=self.settings)
        try:
            past, future = (
                tuple(step.change(found) for step in side)
                for side in (self.history.undo, self.history.redo)
            )
            found = replace(found, past=past, future=future)
            # Replayed both ways, so that undo and redo cannot fail later.
            for step in (AnswerHistory.undo, AnswerHistory.redo):
                moved = found
                while moved.past if step is AnswerHistory.undo else moved.future:
                    moved = step(moved)
        except InputError as error:
            raise InputError(
                f"history: its steps do not fit the annotations ({error}); delete the history"
            ) from None
        return found


def _after(history: AnswerHistory, line: _Line) -> AnswerHistory:
    if line.do in ("answer", "set"):
        change = line.change(history)
        return history.recorded(change) if line.do == "answer" else history.after(change)
    if not (history.past if line.do == "undo" else history.future):
        raise InputError(f"there is nothing to {line.do}")
    return history.undo() if line.do == "undo" else history.redo()


def change_to_json(change: AnswerChange, there: AnswerHistory) -> dict[str, Any]:
    """A step as JSON values; answers that are there are named by their ids."""

    def named(
        answers: Iterable[Annotation | MaskAnswer], there: AnnotationSet | MaskAnswers
    ) -> list[Any]:
        return [a.id if a.id in there and there[a.id] == a else answer_to_json(a) for a in answers]

    known = {
        "removed": named(change.removed, there.annotations),
        "added": named(change.added, there.annotations),
        "masks_removed": named(change.masks_removed, there.masks),
        "masks_added": named(change.masks_added, there.masks),
        "settings": {key: list(values) for key, values in change.settings.items()},
    }
    return {key: value for key, value in known.items() if value}


def history_to_json(history: AnswerHistory) -> dict[str, Any]:
    """The entries of a file: annotations in the natural order of ids, steps to undo and redo."""
    present, masks = history.annotations, history.masks
    undo, redo = (
        [change_to_json(change, history) for change in side]
        for side in (history.past, history.future)
    )
    content: dict[str, Any] = {
        "movie": geometry_to_json(present.geometry),
        "annotations": [answer_to_json(a) for a in present],
        "history": {"undo": undo, "redo": redo},
        "last_ids": {key: n for key, n in sorted(present.last_ids.items()) if n >= 0},
    }
    if masks.last_id:
        content["masks"] = {
            "answers": [answer_to_json(a) for a in masks.past],
            "last_id": masks.last_id,
            "last_label": masks.last_label,
        }
    if history.settings:
        content["settings"] = dict(history.settings)
    return content


ANNOTATION_FILE = FileFormat(
    "bridgetrack-annotations", 1, "an annotation file", _Content, _Content.made, largest=_LARGEST
)
"""Annotations as one object, an `AnswerHistory`; `history_to_json` makes its entries."""


def first_line(history: AnswerHistory) -> str:
    """A journal without changes."""
    head = {"format": ANNOTATION_FILE.name, "version": VERSION}
    return json.dumps({**head, **history_to_json(history)}, allow_nan=False) + "\n"


def read_history(path: Path, begin: AnswerHistory | None = None) -> Read[AnswerHistory]:
    """What a file holds, with what files of earlier versions hold beside it.

    Parameters
    ----------
    path
        The file.
    begin
        What is known where it is missing.

    Raises
    ------
    InputError
        Where one of them is missing or not valid; the message names the entry.
    """
    if begin is not None and not path.exists():
        return _with_earlier_files(Read(begin), path)
    read = read_journal(_within(path), ANNOTATION_FILE, _Line, _after, VERSION)
    return read if read.version == VERSION else _with_earlier_files(read, path)


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder of a project, by itself or by a file in it; None for other files."""
    path = Path(path)
    if path.is_dir():
        return path
    ours = path.name in (PROJECT, ANSWERS) and path.absolute().parent.suffix == ENDING
    return path.parent if ours else None


def _within(path: Path) -> Path:
    folder = folder_of(path)
    return path if folder is None else folder / ANSWERS


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file, or from the folder of a project.

    Warns where the last line was not written to its end; it is left out.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    read = read_journal(_within(Path(path)), ANNOTATION_FILE, _Line, _after, VERSION)
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
    write_text(Path(path), first_line(history), "the annotations")


def load_mask_answers(
    path: str | os.PathLike[str], geometry: Geometry | None = None
) -> MaskAnswers:
    """Answers about masks from a file.

    Parameters
    ----------
    path
        The file or the folder of a project; also a file of answers about events beside which an
        earlier version kept them.
    geometry
        Extent and scale of the movie that they must be about, which they then have; any where
        None.

    Raises
    ------
    InputError
        Where the file is missing or not valid, the message names the entry; or where it belongs
        to another movie.
    """
    file = Path(path)
    known = _read_masks(file).content if _is_earlier(file) else read_history(file).content.masks
    return known if geometry is None else about(known, geometry, path)


def about(
    known: MaskAnswers, geometry: Geometry, path: str | os.PathLike[str] | None
) -> MaskAnswers:
    """The same of a movie, which they must be about.

    Raises
    ------
    InputError
        Where they are about another one.
    """
    there = known.geometry
    if known.past and (there.shape != geometry.shape or there.n_frames > geometry.n_frames):
        words = [f"{plural(g.n_frames, 'frame')} of {g.shape} pixels" for g in (geometry, there)]
        raise InputError(
            f"{path}: these answers about masks are of another movie ({words[1]}, not {words[0]}); "
            "give those about this one, or put the file elsewhere"
        )
    return replace(known, geometry=geometry)


def is_mask_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds answers about masks and none about events."""
    file = Path(path)
    try:
        if _is_earlier(file):
            return True
        known = read_history(file).content
    except (OSError, InputError):
        return False  # told when it is read
    return not len(known.annotations) and bool(len(known.masks))


# ---------------------------------------------------------------------- files of earlier versions


class _MaskContent(_Masks):
    movie: GeometryField
    undone: list[_MaskField] = Field(default_factory=list)  # which are not repeated

    def alone(self) -> MaskAnswers:
        return self.made(self.movie)


class _MaskChange(FilePart):
    removed: list[str]
    added: list[_MaskField]


def _masks_after(answers: MaskAnswers, change: _MaskChange) -> MaskAnswers:
    removed = set(change.removed)
    gone = [a for a in answers.past if a.id in removed]
    if len(gone) < len(change.removed):
        raise InputError("there is no such answer to remove")
    return answers.exchanged(gone, change.added)


MASK_FILE = FileFormat(
    "bridgetrack-masks",
    1,
    "a file of answers about masks",
    _MaskContent,
    _MaskContent.alone,
    largest=_LARGEST,
)
"""Answers about masks, which versions before 3 kept in journals of their own."""


def _is_earlier(path: Path) -> bool:
    """Whether a file is one of answers about masks alone, by its first words."""
    if not path.is_file():
        return False  # told when it is read; a pipe would be waited for
    with path.open("rb") as file:
        return MASK_FILE.name.encode() in file.read(_HEAD)


def _read_masks(path: Path) -> Read[MaskAnswers]:
    return read_journal(path, MASK_FILE, _MaskChange, _masks_after, 2)


def _with_earlier_files(read: Read[AnswerHistory], path: Path) -> Read[AnswerHistory]:
    """What earlier versions kept beside a file of answers, as if it had been in it.

    Raises
    ------
    InputError
        Where it is not valid.
    """
    beside = [
        path.with_name(path.name.removesuffix(SUFFIX) + end)
        for end in (".chosen.json", ".masks.json", ".settings.json")
    ]
    if not any(file.exists() for file in beside):
        return read
    history, notices = read.content, [read.notice]
    chosen, said = (_read_masks(f) if f.exists() else None for f in beside[:2])
    found = [each for each in (chosen, said) if each is not None]
    if found:
        notices += [each.notice for each in found]
        # Of the same second, a choice comes first: it takes longer than a click.
        listed = sorted((a for each in found for a in each.content.past), key=lambda a: a.created)
        renamed = tuple(replace(a, id=f"m{k}") for k, a in enumerate(listed, 1))
        last_id = max(len(renamed), *(each.content.last_id for each in found))
        last_label = max(each.content.last_label for each in found)
        masks = MaskAnswers(found[-1].content.geometry, renamed, last_id, last_label)
        history = replace(history, masks=masks, past=_in_time(history.past, renamed))
    if beside[2].exists():
        what = "a file of settings"
        try:
            content = parse_json(read_text(beside[2], what, largest=_LARGEST), what, str(beside[2]))
        except InputError as error:
            content = None
            notices.append(f"{error}. Nothing of it is used.")
        if isinstance(content, dict):
            history = replace(history, settings={k: v for k, v in content.items() if v})
    return Read(history, VERSION, None, " ".join(filter(None, notices)))


def _in_time(
    past: tuple[AnswerChange, ...], masks: tuple[MaskAnswer, ...]
) -> tuple[AnswerChange, ...]:
    """Steps of answers about events and about masks in order of time, as far as it is known."""
    last, timed = "", []
    for change in past:
        last = max([last, *(a.created or "" for a in change.added)])
        timed.append((last, change))
    timed += [(a.created, AnswerChange(masks_added=(a,))) for a in masks]
    return tuple(change for _, change in sorted(timed, key=lambda each: each[0]))[-LIMIT:]
