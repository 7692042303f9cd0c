"""Picking the cells of an event click by click."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import N_TARGETS, Event
from bridgetrack.regions.mend import MendKind, Place
from bridgetrack.ui.looks import LOOKS, PROPOSAL


class Mode(Enum):
    """Meaning of a click: its key, if any, the words of its button, and the hint.

    Modes for events or masks have the names of these.
    """

    key: str
    words: str
    hint: str

    def __init__(self, key: str, words: str, hint: str) -> None:
        self.key, self.words, self.hint = key, words, hint

    REVIEW = (
        "", "", "Point at a cell to see what the model predicts. Enter: yes. Backspace: no."
    )  # fmt: skip
    SUGGEST = (
        "", "",
        "Is the event shown right? Enter: yes. Bksp: no. A number: that one instead. "
        "U: cannot tell. G: another one. Esc: stop.",
    )  # fmt: skip
    MOVE = "C", "Connect", "Click a cell, then the same cell one frame later."
    DIVIDE = "Y", "Divides", "Click the mother, then her two daughters one frame later."
    DISAPPEAR = (
        "L", "Leaves",
        "Click a cell in the last frame in which it is seen: it leaves, dies or fades.",
    )  # fmt: skip
    APPEAR = "A", "Appears", "Click a cell in the first frame in which it is seen."
    FALSE = (
        "F", "Not a cell",
        "Click an object that is not a cell. Shift+click: nothing in its track is a cell.",
    )  # fmt: skip
    VERIFY = (
        "", "Verify track",
        "Click a cell to verify and lock its track; click again to unlock it. Shift+click: the "
        "whole lineage.",
    )  # fmt: skip
    CUT = (
        "K", "Two cells",
        "Click a mask that covers two cells to cut it; or click beside it on both sides, to cut "
        "along that line.",
    )  # fmt: skip
    JOIN = "J", "One cell", "Click two pieces of one cell."
    GROW = "N", "New cell", "Click a cell without a mask."
    REMOVE = "E", "Delete mask", "Click a mask that is not a cell."
    OUTLINE = (
        "O", "Outline",
        "Click a cell for its next outline. Shift+click: the outline that another layer of masks "
        "in view has here.",
    )  # fmt: skip
    CHECK = (
        "I", "All masks right",
        "Correct the wrong masks in view first. Then click or press Enter: all masks in view are "
        "right, and no cell is missing.",
    )  # fmt: skip

    @property
    def mends(self) -> MendKind | None:
        """Kind of correction of masks, None for other modes."""
        return MendKind.__members__.get(self.name)

    @property
    def event(self) -> Event | None:
        """The event that this mode annotates, None if it annotates none."""
        return Event.__members__.get(self.name)

    @property
    def title(self) -> str:
        """Words of a click, with the sign of its event."""
        return self.words if self.event is None else f"{LOOKS[self.event].sign} {self.words}"

    @property
    def colour(self) -> str:
        """Colour of the event of a click."""
        return PROPOSAL if self.event is None else LOOKS[self.event].colour


@dataclass
class Picking:
    """Cells picked so far for the event of a mode."""

    mode: Mode = Mode.REVIEW
    source: CellRef | None = None
    targets: tuple[CellRef, ...] = ()
    place: tuple[int, Place] | None = None  # frame and place of the first of two clicks on masks

    @property
    def empty(self) -> bool:
        """Whether nothing is picked."""
        return self.source is None and self.place is None

    @property
    def hint(self) -> str:
        """What to do next, in plain words."""
        if self.empty:
            return self.mode.hint
        if self.mode == Mode.CUT:
            return "Click on the other side to cut along the line. Esc cancels."
        if self.mode == Mode.JOIN:
            return "Click the other piece. Esc cancels."
        if self.targets:
            return "Click the second one."
        if self.mode == Mode.MOVE:
            return "Click the same cell here; the outline shows where it was. Esc cancels."
        return "Click both daughters, one after the other. Esc cancels."

    def _forget(self) -> None:
        self.source, self.targets, self.place = None, (), None

    def click(self, cell: CellRef) -> EventRef | None:
        """Pick a cell, in an event mode; the event, once it is complete.

        A click in the frame of the picked cell starts again from there; a later frame than the next
        closes a gap if the mode is *move*.

        Raises
        ------
        InputError
            If the cell does not fit those picked so far, which are kept.
        """
        event, start, made = self.mode.event, self.source, None
        if event is None:
            return None
        if not N_TARGETS[event]:
            made = EventRef(event, (cell,))
        elif event == Event.APPEAR:
            made = EventRef(event, (), (cell,))
        elif start is None or cell.frame == start.frame:
            self.source, self.targets = cell, ()
        elif event == Event.MOVE and cell.frame > start.frame + 1:
            made = EventRef(Event.SKIP, (start,), (cell,))
        elif cell.frame != start.frame + 1:
            raise InputError(f"the next cell must be in frame {start.frame + 1}")
        elif cell.cell in [t.cell for t in self.targets]:
            raise InputError("that cell is picked already; click the other one")
        else:
            self.targets = (*self.targets, cell)
            if len(self.targets) == N_TARGETS[event]:
                made = EventRef(event, (start,), self.targets)
        if made is not None:
            self._forget()
        return made

    def point(self, frame: int, place: Place, label: int) -> tuple[Place, ...]:
        """Pick a place, in a mode that corrects masks; returns all places, once none is missing.

        The place is on a cell or, with label 0, on none.

        Raises
        ------
        InputError
            If there is no cell to join with another.
        """
        first = self.place if self.place is not None and self.place[0] == frame else None
        self._forget()
        if first is not None:
            return first[1], place
        if self.mode == Mode.JOIN and not label:
            raise InputError("there is no cell here; click one")
        if self.mode == Mode.JOIN or (self.mode == Mode.CUT and not label):
            self.place = frame, place
            return ()
        return (place,)
