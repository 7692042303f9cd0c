"""Files of annotations: every change is on disk when the call returns.

Two forms are read. A document holds a history as one JSON object. A journal has such a document on
its first line, and a line for each later change: an answer is appended, nothing is rewritten. Of a
journal that ends within a line, because the program was killed while it wrote, the whole lines
count.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from psygnal import Signal
from pydantic import Field, PlainValidator

from bridgetrack.annotations.annotation import VERIFIED, Annotation, CellRef, EventRef, Kind, now
from bridgetrack.annotations.annotation_set import (
    AnnotationSet,
    AnswerChange,
    AnswerHistory,
    conflicts_with,
    natural_key,
)
from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import locked, staged, write_text, writing
from bridgetrack.hypotheses.events import Event, EventName
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.schema import (
    Count,
    FileFormat,
    FilePart,
    check,
    made,
    made_by,
    parse_json,
    read_text,
)

_MANY_LINES = 1000
"""Lines of changes from which on a journal is written as one document when it is opened again."""


class _Cell(FilePart):
    frame: int
    label: int
    position: list[float]

    def ref(self) -> CellRef:
        return CellRef(self.frame, self.label, tuple(self.position))


class _Event(FilePart):
    event: EventName
    sources: list[Annotated[CellRef, made_by(_Cell, _Cell.ref)]]
    targets: list[Annotated[CellRef, made_by(_Cell, _Cell.ref)]]

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


def _mention(content: Any) -> str | Annotation:
    """An annotation of a step: in full, or the id of one that is in the present set."""
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


def _last_ids(annotations: Iterable[Annotation]) -> dict[str, int]:
    """Highest number of each prefix of ids."""
    found: dict[str, int] = {}
    for a in annotations:
        prefix, number, _ = natural_key(a.id)
        found[prefix] = max(number, found.get(prefix, number))
    return found


class _Content(FilePart):
    movie: GeometryField
    annotations: list[Annotated[Annotation, made_by(_Annotation, _Annotation.annotation)]]
    history: _Steps = Field(default_factory=lambda: _Steps(undo=[], redo=[]))
    last_ids: dict[str, Count] = Field(default_factory=dict)

    def made(self) -> AnswerHistory:
        steps = (*self.history.undo, *self.history.redo)
        mentions = (m for step in steps for m in (*step.removed, *step.added))
        shown = _last_ids(m for m in mentions if isinstance(m, Annotation))
        last_ids = {key: max(n, self.last_ids.get(key, n)) for key, n in shown.items()}
        present = AnnotationSet(self.movie, self.annotations, {**self.last_ids, **last_ids})
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


ANNOTATION_FILE = FileFormat(
    "bridgetrack-annotations",
    1,
    "an annotation file",
    _Content,
    _Content.made,
    largest=1_000_000_000,
)
"""Documents of annotations, as `AnswerHistory`; `encode` writes them."""

_JOURNAL = FileFormat(
    ANNOTATION_FILE.name, 2, ANNOTATION_FILE.what, _Content, _Content.made, largest=1_000_000_000
)
"""The first line of a journal."""


class _Change(FilePart):
    """A later line of a journal."""

    do: Literal["answer", "undo", "redo"]
    removed: list[str] = Field(default_factory=list)
    added: list[Annotated[Annotation, made_by(_Annotation, _Annotation.annotation)]] = Field(
        default_factory=list
    )

    def after(self, history: AnswerHistory) -> AnswerHistory:
        if self.do == "answer":
            return history.record(self.removed, self.added)
        if not (history.past if self.do == "undo" else history.future):
            raise InputError(f"there is nothing to {self.do}")
        return history.undo() if self.do == "undo" else history.redo()


def _event_to_json(ref: EventRef) -> dict[str, Any]:
    return {
        "event": ref.event.key,
        "sources": [asdict(c) for c in ref.sources],
        "targets": [asdict(c) for c in ref.targets],
    }


def _annotation_to_json(annotation: Annotation) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": annotation.id,
        "kind": str(annotation.kind),
        "events": [_event_to_json(e) for e in annotation.events],
        "source": annotation.source,
    }
    if annotation.created is not None:
        entry["created"] = annotation.created
    if annotation.seconds is not None:
        entry["seconds"] = annotation.seconds
    return entry


def _line(annotation: Annotation) -> str:
    return json.dumps(_annotation_to_json(annotation), allow_nan=False)


def _list(lines: list[str], indent: str) -> str:
    if not lines:
        return "[]"
    joint = f",\n{indent}  "
    return f"[\n{indent}  {joint.join(lines)}\n{indent}]"


def _step_line(change: AnswerChange, present: AnnotationSet) -> str:
    """A step; annotations that are in the present set go by their id."""

    def short(a: Annotation) -> str:
        return f'"{a.id}"' if a.id in present and present[a.id] == a else _line(a)

    removed = ", ".join(short(a) for a in change.removed)
    added = ", ".join(short(a) for a in change.added)
    return f'{{"removed": [{removed}], "added": [{added}]}}'


def encode(history: AnswerHistory) -> str:
    """A history as the text of a document.

    Parameters
    ----------
    history
        The present annotations and the steps to undo and redo; without steps the file has
        none.

    Returns
    -------
    str
        JSON with a line per annotation, in the natural order of ids. `AnnotationSet.last_ids` are
        there where no annotation or step shows them.
    """
    present, steps = history.annotations, (*history.past, *history.future)
    text = f'{{\n  "format": "{ANNOTATION_FILE.name}",\n  "version": {ANNOTATION_FILE.version},\n'
    text += f'  "movie": {json.dumps(geometry_to_json(present.geometry), allow_nan=False)},\n'
    text += f'  "annotations": {_list([_line(a) for a in present], "  ")}'
    if steps:
        past = _list([_step_line(c, present) for c in history.past], "    ")
        future = _list([_step_line(c, present) for c in history.future], "    ")
        text += f',\n  "history": {{\n    "undo": {past},\n    "redo": {future}\n  }}'
    changed = (a for change in steps for a in (*change.removed, *change.added))
    shown = _last_ids((*present, *changed))
    hidden = {key: n for key, n in present.last_ids.items() if n > shown.get(key, 0)}
    if hidden:
        text += f',\n  "last_ids": {json.dumps(hidden, sort_keys=True)}'
    return text + "\n}\n"


def _first_line(history: AnswerHistory) -> str:
    content = {**json.loads(encode(history)), **_JOURNAL.head}
    return json.dumps(content, allow_nan=False) + "\n"


@dataclass(frozen=True)
class _Read:
    """What an annotation file holds."""

    history: AnswerHistory
    whole: int  # bytes of the whole lines of a journal
    changes: int | None  # lines of changes; None where it is no journal
    notice: str = ""  # what is wrong with its end


def _read(path: Path) -> _Read:
    """Read a document or a journal; raises InputError where it is neither."""
    text = read_text(path, ANNOTATION_FILE.what, largest=ANNOTATION_FILE.largest)
    first, _, rest = text.partition("\n")
    content = _object(first)
    if content is None or content.get("version") == ANNOTATION_FILE.version:
        return _Read(ANNOTATION_FILE.parse(text, str(path)), 0, None)
    history = _JOURNAL.check(content, str(path))
    *lines, torn = rest.split("\n")
    complete = _object(torn) is not None  # an editor may have taken the end of the last line away
    if complete:
        lines.append(torn)
    for number, line in enumerate(lines, 2):
        where = f"{path}, line {number}"
        change = check(_Change, parse_json(line, ANNOTATION_FILE.what, where), where)
        try:
            history = change.after(history)
        except InputError as error:
            raise InputError(f"{where}: {error}; take the file from a backup") from None
    if complete:  # the next change writes all anew
        return _Read(history, 0, None)
    whole = path.stat().st_size - len(torn.encode())
    if not torn:
        return _Read(history, whole, len(lines))
    notice = (
        f"{path}: its last line is not whole (the program was ended while it wrote it) and is left "
        f"out; the {len(lines)} changes before it are there"
    )
    return _Read(history, whole, len(lines), notice)


def _object(line: str) -> dict[str, Any] | None:
    """A line as a JSON object; None where it is none."""
    try:
        content = parse_json(line, ANNOTATION_FILE.what, "")
    except InputError:
        return None
    return content if isinstance(content, dict) else None


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file.

    Warns where the last line was not written to its end; it is left out.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    read = _read(Path(path))
    if read.notice:
        warnings.warn(read.notice, stacklevel=2)
    return read.history.annotations


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
    write_text(Path(path), encode(history), "the annotations")


class KeptFile:
    """A file that only one program at a time writes: anew as a whole, or more at its end.

    Parameters
    ----------
    path
        The file, there or not; None for none at all.
    what
        What it holds, for messages: ``"the annotations"``.
    """

    def __init__(self, path: str | os.PathLike[str] | None, what: str) -> None:
        self.path = None if path is None else Path(path)
        self._what = what
        self._seen = _stamp(self.path)

    @property
    def there(self) -> bool:
        """Whether it was there when it was opened or written last."""
        return self._seen is not None

    def write(self, text: Callable[[], str]) -> None:
        """Replace its content, where there is a file.

        Raises
        ------
        OutputError
            Where it cannot be written, or another program wrote it meanwhile.
        """
        if self.path is None:
            return
        self._refuse_changed()
        with staged(self.path, self._what, last=self._refuse_changed) as spare:
            with writing(self.path, self._what):
                spare.write_text(text(), encoding="utf-8", newline="\n")
            # Of the file itself, another program might have changed it before it is looked at.
            written = _stamp(spare)
        self._seen = written

    def append(self, line: str, after: int) -> int:
        """Write a line behind the first bytes of the file; it is on the disk on return.

        Parameters
        ----------
        line
            The line with its end.
        after
            How many bytes of the file stay; what stands behind them is a line that was torn.

        Returns
        -------
        int
            How many bytes the file has now.

        Raises
        ------
        OutputError
            Where it cannot be written, or another program wrote the file meanwhile.
        """
        assert self.path is not None
        new = line.encode()
        with writing(self.path, self._what), locked(self.path.resolve().parent):
            self._refuse_changed()
            with self.path.open("r+b") as file:
                file.truncate(after)
                file.seek(after)
                try:
                    file.write(new)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(after)
                    self._seen = _stamp(self.path)
                    raise
            self._seen = _stamp(self.path)
        return after + len(new)

    def _refuse_changed(self) -> None:
        if _stamp(self.path) not in (self._seen, None):
            raise OutputError(
                f"{self.path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Marks that change when a file does; None where there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class AutosavingStore:
    """Annotations of a movie kept in a file: a change is on disk when the call returns.

    Emits `changed` after every change.

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
        self._file = KeptFile(path, "the annotations")
        self._whole: int | None = None  # bytes of the journal; None where it is to be written whole
        self.notice = ""
        self._history = AnswerHistory(AnnotationSet(geometry) if begin is None else begin)
        if self._file.path is not None:
            self._file.path.parent.mkdir(parents=True, exist_ok=True)
            if self._file.there:
                read = _read(self._file.path)
                self._history, self.notice = read.history, read.notice
                if read.changes is not None and read.changes < _MANY_LINES:
                    self._whole = read.whole
        self.resumed = len(self.annotations)
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
        return self._file.path

    @property
    def history(self) -> AnswerHistory:
        """The present annotations with what can be undone and redone."""
        return self._history

    @property
    def annotations(self) -> AnnotationSet:
        """The present annotations."""
        return self._history.annotations

    def answer(
        self,
        kind: Kind,
        events: Iterable[EventRef],
        source: str,
        seconds: float | None = None,
    ) -> tuple[Annotation, int]:
        """Add an answer in place of those that it contradicts, as one step.

        Parameters
        ----------
        kind, events, source, seconds
            As in `Annotation`.

        Returns
        -------
        Annotation, int
            The answer, and how many earlier ones it replaced. Where the same was said before,
            that annotation, and nothing changes.

        Raises
        ------
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        have = self.annotations
        new = Annotation(have.next_id(), kind, tuple(events), now(), source, seconds)
        said = [e.key for e in new.events]
        for a in have.at(*new.events[0].cells[0].cell):
            if a.kind == kind and [e.key for e in a.events] == said:
                return a, 0
        return new, self._add_in_place([new])

    def answer_all(
        self, said: Iterable[tuple[Kind, EventRef]], source: str
    ) -> tuple[list[Annotation], int]:
        """Add answers in place of those that they contradict, as one step; raises as `answer`.

        Returns
        -------
        list of Annotation, int
            The answers that were not there before, and how many earlier ones they replaced.
        """
        have, created = self.annotations, now()
        known = {(a.kind, a.events[0].key) for a in have if a.kind in (Kind.CONFIRM, Kind.REJECT)}
        fresh = [s for s in said if (s[0], s[1].key) not in known]
        stem, first, _ = natural_key(have.next_id())
        new = [
            Annotation(f"{stem}{first + k}", kind, (event,), created, source)
            for k, (kind, event) in enumerate(fresh)
        ]
        return new, self._add_in_place(new) if new else 0

    def _add_in_place(self, new: list[Annotation]) -> int:
        """Add answers in place of those that they contradict; returns how many these are."""
        have = self.annotations
        replaced = sorted({i for c in conflicts_with(have, new) for i in c.ids if i in have})
        self.refuse_locked(have[i] for i in replaced)
        self.edit(replaced, new)
        return len(replaced)

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
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        removed, added = list(remove), list(add)
        change = {
            "do": "answer",
            "removed": removed,
            "added": [_annotation_to_json(a) for a in added],
        }
        return self._keep(self._history.record(removed, added), change)

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """Add annotations as one step; raises as `edit`."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """Remove annotations as one step; raises as `edit`."""
        return self.edit(remove=ids)

    def undo(self) -> AnnotationSet:
        """Take back the last step, where there is one; raises OutputError as `edit`."""
        if not self._history.past:
            return self.annotations
        return self._keep(self._history.undo(), {"do": "undo"})

    def redo(self) -> AnnotationSet:
        """Repeat the step undone last, where there is one; raises OutputError as `edit`."""
        if not self._history.future:
            return self.annotations
        return self._keep(self._history.redo(), {"do": "redo"})

    def _keep(self, history: AnswerHistory, change: dict[str, Any]) -> AnnotationSet:
        """Write first, then believe it: a failed write leaves memory and disk as they were."""
        if self.path is not None:
            if self._whole is None or not self.path.exists():
                text = _first_line(history)
                self._file.write(lambda: text)
                self._whole = len(text.encode())
            else:
                line = json.dumps(change, allow_nan=False) + "\n"
                self._whole = self._file.append(line, self._whole)
        self._history = history
        self.changed.emit()
        return history.annotations
