"""What cells are called, by the numbers of their tracks, and events in few words with such names.

The numbers stand on the image at their cells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import FATE, HISTORY, Annotation, CellRef, EventRef, Kind
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.table import verified_tracks

Name = Callable[[CellRef], str]
"""What a cell is called."""


def by_label(cell: CellRef) -> str:
    """A cell by its number in the segmentation, e.g. ``cell 7``."""
    return f"cell {cell.label}"


class CellNames:
    """Names of cells: the number of the track, e.g. ``#12``; by the label where there is none.

    Two pieces of one cell in the same frame are ``#12a`` and ``#12b``; verified tracks have a tick.

    Parameters
    ----------
    tracking
        The tracks; None before there are any.
    """

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking

    @cached_property
    def _of_row(self) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Track of every detection, 0 where it has none, and letters of pieces by their row."""
        assert self._tracking is not None
        nodes = self._tracking.tracks.nodes
        rows = nodes["id"].to_numpy(dtype=np.int64)
        track = np.zeros(len(self._tracking.scene.detections), dtype=np.int64)
        track[rows] = nodes["track_id"].to_numpy(dtype=np.int64)
        shared = nodes[nodes.duplicated(["frame", "track_id"], keep=False)].sort_values("id")
        place = shared.groupby(["frame", "track_id"]).cumcount()
        letters = zip(shared["id"].tolist(), place.tolist(), strict=True)
        return track, {int(row): chr(ord("a") + k % 26) for row, k in letters}

    @cached_property
    def _verified(self) -> frozenset[int]:
        return frozenset() if self._tracking is None else verified_tracks(self._tracking.tracks)

    def track(self, cell: CellRef) -> int:
        """Number of the track of a cell, 0 where it has none."""
        return self._found(cell)[0]

    def verified(self, cell: CellRef) -> bool:
        """Whether the track of a cell is verified."""
        return bool(self._verified) and self.track(cell) in self._verified

    def _found(self, cell: CellRef) -> tuple[int, str]:
        """Track and letter of a cell."""
        if self._tracking is None:
            return 0, ""
        try:
            row = self._tracking.scene.detections.row_of(*cell.cell)
        except InputError:  # an answer about a cell that is gone
            return 0, ""
        track, letters = self._of_row
        return int(track[row]), letters.get(row, "")

    def __call__(self, cell: CellRef) -> str:
        """What a cell is called."""
        track, letter = self._found(cell)
        if not track:
            return by_label(cell)
        return f"#{track}{letter}{'✓' if track in self._verified else ''}"


# ---------------------------------------------------------------------- events


def short_words(event: EventRef, history: bool, name: Name = by_label) -> str:
    """An event as a predicate of the cell in question, e.g. ``divides into #4 and #7``."""
    first, then = [name(c) for c in event.sources], [name(c) for c in event.targets]
    before, after = " and ".join(first), " and ".join(then)
    again, back = ("there again", "there") if first == then else (after, before)
    fate = {
        Event.MOVE: "moves on" if first == then else f"moves to {after}",
        Event.DIVIDE: f"divides into {after}",
        Event.SPLIT: f"is cut into {after}",
        Event.MERGE: f"merges ({before} become {after})",
        Event.DISAPPEAR: "leaves",
        Event.FALSE: "is not a cell",
        Event.SKIP: f"is missed for some frames, then is {again}",
        Event.APPEAR: "appears",
    }
    past = {
        Event.MOVE: "was there before" if first == then else f"comes from {before}",
        Event.DIVIDE: f"is a daughter of {before}",
        Event.SPLIT: f"is a piece of {before}",
        Event.MERGE: f"is {before} merged",
        Event.SKIP: f"was missed for some frames, was {back} before",
    }
    return past.get(event.event, fate[event.event]) if history else fate[event.event]


_SAID = {Kind.REJECT: "not: ", Kind.CANNOT_TELL: "cannot tell: ", Kind.ONE_OF: "one of several: "}


def short_answer(annotation: Annotation, name: Name = by_label) -> str:
    """An answer for a table that has the frame's number beside it, e.g. ``#1 leaves``."""
    event = annotation.events[0]
    return f"{_SAID.get(annotation.kind, '')}{name(event.cells[0])} {_predicate(event, name)}"


def event_words(event: EventRef, name: Name = by_label) -> str:
    """An event as a sentence, e.g. ``#3 in frame 0 divides into #4 and #7``."""
    first = event.cells[0]
    return f"{name(first)} in frame {first.frame} {_predicate(event, name)}"


def _predicate(event: EventRef, name: Name) -> str:
    if event.complete:
        return short_words(event, False, name)
    return (FATE if event.sources else HISTORY)[event.event]


def said_back(noted: Annotation, name: Name = by_label) -> str:
    """An answer, as it is said back."""
    if noted.kind == Kind.CANNOT_TELL:
        return "you cannot tell"
    said = event_words(noted.events[0], name)
    return f"not: {said}" if noted.kind == Kind.REJECT else said


def question_words(asked: Suggestion, name: Name = by_label) -> str:
    """The question."""
    return f"Is this right: {event_words(asked.event, name)}?"


def choice_words(event: EventRef, asked: Suggestion, name: Name = by_label) -> str:
    """An event as a predicate of the cell asked about; sisters tell divisions apart."""
    history = asked.slot[0] == "history"
    words = short_words(event, history, name)
    sisters = [name(c) for c in event.targets if c.cell != asked.slot[1]]
    if not history or not sisters:
        return words
    if sisters == [name(c) for c in event.sources]:
        # The track goes on as the sister so far; its number twice would say nothing.
        return f"{words}, with the later {sisters[0]}"
    return f"{words}, together with {' and '.join(sisters)}"
