"""Annotations as JSON text, one annotation a line, the same text for the same set.

Strict reading of annotation files: every entry is checked, errors name it.

Annotation files: whole reads, atomic writes, and a store that saves every change.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet, Change, History, redo, undo
from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import program_version, write_text
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry, geometry_to_json

FORMAT = "bridgetrack-annotations"
VERSION = 1


def _cell_to_json(ref: CellRef) -> dict[str, Any]:
    return {"frame": ref.frame, "label": ref.label, "position": list(ref.position)}


def _event_to_json(ref: EventRef) -> dict[str, Any]:
    return {
        "event": ref.event.key,
        "sources": [_cell_to_json(c) for c in ref.sources],
        "targets": [_cell_to_json(c) for c in ref.targets],
    }


Lines = dict[str, tuple[Annotation, str]]
"""Annotations written before and their lines, by id."""


def _line(annotation: Annotation, known: Lines) -> str:
    """One annotation as JSON, taken from the lines known or added to them."""
    before = known.get(annotation.id)
    if before is not None and before[0] is annotation:
        return before[1]
    line = _fresh_line(annotation)
    known[annotation.id] = annotation, line
    return line


def _fresh_line(annotation: Annotation) -> str:
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
    return json.dumps(entry, allow_nan=False)


def _list_text(lines: list[str], indent: str) -> str:
    if not lines:
        return "[]"
    joint = f",\n{indent}  "
    return f"[\n{indent}  {joint.join(lines)}\n{indent}]"


def _change_text(change: Change, history: History) -> str:
    """A step; annotations that are in the present set go by their id."""
    present = history.annotations

    def short(a: Annotation) -> str:
        return f'"{a.id}"' if a.id in present and present[a.id] == a else _fresh_line(a)

    removed = ", ".join(short(a) for a in change.removed)
    added = ", ".join(short(a) for a in change.added)
    return f'{{"removed": [{removed}], "added": [{added}]}}'


def encode(history: History, known: Lines | None = None) -> str:
    """A history as the text of an annotation file.

    Parameters
    ----------
    history
        The present annotations and the steps to undo and redo; without steps the file has
        none.
    known
        Lines of an earlier call for the same file, which saves time; brought up to date.

    Returns
    -------
    str
        JSON with a line per annotation, in the natural order of ids.
    """
    known = {} if known is None else known
    lines = [_line(a, known) for a in history.annotations]
    text = f'{{\n  "format": "{FORMAT}",\n  "version": {VERSION},\n'
    movie = geometry_to_json(history.annotations.geometry)
    text += f'  "movie": {json.dumps(movie, allow_nan=False)},\n'
    text += f'  "annotations": {_list_text(lines, "  ")}'
    if history.past or history.future:
        past = _list_text([_change_text(c, history) for c in history.past], "    ")
        future = _list_text([_change_text(c, history) for c in history.future], "    ")
        text += f',\n  "history": {{\n    "undo": {past},\n    "redo": {future}\n  }}'
    return text + "\n}\n"


def _fail(where: str, message: str) -> NoReturn:
    raise InputError(f"{where}: {message}")


def _object(value: Any, where: str, needed: Sequence[str], optional: Sequence[str] = ()) -> Any:
    if not isinstance(value, dict):
        _fail(where, f"expected an object, found {_shown(value)}")
    missing = [k for k in needed if k not in value]
    if missing:
        _fail(where, f"lacks {', '.join(missing)}")
    unknown = [k for k in value if k not in needed and k not in optional]
    if unknown:
        _fail(where, f"has the unknown entry {unknown[0][:40]!r}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        _fail(where, f"expected a list, found {_shown(value)}")
    return value


def _int(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(where, f"expected a whole number, found {_shown(value)}")
    return value


def _float(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(where, f"expected a number, found {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        _fail(where, "the number is too large")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        _fail(where, f"expected a text, found {_shown(value)}")
    return value


def _geometry(value: Any, where: str) -> Geometry:
    movie = _object(value, where, ["n_frames", "shape", "scale"], ["unit", "frame_interval"])
    n_frames = _int(movie["n_frames"], f"{where}.n_frames")
    if n_frames < 1:
        _fail(f"{where}.n_frames", f"must be 1 or more, not {n_frames}")
    shape = movie["shape"]
    if shape is not None:
        shape = tuple(_int(s, f"{where}.shape") for s in _list(shape, f"{where}.shape"))
        if min(shape, default=0) < 1:
            _fail(f"{where}.shape", f"must be positive numbers, not {_shown(list(shape))}")
    scale = tuple(_float(s, f"{where}.scale") for s in _list(movie["scale"], f"{where}.scale"))
    interval = movie.get("frame_interval")
    try:
        return Geometry(
            n_frames,
            shape,
            scale,
            _text(movie.get("unit", "pixel"), f"{where}.unit"),
            None if interval is None else _float(interval, f"{where}.frame_interval"),
        )
    except InputError as error:
        _fail(where, str(error))


def _cell(value: Any, where: str) -> CellRef:
    cell = _object(value, where, ["frame", "label", "position"])
    position = _list(cell["position"], f"{where}.position")
    return CellRef(
        _int(cell["frame"], f"{where}.frame"),
        _int(cell["label"], f"{where}.label"),
        tuple(_float(p, f"{where}.position") for p in position),
    )


def _cells(value: Any, where: str) -> tuple[CellRef, ...]:
    return tuple(_cell(c, f"{where}[{k}]") for k, c in enumerate(_list(value, where)))


def _event(value: Any, where: str) -> EventRef:
    event = _object(value, where, ["event", "sources", "targets"])
    key = _text(event["event"], f"{where}.event")
    if key not in {e.key for e in Event}:
        _fail(f"{where}.event", f"{key[:40]!r} is none of {', '.join(e.key for e in Event)}")
    return EventRef(
        Event.from_key(key),
        _cells(event["sources"], f"{where}.sources"),
        _cells(event["targets"], f"{where}.targets"),
    )


def _annotation(value: Any, where: str) -> Annotation:
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        where = f"{where} (id {value['id'][:64]!r})"
    entry = _object(value, where, ["id", "kind", "events", "source"], ["created", "seconds"])
    kind = _text(entry["kind"], f"{where}.kind")
    if kind not in set(Kind):
        _fail(f"{where}.kind", f"{kind[:40]!r} is none of {', '.join(Kind)}")
    events = _list(entry["events"], f"{where}.events")
    created, seconds = entry.get("created"), entry.get("seconds")
    try:
        return Annotation(
            _text(entry["id"], f"{where}.id"),
            Kind(kind),
            tuple(_event(e, f"{where}.events[{k}]") for k, e in enumerate(events)),
            None if created is None else _text(created, f"{where}.created"),
            _text(entry["source"], f"{where}.source"),
            None if seconds is None else _float(seconds, f"{where}.seconds"),
        )
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def _change(value: Any, where: str, present: AnnotationSet) -> Change:
    step = _object(value, where, ["removed", "added"])

    def one(entry: Any, where: str) -> Annotation:
        if not isinstance(entry, str):
            return _annotation(entry, where)
        if entry not in present:
            _fail(where, f"there is no annotation with the id {entry[:64]!r}")
        return present[entry]

    def read(side: str) -> tuple[Annotation, ...]:
        entries = enumerate(_list(step[side], f"{where}.{side}"))
        return tuple(one(e, f"{where}.{side}[{k}]") for k, e in entries)

    return Change(read("removed"), read("added"))


def _check_steps(history: History, where: str) -> None:
    """Replay the steps both ways, so that undo and redo cannot fail later."""
    for steps, back in ((history.past, True), (history.future, False)):
        annotations = history.annotations
        for step in reversed(steps):
            annotations = (step.inverse if back else step).apply(annotations)


def _history(value: Any, where: str, present: AnnotationSet) -> History:
    steps = _object(value, where, ["undo", "redo"])
    read = []
    for side in ("undo", "redo"):
        entries = enumerate(_list(steps[side], f"{where}.{side}"))
        read.append(tuple(_change(s, f"{where}.{side}[{k}]", present) for k, s in entries))
    history = History(present, *read)
    try:
        _check_steps(history, where)
    except InputError as error:
        _fail(where, f"its steps do not fit the annotations ({error}); delete the history")
    return history


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"an object with the entries {[k for k, _ in pairs]} repeats one")
    return made


def _other_version(version: int) -> str:
    program = f"this program (bridgetrack {program_version()}) reads version {VERSION}"
    said = f"the annotations have file version {version}, {program}"
    if version > VERSION:
        return (
            f"{said}; they were written by a later release: update the program Bridgetrack to that "
            "one (install its newer copy with pip install), or save them again with this one"
        )
    return f"{said}, and no release ever wrote that one; restore the file from a copy"


def decode(text: str, name: str) -> History:
    """Annotations and their undo history from the text of an annotation file.

    Parameters
    ----------
    text
        JSON as `bridgetrack.annotations.store.encode` makes it.
    name
        The file's name for messages.

    Raises
    ------
    InputError
        Where the text is not valid; the message names the file and the entry.
    """
    try:
        data = json.loads(text, parse_constant=_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        _fail(
            name,
            f"the file is damaged or cut off: it is not valid JSON ({error}); restore it from a "
            "copy or start a new one",
        )
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        _fail(name, f'is no annotation file: "format" must be "{FORMAT}"')
    version = _int(data.get("version"), f"{name}: version")
    if version != VERSION:
        _fail(name, _other_version(version))
    _object(data, name, ["format", "version", "movie", "annotations"], ["history"])
    geometry = _geometry(data["movie"], f"{name}: movie")
    entries = enumerate(_list(data["annotations"], f"{name}: annotations"))
    listed = [_annotation(e, f"{name}: annotations[{k}]") for k, e in entries]
    try:
        annotations = AnnotationSet(geometry, listed)
    except InputError as error:
        _fail(name, str(error))
    if "history" not in data:
        return History(annotations)
    return _history(data["history"], f"{name}: history", annotations)


_Stamp = tuple[int, int, int] | None
_STALE = 60.0


def _write(path: Path, text: str) -> None:
    """Replace a file in one step: after a crash it is the old or the new one, whole."""
    write_text(path, text, "the annotations")


def load_history(path: str | os.PathLike[str]) -> History:
    """Annotations and what can be undone and redone, from a file.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no annotation file: it is not text in UTF-8") from error
    return decode(text, str(file))


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    return load_history(path).annotations


