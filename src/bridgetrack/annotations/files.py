"""Files of what is known of a movie: answers about events and masks, and settings.

A file is a journal: what is known stands on the first line as one object, and every later change is
a line of its own. Files of earlier versions are brought to the present form before they are looked
at, see `_present_form`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerSet
from bridgetrack.annotations.history import LIMIT, AnswerChange, AnswerHistory
from bridgetrack.annotations.mask_answers import HIGHEST, MaskAnswer, MaskAnswers
from bridgetrack.errors import InputError, plural
from bridgetrack.files import as_path, write_text
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.schema import (
    Count,
    FileFormat,
    FilePart,
    JsonObject,
    check,
    of_dataclass,
    parse_json,
    read_text,
    to_json,
)

ENDING = ".bridgetrack"
"""Of the name of a project's folder."""

ANSWERS, PROJECT = "answers.json", "project.json"
"""Files in it: of answers, and of which movie and cells they are about."""

SUFFIX = ".annotations.json"
"""Of the name of a file of answers beside a movie, as earlier versions had it."""

MANY_LINES = 1000
"""Changes from which on a journal becomes one line again when it was opened anew."""

_LARGEST = 1_000_000_000

# ---------------------------------------------------------------------- schemas


_AnnotationField = Annotated[Annotation, of_dataclass(Annotation)]
_MaskField = Annotated[MaskAnswer, of_dataclass(MaskAnswer)]


# An answer of a step stands there in full, or by its id.
_OR_ID = WrapValidator(lambda content, read: content if isinstance(content, str) else read(content))
_Mentions = list[Annotated[Any, of_dataclass(Annotation), _OR_ID]]
_MaskMentions = list[Annotated[Any, of_dataclass(MaskAnswer), _OR_ID]]


class _Step(FilePart):
    """A step, which names by their ids what is there when it is read."""

    removed: _Mentions = Field(default_factory=list)
    added: _Mentions = Field(default_factory=list)
    masks_removed: _MaskMentions = Field(default_factory=list)
    masks_added: _MaskMentions = Field(default_factory=list)
    settings: dict[str, list[Any]] = Field(default_factory=dict)  # values before and after

    def change(self, present: AnswerHistory) -> AnswerChange:
        def found(mentions: list[Any], there: AnswerSet[Any]) -> tuple[Any, ...]:
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

    def after(self, history: AnswerHistory) -> AnswerHistory:
        if self.do == "undo":
            return history.undo()
        if self.do == "redo":
            return history.redo()
        change = self.change(history)
        return history.recorded(change) if self.do == "answer" else history.after(change)


class _Steps(FilePart):
    undo: list[_Step] = Field(default_factory=list)
    redo: list[_Step] = Field(default_factory=list)


class _Masks(FilePart):
    answers: list[_MaskField] = Field(default_factory=list)
    last_id: Count = 0
    last_label: Annotated[int, Field(ge=0, le=HIGHEST)] = 0

    def made(self, movie: Geometry) -> MaskAnswers:
        if movie.shape is None and self.answers:
            raise InputError("movie: answers about masks need the extent of its frames")
        return MaskAnswers(movie, self.answers, {"m": self.last_id}, self.last_label)


class _Content(FilePart):
    movie: GeometryField
    annotations: list[_AnnotationField]
    history: _Steps = Field(default_factory=_Steps)
    last_ids: dict[str, Count] = Field(default_factory=dict)
    masks: _Masks = Field(default_factory=_Masks)
    settings: JsonObject = Field(default_factory=dict)

    def made(self) -> AnswerHistory:
        annotations = AnnotationSet(self.movie, self.annotations, self.last_ids)
        masks = self.masks.made(self.movie)
        found = AnswerHistory(annotations, masks=masks, settings=self.settings)
        past, future = (
            tuple(step.change(found) for step in side)
            for side in (self.history.undo, self.history.redo)
        )
        return replace(found, past=past, future=future)


ANNOTATION_FILE = FileFormat(
    "bridgetrack-annotations", 3, "an annotation file", _Content, _Content.made, largest=_LARGEST
)
"""What is known of a movie as one object, an `AnswerHistory`; `history_to_json` makes it."""


# ---------------------------------------------------------------------- writing


