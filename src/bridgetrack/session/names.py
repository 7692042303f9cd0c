"""What cells are called, by the numbers of their tracks, and questions with such names."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import (
    CellRef,
    EventRef,
    Name,
    by_label,
    describe_event,
    short_words,
)
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.table import verified_tracks


class CellNames:
    """Names of cells: the number of the track, e.g. ``#12``; by the label where there are none.

    Two pieces of one cell in the same frame are ``#12a`` and ``#12b``; verified tracks have a tick.

    Parameters
    ----------
    tracking
        The tracks; None before there are any.
    """

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking

    @cached_property
    def _of_row(self) -> tuple[Index, dict[int, str]]:
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
        if self._tracking is None:
            return by_label(cell)
        track, letter = self._found(cell)
        if not track:
            # Labels are other numbers than those of tracks, which stand in the same sentence.
            return f"untracked {cell.label}"
        return f"#{track}{letter}{'✓' if track in self._verified else ''}"


def question_words(asked: Suggestion, name: Name = by_label) -> str:
    """The question."""
    return f"Is this right: {describe_event(asked.event, name)}?"


def choice_words(event: EventRef, asked: Suggestion, name: Name = by_label) -> str:
    """An event as a predicate of the cell asked about; sisters tell divisions apart."""
    history = asked.slot[0] == "history"
    words = short_words(event, history, name)
    sisters = [c for c in event.targets if c.cell != asked.slot[1]]
    if not history or not sisters:
        return words
    called = [name(c) for c in sisters]
    if called == [name(c) for c in event.sources]:
        # The mother's track goes on as the sister so far; its number twice would say nothing.
        what = "is a sister of" if event.event == Event.DIVIDE else "is one cell with"
        return f"{what} {called[0]} in frame {sisters[0].frame}"
    return f"{words}, together with {' and '.join(called)}"
