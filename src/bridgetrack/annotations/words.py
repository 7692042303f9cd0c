"""Events and annotations in plain words, for messages and tables."""

from __future__ import annotations

from collections.abc import Iterable

from bridgetrack.annotations.annotation import Annotation, Cell, CellRef, EventRef, Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.regions.mend import MendKind

FATE = {
    Event.MOVE: "moves on",
    Event.DIVIDE: "divides",
    Event.SPLIT: "is cut in two",
    Event.MERGE: "merges with another cell",
    Event.APPEAR: "appears",
    Event.DISAPPEAR: "leaves",
    Event.SKIP: "is missed for some frames",
    Event.FALSE: "is not a cell",
}
"""What an event says of a cell that it starts from."""

HISTORY = {
    Event.MOVE: "comes from the frame before",
    Event.DIVIDE: "is a daughter",
    Event.SPLIT: "is a piece of a cut cell",
    Event.MERGE: "is two merged cells",
    Event.APPEAR: "appears",
    Event.DISAPPEAR: "leaves",
    Event.SKIP: "was missed for some frames",
    Event.FALSE: "is not a cell",
}
"""What an event says of a cell that it leads to."""

NOUN = {
    Event.MOVE: ("a move", "moves"),
    Event.DIVIDE: ("a division", "divisions"),
    Event.SPLIT: ("a wrong cut", "wrong cuts"),
    Event.MERGE: ("a merge", "merges"),
    Event.APPEAR: ("an appearance", "appearances"),
    Event.DISAPPEAR: ("a disappearance", "disappearances"),
    Event.SKIP: ("a cell missed for some frames", "cells missed for some frames"),
    Event.FALSE: ("something that is not a cell", "things that are not cells"),
}
"""One and several of each event."""

MASKS = {
    MendKind.CUT: "these are two cells",
    MendKind.JOIN: "this is one cell",
    MendKind.GROW: "here is a cell",
    MendKind.REMOVE: "this is no cell",
    MendKind.OUTLINE: "this is its outline",
    MendKind.PAINT: "these masks are right",
    MendKind.KEEP: "these masks are right",
    MendKind.CHECK: "all that was in view is right",
}
"""What an answer says of masks."""


def cell_words(cell: Cell) -> str:
    """A cell, e.g. ``cell 12 in frame 5``."""
    return f"cell {cell[1]} in frame {cell[0]}"


def _labels(cells: Iterable[CellRef]) -> str:
    labels = [str(c.label) for c in cells]
    return f"cell {labels[0]}" if len(labels) == 1 else f"cells {' and '.join(labels)}"


def describe_event(event: EventRef) -> str:
    """An event or a pattern as a short phrase.

    Examples are ``the move of cell 3 in frame 0 to cell 5``, ``a division of cell 3 in frame 0``
    and ``cell 3 in frame 0 is not a cell``.
    """
    kind = event.event
    if kind == Event.FALSE:
        return f"{event.cells[0]} {FATE[kind]}"
    noun = NOUN[Event.MOVE if kind == Event.SKIP else kind][0]
    missed = ", missed for some frames" if kind == Event.SKIP else ""
    if not event.complete:
        where = "of" if event.sources else "that leads to"
        return f"{noun} {where} {event.cells[0]}{missed}"
    if kind == Event.APPEAR:
        return f"the appearance of {event.targets[0]}"
    start = f"the {noun.split(' ', 1)[1]} of {_labels(event.sources)} in frame"
    start = f"{start} {event.sources[0].frame}"
    if not event.targets:
        return start
    later = f" in frame {event.targets[0].frame}" if kind == Event.SKIP else ""
    joint = "to" if kind in (Event.MOVE, Event.SKIP) else "into"
    return f"{start} {joint} {_labels(event.targets)}{later}{missed}"


def describe(annotation: Annotation) -> str:
    """An annotation as one line, e.g. ``not a division of cell 3 in frame 0``."""
    words = [describe_event(e) for e in annotation.events]
    if annotation.kind == Kind.REJECT and annotation.events[0].event == Event.FALSE:
        return f"{annotation.events[0].cells[0]} is a cell"
    if annotation.kind == Kind.REJECT:
        return f"not {words[0]}"
    if annotation.kind == Kind.ONE_OF:
        return f"one of: {'; '.join(words)}"
    if annotation.kind == Kind.CANNOT_TELL:
        return f"cannot tell: {words[0]}"
    return words[0]


def describe_masks(frame: int, kind: MendKind) -> str:
    """An answer about masks as one line, e.g. ``frame 3: these are two cells``."""
    return f"frame {frame}: {MASKS[kind]}"