def change_to_json(change: AnswerChange, there: AnswerHistory) -> dict[str, Any]:
    """A step as JSON values; answers that are there are named by their ids."""

    def named(answers: Iterable[Annotation | MaskAnswer], there: AnswerSet[Any]) -> list[Any]:
        return [a.id if a.id in there and there[a.id] == a else to_json(a) for a in answers]

    known = {
        "removed": named(change.removed, there.annotations),
        "added": named(change.added, there.annotations),
        "masks_removed": named(change.masks_removed, there.masks),
        "masks_added": named(change.masks_added, there.masks),
        "settings": {key: list(values) for key, values in change.settings.items()},
    }
    return {key: value for key, value in known.items() if value}


def history_to_json(history: AnswerHistory) -> dict[str, Any]:
    """The object of a file: annotations in the natural order of ids, steps to undo and redo."""
    present, masks = history.annotations, history.masks
    undo, redo = (
        [change_to_json(change, history) for change in side]
        for side in (history.past, history.future)
    )
    content: dict[str, Any] = {
        **ANNOTATION_FILE.head,
        "movie": geometry_to_json(present.geometry),
        "annotations": [to_json(a) for a in present],
        "history": {"undo": undo, "redo": redo},
        "last_ids": {key: n for key, n in sorted(present.last_ids.items()) if n >= 0},
    }
    if last_id := masks.last_ids.get("m", 0):
        content["masks"] = {
            "answers": [to_json(a) for a in masks.past],
            "last_id": last_id,
            "last_label": masks.last_label,
        }
    if history.settings:
        content["settings"] = dict(history.settings)
    return content


def first_line(history: AnswerHistory) -> str:
    """A journal without changes."""
    return json.dumps(history_to_json(history), allow_nan=False) + "\n"


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
    write_text(as_path(path), first_line(history), "the annotations")


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Read:
    """What a file holds, and what is wrong with its end, if anything.

    ``end`` is how many bytes of it a further line comes after; None where it is to be written anew.
    """

    content: AnswerHistory
    end: int | None = None
    notice: str = ""
    earlier: bool = False  # whether an earlier version wrote it


def read_history(path: Path, begin: AnswerHistory | None = None) -> Read:
    """What a file holds, with what files of earlier versions hold beside it.

    Parameters
    ----------
    path
        The file, or the folder of a project.
    begin
        What is known where it is missing.

    Raises
    ------
    InputError
        Where one of them is missing or not valid; the message names the entry.
    """
    if begin is not None and not path.exists():
        return _with_files_beside(Read(begin), path)
    folder = folder_of(path)
    path = path if folder is None else folder / ANSWERS
    read = _read_journal(path)
    return _with_files_beside(read, path) if read.earlier else read


def _read_journal(path: Path) -> Read:
    what = ANNOTATION_FILE.what
    text = read_text(path, what, largest=_LARGEST)
    first, _, rest = text.partition("\n")
    head = _object(first)
    if head is None:  # an object of several lines
        head, rest = parse_json(text, what, str(path)), ""
    first_object, upgraded, earlier = _present_form(head)
    content = ANNOTATION_FILE.check(first_object, str(path))
    *lines, torn = rest.split("\n")
    if complete := _object(torn) is not None:
        lines.append(torn)  # an editor has taken its end away
    for number, line in enumerate(lines, 2):
        where = f"{path}, line {number}"
        read: _Line = check(_Line, upgraded(parse_json(line, what, where)), where)
        try:
            content = read.after(content)
        except InputError as error:
            raise InputError(f"{where}: {error}; take the file from a backup") from None
    notice = ""
    if torn and not complete:
        notice = (
            f"{path}: its last line is not whole (the program was ended while it wrote it) and "
            f"is left out; the {len(lines)} changes before it are there"
        )
    end = path.stat().st_size - len(torn.encode())
    anew = earlier or complete or len(lines) >= MANY_LINES
    return Read(content, None if anew else end, notice, earlier)


