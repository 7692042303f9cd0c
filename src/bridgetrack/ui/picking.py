"""Picking the cells of an event click by click."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import N_TARGETS, Event
from bridgetrack.regions.mend import MendKind, Place
from bridgetrack.ui.looks import LOOKS, PROPOSAL


class Mode(Enum):
    """What a click means: its key, if any, the words of its button, and what to do.

    Those that say an event or mend masks have the name of that.
    """

    key: str
    words: str
    hint: str

    def __init__(self, key: str, words: str, hint: str) -> None:
        self.key, self.words, self.hint = key, words, hint

    REVIEW = (
        "", "", "Point at a cell to see what the model thinks. Enter says yes, Backspace no."
    )  # fmt: skip
    SUGGEST = (
        "", "",
        "Is what is drawn right? Enter: yes. Bksp: no. A number: that one instead. "
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
        "F", "Not a cell", "Click what is not a cell. Shift+click: nothing in its track is a cell."
    )  # fmt: skip
    VERIFY = (
        "", "Verify track",
        "Click a cell whose track is right: it is locked. Again: it is released. With Shift: its "
        "whole family.",
    )  # fmt: skip
    CUT = (
        "K", "Two cells",
        "Click two cells drawn as one; or Shift+click one, then click the other; or click beside "
        "them on both sides.",
    )  # fmt: skip
    JOIN = "J", "One cell", "Click two pieces of one cell."
    GROW = "N", "New cell", "Click a cell that is not drawn."
    REMOVE = "E", "No cell", "Click what is drawn but is no cell."
    OUTLINE = (
        "O", "Outline",
        "Click a cell for its next outline. Shift+click: the outline that another layer of masks "
        "in view has here.",
    )  # fmt: skip
    CHECK = (
        "I", "All right",
        "Correct what is wrong in view first. Then click the image or press Enter: every cell in "
        "view is right, and none is missing.",
    )  # fmt: skip

    @property
    def mends(self) -> MendKind | None:
        """How this mode mends masks, None where it does not."""
        return MendKind.__members__.get(self.name)

    @property
    def event(self) -> Event | None:
        """The event that this mode annotates, None where it annotates none."""
        return Event.__members__.get(self.name)

    @property
    def title(self) -> str:
        """What a click says, with the sign of its event."""
        return self.words if self.event is None else f"{LOOKS[self.event].sign} {self.words}"

    @property
    def colour(self) -> str:
        """The colour of what a click says."""
        return PROPOSAL if self.event is None else LOOKS[self.event].colour


@dataclass(frozen=True)
class Picking:
    """Cells picked so far."""

    mode: Mode = Mode.REVIEW
    source: CellRef | None = None
    targets: tuple[CellRef, ...] = ()
    place: tuple[int, Place] | None = None  # frame and place of the first of two clicks on masks
    half: int = 0  # label of the cell that the first click was in one half of, 0 where in none

    @property
    def empty(self) -> bool:
        """Whether nothing is picked."""
        return self.source is None and self.place is None

    @property
    def hint(self) -> str:
        """What to do next, in plain words."""
        if self.empty:
            return self.mode.hint
        if self.half:
            return "Click in its other half: the cell is cut between the two. Esc: never mind."
        if self.mode == Mode.CUT:
            return "Click on the other side: the line between cuts. Esc: never mind."
        if self.mode == Mode.JOIN:
            return "Click the other piece. Esc: never mind."
        if self.targets:
            return "Click the second one."
        if self.mode == Mode.MOVE:
            return "Click the same cell here; the outline is where it was. Esc: never mind."
        return "Click both daughters, one after the other. Esc: never mind."


@dataclass(frozen=True)
class PickStep:
    """What a click leads to."""

    picking: Picking  # the new state
    event: EventRef | None = None  # now complete; None while cells are missing
    frame: int | None = None  # to show next, None to stay
    problem: str = ""  # why the click could not be used
    places: tuple[Place, ...] = ()  # where masks are to be mended; none while one is missing


def click(state: Picking, cell: CellRef) -> PickStep:
    """The state after a click on a cell, in an event mode.

    A click in the frame of the picked cell starts again from there; a later frame than the
    next closes a gap where the mode is *move*.
    """
    event, start = state.mode.event, state.source
    if event is None:
        return PickStep(state)
    if not N_TARGETS[event]:
        return _done(state, EventRef(event, (cell,)), None)
    if event == Event.APPEAR:
        return _done(state, EventRef(event, (), (cell,)), None)
    if start is None or cell.frame == start.frame:
        return PickStep(Picking(state.mode, cell), frame=cell.frame + 1)
    gap = cell.frame - start.frame
    if gap > 1 and event == Event.MOVE:
        return _done(state, EventRef(Event.SKIP, (start,), (cell,)), start.frame)
    if gap != 1:
        problem = "The next cell must be one frame later."
        return PickStep(state, frame=start.frame + 1, problem=problem)
    if any(t.cell == cell.cell for t in state.targets):
        return PickStep(state, problem="That cell is picked already; click the other one.")
    targets = (*state.targets, cell)
    if len(targets) < N_TARGETS[event]:
        return PickStep(replace(state, targets=targets))
    return _done(state, EventRef(event, (start,), targets), start.frame)


def point(state: Picking, frame: int, place: Place, label: int, *, half: bool = False) -> PickStep:
    """The state after a click in a mode that mends masks, on a cell or (label 0) beside all.

    With `half` it is in one of the two halves of a cell that is to be cut; the next click in that
    cell is in the other.
    """
    first = state.place if state.place is not None and state.place[0] == frame else None
    again = Picking(state.mode)
    if first is not None and state.half and label != state.half:
        return PickStep(state, problem="That is not in the same cell; click in its other half.")
    if half and not (first is not None and state.half):
        if not label:
            return PickStep(state, problem="There is no cell here; Shift+click one of the two.")
        return PickStep(replace(again, place=(frame, place), half=label))
    if first is not None:
        return PickStep(again, places=(first[1], place))
    if state.mode == Mode.JOIN and not label:
        return PickStep(again, problem="There is no cell here; click a piece of one.")
    if state.mode == Mode.JOIN or (state.mode == Mode.CUT and not label):
        return PickStep(replace(again, place=(frame, place)))
    return PickStep(again, places=(place,))


def cancel(state: Picking) -> PickStep:
    """Esc: forget what was picked; with nothing picked, go back to review."""
    if state.empty:
        return PickStep(Picking(Mode.REVIEW))
    back = None if state.source is None else state.source.frame
    return PickStep(Picking(state.mode), frame=back)


def _done(state: Picking, event: EventRef, frame: int | None) -> PickStep:
    return PickStep(Picking(state.mode), event, frame)