def save_annotations(annotations: AnnotationSet | History, path: str | os.PathLike[str]) -> None:
    """Write annotations, and the undo history where one is given, to a file in one step.

    Raises
    ------
    OutputError
        Where the file cannot be written; what was there before is left as it was.
    """
    history = annotations if isinstance(annotations, History) else History(annotations)
    _write(Path(path), encode(history))


def _sweep(path: Path) -> None:
    """Remove what a killed program left beside the file a minute ago or earlier."""
    target = path.resolve()
    for left in target.parent.glob(f".{target.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class AutosavingStore:
    """Annotations of a movie kept in a file: a change is on disk when the call returns.

    Parameters
    ----------
    path
        The file; read where it is there (to resume), made at the first change where not.
    geometry
        Extent and scale of the movie, for a new file.

    Raises
    ------
    InputError
        Where the file is there but not valid, or belongs to a movie with another number of
        axes.
    """

    def __init__(self, path: str | os.PathLike[str], geometry: Geometry) -> None:
        self._path = Path(path)
        self._lines: Lines = {}
        _sweep(self._path)
        self._seen = _stamp(self._path)
        if self._seen is None:
            self._history = History(AnnotationSet(geometry))
        else:
            self._history = load_history(self._path)
            self._check_movie(geometry)

    def _check_movie(self, geometry: Geometry) -> None:
        known = self.annotations.geometry
        if known.ndim != geometry.ndim:
            raise InputError(
                f"{self._path} belongs to a movie with {known.ndim} spatial axes, this one has "
                f"{geometry.ndim}; choose another file"
            )

    @property
    def path(self) -> Path:
        """Where the annotations are kept."""
        return self._path

    @property
    def history(self) -> History:
        """The present annotations with what can be undone and redone."""
        return self._history

    @property
    def annotations(self) -> AnnotationSet:
        """The present annotations."""
        return self._history.annotations

    def _keep(self, history: History) -> AnnotationSet:
        """Write first, then believe it: a failed write leaves memory and disk as they were."""
        if _stamp(self._path) not in (self._seen, None):
            raise OutputError(
                f"{self._path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )
        _write(self._path, encode(history, self._lines))
        self._seen = _stamp(self._path)
        self._history = history
        return history.annotations

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnnotationSet:
        """Remove and add annotations as one step.

        Raises
        ------
        InputError
            Where the step does not fit the set.
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        return self._keep(self._history.record(remove, add))

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """Add annotations as one step; raises as `edit`."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """Remove annotations as one step; raises as `edit`."""
        return self.edit(remove=ids)

    def replace(self, annotation: Annotation) -> AnnotationSet:
        """Put an annotation in the place of the one with its id; raises as `edit`."""
        return self.edit(remove=[annotation.id], add=[annotation])

    def undo(self) -> AnnotationSet:
        """Take back the last step, where there is one; raises OutputError as `edit`."""
        return self._keep(undo(self._history)) if self._history.past else self.annotations

    def redo(self) -> AnnotationSet:
        """Repeat the step undone last, where there is one; raises OutputError as `edit`."""
        return self._keep(redo(self._history)) if self._history.future else self.annotations
