"""Files of answers about events and masks of a movie, and of settings.

A file is a journal: the first line holds everything as one object, and every later change is a line
of its own. Files of earlier versions are converted when they are read.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerSet
from bridgetrack.annotations.history import AnswerChange, AnswerHistory, Do
from bridgetrack.annotations.mask_answers import HIGHEST, MaskAnswers
from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import as_path, locked, staged, write_text, writing
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.regions.mend import MaskAnswer
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
"""Ending of the name of a project's folder."""

ANSWERS, PROJECT = "answers.json", "project.json"
"""Files in it: of answers, and of which movie and cells they are about."""

SUFFIX = ".annotations.json"
"""Ending of the name of a file of answers beside a movie, as earlier versions had it."""

_WHAT = "the annotations"
_OTHER = (
    "an annotation file; give answers.json or the folder NAME.bridgetrack of the window, or a file "
    "of bridgetrack annotate; the window makes answers of corrected tracks (Import tracks...)"
)

# ---------------------------------------------------------------------- form


_AnnotationField = Annotated[Annotation, of_dataclass(Annotation)]
_MaskField = Annotated[MaskAnswer, of_dataclass(MaskAnswer)]

# An answer in a step is given in full, or by its id.
_OR_ID = WrapValidator(lambda content, read: content if isinstance(content, str) else read(content))
_Mentions = list[Annotated[Any, of_dataclass(Annotation), _OR_ID]]
_MaskMentions = list[Annotated[Any, of_dataclass(MaskAnswer), _OR_ID]]


class _Step(FilePart):
    """A later line, or a step to undo or redo on the first one."""

    do: Do = "answer"
    removed: _Mentions = Field(default_factory=list)
    added: _Mentions = Field(default_factory=list)
    masks_removed: _MaskMentions = Field(default_factory=list)
    masks_added: _MaskMentions = Field(default_factory=list)
    settings: dict[str, list[Any]] = Field(default_factory=dict)  # values before and after

    def change(self, there: AnswerHistory) -> AnswerChange:
        def found(mentions: list[Any], known: AnswerSet[Any]) -> tuple[Any, ...]:
            return tuple(known[each] if isinstance(each, str) else each for each in mentions)

        return AnswerChange(
            found(self.removed, there.annotations),
            found(self.added, there.annotations),
            found(self.masks_removed, there.masks),
            found(self.masks_added, there.masks),
            {key: (values[0], values[-1]) for key, values in self.settings.items()},
        )


class _Masks(FilePart):
    answers: list[_MaskField] = Field(default_factory=list)
    last_id: Count = 0
    last_label: Annotated[int, Field(ge=0, le=HIGHEST)] = 0


class _Content(FilePart):
    movie: GeometryField
    annotations: list[_AnnotationField]
    history: dict[Literal["undo", "redo"], list[_Step]] = Field(default_factory=dict)
    last_ids: dict[str, Count] = Field(default_factory=dict)
    masks: _Masks = Field(default_factory=_Masks)
    settings: JsonObject = Field(default_factory=dict)

    def made(self) -> AnswerHistory:
        masks = self.masks
        there = AnswerHistory(
            AnnotationSet(self.movie, self.annotations, self.last_ids.get("a", 0)),
            masks=MaskAnswers(self.movie, masks.answers, masks.last_id, masks.last_label),
            settings=self.settings,
        )
        past, future = (
            tuple(step.change(there) for step in self.history.get(side, ()))
            for side in ("undo", "redo")
        )
        return replace(there, past=past, future=future)


ANNOTATION_FILE = FileFormat(
    "bridgetrack-annotations", 3, "an annotation file", _Content, _Content.made
)
"""The answers and settings of a movie as one object, an `AnswerHistory`; see `history_to_json`."""


def _change_to_json(change: AnswerChange, there: AnswerHistory) -> dict[str, Any]:
    """A step as JSON values; answers that are there are named by their ids."""

    def named(answers: Iterable[Annotation | MaskAnswer], known: AnswerSet[Any]) -> list[Any]:
        return [a.id if a.id in known and known[a.id] == a else to_json(a) for a in answers]

    content = {
        "removed": named(change.removed, there.annotations),
        "added": named(change.added, there.annotations),
        "masks_removed": named(change.masks_removed, there.masks),
        "masks_added": named(change.masks_added, there.masks),
        "settings": {key: list(values) for key, values in change.settings.items()},
    }
    return {key: value for key, value in content.items() if value}