def _object(line: str) -> dict[str, Any] | None:
    """A line as a JSON object; None where it is none."""
    try:
        content = parse_json(line, "", "")
    except InputError:
        return None
    return content if isinstance(content, dict) else None


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder of a project, by itself or by a file in it; None for other files."""
    path = as_path(path)
    if path.is_dir():
        return path
    ours = path.name in (PROJECT, ANSWERS) and path.absolute().parent.suffix == ENDING
    return path.parent if ours else None


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file, or from the folder of a project.

    Warns where the last line was not written to its end; it is left out.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    read = read_history(as_path(path))
    if read.notice:
        warnings.warn(read.notice, stacklevel=2)
    return read.content.annotations


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
    known = read_history(as_path(path)).content
    return (known if geometry is None else of_movie(known, geometry, path)).masks


def of_movie(
    known: AnswerHistory, geometry: Geometry, path: str | os.PathLike[str] | None
) -> AnswerHistory:
    """The same of a movie, which it must be about; one that is longer than before makes room.

    Raises
    ------
    InputError
        Where it is about another one.
    """
    annotations, masks = known.annotations, known.masks
    if annotations.geometry.ndim != geometry.ndim:
        raise InputError(
            f"{path} belongs to a movie with {annotations.geometry.ndim} spatial axes, this one "
            f"has {geometry.ndim}; choose another file"
        )
    if annotations.geometry.n_frames < geometry.n_frames:
        annotations = annotations.of_movie(geometry)
    there = masks.geometry
    if masks.past and (there.shape != geometry.shape or there.n_frames > geometry.n_frames):
        words = [f"{plural(g.n_frames, 'frame')} of {g.shape} pixels" for g in (geometry, there)]
        raise InputError(
            f"{path}: these answers about masks are of another movie ({words[1]}, not {words[0]}); "
            "give those about this one, or put the file elsewhere"
        )
    return replace(known, annotations=annotations, masks=masks.of_movie(geometry))


# ---------------------------------------------------------------------- files of earlier versions

_Upgrade = Callable[[Any], Any]


def _present_form(head: Any) -> tuple[Any, _Upgrade, bool]:
    """The first object of a file as the present version writes it; how its lines get there, too.

    Of answers about events, version 1 had no lines, and version 2 nothing else. Versions before 3
    kept answers about masks in journals of their own, version 1 with those that were undone.

    The last value says whether an earlier version wrote it.
    """
    known = head if isinstance(head, dict) else {}
    if known.get("version") not in (1, 2):
        return head, _unchanged, False
    if known.get("format") == "bridgetrack-masks":
        others = ("format", "version", "movie", "undone")
        masks = {key: value for key, value in known.items() if key not in others}
        now: dict[str, Any] = {"movie": known.get("movie"), "annotations": [], "masks": masks}
        return {**ANNOTATION_FILE.head, **now}, _of_masks, True
    if known.get("format") == ANNOTATION_FILE.name:
        return {**known, **ANNOTATION_FILE.head}, _unchanged, True
    return head, _unchanged, False


def _unchanged(line: Any) -> Any:
    return line


def _of_masks(line: Any) -> Any:
    if not isinstance(line, dict):
        return line
    return {"do": "answer", **{f"masks_{key}": value for key, value in line.items()}}


def _with_files_beside(read: Read, path: Path) -> Read:
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
    found = [_read_journal(file) for file in beside[:2] if file.exists()]
    if found:
        notices += [each.notice for each in found]
        parts = [each.content.masks for each in found]
        # Of the same second, a choice comes first: it takes longer than a click.
        listed = sorted((a for part in parts for a in part.past), key=lambda a: a.created)
        renamed = [replace(a, id=f"m{k}") for k, a in enumerate(listed, 1)]
        last = {"m": max(part.last_ids["m"] for part in parts)}
        label = max(part.last_label for part in parts)
        masks = MaskAnswers(parts[-1].geometry, renamed, last, label)
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
    return Read(history, None, " ".join(filter(None, notices)))


def _in_time(past: Iterable[AnswerChange], masks: list[MaskAnswer]) -> tuple[AnswerChange, ...]:
    """Steps of answers about events and about masks in order of time, as far as it is known."""
    last, timed = "", []
    for change in past:
        last = max([last, *(a.created or "" for a in change.added)])
        timed.append((last, change))
    timed += [(a.created, AnswerChange(masks_added=(a,))) for a in masks]
    return tuple(change for _, change in sorted(timed, key=lambda each: each[0]))[-LIMIT:]
