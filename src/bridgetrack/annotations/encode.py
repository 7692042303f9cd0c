"""Annotations as JSON text, one annotation a line, the same text for the same set."""

from __future__ import annotations

import json
from typing import Any

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef
from bridgetrack.annotations.history import Change, History
from bridgetrack.movie.geometry_json import geometry_to_json

FORMAT = "bridgetrack-annotations"
VERSION = 1


def _cell(ref: CellRef) -> dict[str, Any]:
    return {"frame": ref.frame, "label": ref.label, "position": list(ref.position)}


def _event(ref: EventRef) -> dict[str, Any]:
    return {
        "event": ref.event.key,
        "sources": [_cell(c) for c in ref.sources],
        "targets": [_cell(c) for c in ref.targets],
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
        "events": [_event(e) for e in annotation.events],
        "source": annotation.source,
    }
    if annotation.created is not None:
        entry["created"] = annotation.created
    if annotation.seconds is not None:
        entry["seconds"] = annotation.seconds
    return json.dumps(entry, allow_nan=False)


def _list(lines: list[str], indent: str) -> str:
    if not lines:
        return "[]"
    joint = f",\n{indent}  "
    return f"[\n{indent}  {joint.join(lines)}\n{indent}]"


def _change(change: Change, history: History) -> str:
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
    text += f'  "annotations": {_list(lines, "  ")}'
    if history.past or history.future:
        past = _list([_change(c, history) for c in history.past], "    ")
        future = _list([_change(c, history) for c in history.future], "    ")
        text += f',\n  "history": {{\n    "undo": {past},\n    "redo": {future}\n  }}'
    return text + "\n}\n"