def history_to_json(history: AnswerHistory) -> dict[str, Any]:
    """The object of a file: annotations in the natural order of ids, steps to undo and redo."""
    present, masks = history.annotations, history.masks
    sides = {"undo": history.past, "redo": history.future}
    content: dict[str, Any] = {
        **ANNOTATION_FILE.head,
        "movie": geometry_to_json(present.geometry),
        "annotations": [to_json(a) for a in present],
        "history": {
            side: [_change_to_json(c, history) for c in steps] for side, steps in sides.items()
        },
        "last_ids": {"a": present.last_id},
    }
    if masks.last_id:
        content["masks"] = {
            "answers": [to_json(a) for a in masks.past],
            "last_id": masks.last_id,
            "last_label": masks.last_label,
        }
    if history.settings:
        content["settings"] = dict(history.settings)
    return content


def first_line(history: AnswerHistory) -> str:
    """A journal without changes."""
    return json.dumps(history_to_json(history), allow_nan=False) + "\n"


# ---------------------------------------------------------------------- files


class Journal:
    """A file that only one program at a time changes; it need not exist.

    Make it before the file is read, so that it notices later changes by others.

    Parameters
    ----------
    path
        The file, or the folder of a project.
    """

    def __init__(self, path: Path) -> None:
        folder = folder_of(path)
        self.path = path if folder is None else folder / ANSWERS
        self.notice = ""  # what was wrong with its end, if anything
        # Number of bytes before the next line; None if the file is written anew.
        self.end: int | None = None
        self._seen = _stamp(self.path)

    def read(self, begin: AnswerHistory | None = None) -> AnswerHistory:
        """Its content, with the files that earlier versions kept beside it.

        `begin` is the content if the file is missing. Raises an `InputError` if it is missing
        without that, or not valid; the message names the entry.
        """
        if begin is None or self.path.exists():
            history, earlier = self._read()
        else:
            history, earlier = begin, True
        return self._with_files_beside(history) if earlier else history

    def _read(self) -> tuple[AnswerHistory, bool]:
        """Its content, and whether an earlier version wrote it."""
        path = self.path
        text = read_text(path, _OTHER)
        first, _, rest = text.partition("\n")
        head = _object(first)
        if head is None:  # an object of several lines
            what = ANNOTATION_FILE.what if text.lstrip()[:1] == "{" else _OTHER
            head, rest = parse_json(text, what, str(path)), ""
        present, line_now = _present_form(head)
        history = ANNOTATION_FILE.check(present, str(path))
        *lines, torn = rest.split("\n")
        if complete := _object(torn) is not None:
            lines.append(torn)  # an editor has removed its line end
        for number, line in enumerate(lines, 2):
            where = f"{path}, line {number}"
            content = parse_json(line, ANNOTATION_FILE.what, where)
            step: _Step = check(_Step, line_now(content), where)
            try:
                history, _ = history.after(step.do, step.change(history))
            except InputError as error:
                raise InputError(f"{where}: {error}; take the file from a backup") from None
        if torn and not complete:
            self.notice = (
                f"{path}: its last line is incomplete (the program ended while writing it) and is "
                f"left out; the {len(lines)} changes before it are there"
            )
        earlier = present is not head
        if not (earlier or complete):
            self.end = path.stat().st_size - len(torn.encode())
        return history, earlier

    def _with_files_beside(self, history: AnswerHistory) -> AnswerHistory:
        """Add the content of files that earlier versions kept beside a file of answers."""
        stem, parts = self.path.name.removesuffix(SUFFIX), list[MaskAnswers]()
        undone = history.future
        for name in (f"{stem}.chosen.json", f"{stem}.masks.json"):
            if self.path.with_name(name).exists():
                beside = Journal(self.path.with_name(name))
                parts.append(beside._read()[0].masks)
                self.notice = f"{self.notice} {beside.notice}".strip()
        if parts:
            last = max(part.last_id for part in parts)
            label = max(part.last_label for part in parts)
            masks = MaskAnswers(parts[-1].geometry, (), last, label)
            history = replace(history, masks=masks)
        # In the same second, a choice comes first: it takes longer than a click.
        listed = sorted((a for part in parts for a in part.past), key=lambda a: a.created)
        for k, answer in enumerate(listed, 1):
            step = AnswerChange(masks_added=(replace(answer, id=f"m{k}"),))
            history, _ = history.after("answer", step)
        history = replace(history, future=undone)
        settings, what = self.path.with_name(f"{stem}.settings.json"), "a file of settings"
        if settings.exists():
            try:
                text = read_text(settings, what)
                known = check(JsonObject, parse_json(text, what, str(settings)), str(settings))
                history = replace(history, settings={k: v for k, v in known.items() if v})
            except InputError as error:
                self.notice = f"{self.notice} {error}. Nothing of it is used.".strip()
        return history

    def write(self, do: Do, change: AnswerChange, old: AnswerHistory, new: AnswerHistory) -> None:
        """Write a step: as one more line, or by writing everything anew.

        Raises an `OutputError` if it cannot be written, or another program changed the file
        meanwhile; then nothing has changed.
        """
        if self.end is None or not self.path.exists():
            self.begin(new)
            return
        line = json.dumps({"do": do, **_change_to_json(change, old)}, allow_nan=False) + "\n"
        self._append(line.encode(), self.end)

    def begin(self, history: AnswerHistory) -> None:
        """Write it anew; raises as `write`."""
        text = first_line(history).encode()
        self._refuse_changed()
        with staged(self.path, _WHAT, last=self._refuse_changed) as spare:
            with writing(self.path, _WHAT):
                spare.write_bytes(text)
            # The stamp of the file itself might be that of a change by another program.
            written = _stamp(spare)
        self._seen, self.end = written, len(text)

    def _append(self, line: bytes, end: int) -> None:
        path = self.path
        with writing(path, _WHAT), locked(path.resolve().parent):
            self._refuse_changed()
            with path.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(end)
                    self._seen = _stamp(path)
                    raise
            self._seen, self.end = _stamp(path), end + len(line)

    def _refuse_changed(self) -> None:
        if _stamp(self.path) not in (self._seen, None):
            raise OutputError(
                f"{self.path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Marks that change when a file does; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _object(line: str) -> dict[str, Any] | None:
    """A line as a JSON object; None if it is none."""
    try:
        content = parse_json(line, "", "")
    except InputError:
        return None
    return content if isinstance(content, dict) else None


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder of a project, also named without its ending, or by a file in it; else None."""
    path = as_path(path)
    whole = path.parent / f"{path.name}{ENDING}"
    if path.is_dir() or (whole.is_dir() and not path.exists()):
        return path if path.is_dir() else whole
    ours = path.name in (PROJECT, ANSWERS) and path.absolute().parent.suffix == ENDING
    return path.parent if ours else None


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file, or from the folder of a project.

    Warns if the last line was not written to its end; it is left out.

    Raises
    ------
    InputError
        If the file is missing or not valid; the message names the entry.
    """
    journal = Journal(as_path(path))
    history = journal.read()
    if journal.notice:
        warnings.warn(journal.notice, stacklevel=2)
    return history.annotations


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
        Extent and scale of the movie that they must be about, which they then have; any if None.

    Raises
    ------
    InputError
        If the file is missing or not valid, the message names the entry; or if it belongs to
        another movie.
    """
    known = Journal(as_path(path)).read()
    return (known if geometry is None else known.of_movie(geometry, path)).masks


def save_annotations(
    annotations: AnnotationSet | AnswerHistory, path: str | os.PathLike[str]
) -> None:
    """Write annotations, and the undo history if one is given, to a file in one step.

    Raises
    ------
    OutputError
        If it cannot be written; the earlier file is left unchanged.
    """
    history = annotations if isinstance(annotations, AnswerHistory) else AnswerHistory(annotations)
    write_text(as_path(path), first_line(history), _WHAT)


# ---------------------------------------------------------------------- earlier versions


def _present_form(head: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The first object of a file in the present form, and a converter of its lines to this form.

    In files of answers about events, version 1 had no later lines, and version 2 no other answers.
    Versions before 3 kept answers about masks in journals of their own, version 1 with those that
    were undone.
    """
    known = head if isinstance(head, dict) and head.get("version") in (1, 2) else {}
    if known.get("format") == ANNOTATION_FILE.name:
        return {**known, **ANNOTATION_FILE.head}, lambda line: line
    if known.get("format") == "bridgetrack-masks":
        masks = {key: known[key] for key in ("answers", "last_id", "last_label") if key in known}
        now: dict[str, Any] = {"movie": known.get("movie"), "annotations": [], "masks": masks}
        return {**ANNOTATION_FILE.head, **now}, _of_masks
    return head, lambda line: line


def _of_masks(line: Any) -> Any:
    """A line of a journal of answers about masks."""
    return (
        {f"masks_{key}": value for key, value in line.items()} if isinstance(line, dict) else line
    )
