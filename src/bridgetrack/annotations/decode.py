"""Strict reading of annotation files: every entry is checked, errors name it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.encode import FORMAT, VERSION
from bridgetrack.annotations.history import Change, History
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from bridgetrack.version import program_version


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
        JSON as `bridgetrack.annotations.encode.encode` makes it.
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
