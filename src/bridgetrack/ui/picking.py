"""Picking the cells of an event click by click, as pure functions of a small state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event
from bridgetrack.regions.mend import MendKind, Place


class Mode(StrEnum):
    """What a click means."""

    REVIEW = "review"
    MOVE = "move"
    DIVIDE = "divide"
    DISAPPEAR = "disappear"
    APPEAR = "appear"
    MERGE = "merge"
    SPLIT = "split"
    FALSE = "false"
    SWAP = "swap"
    BREAK = "break"
    SUGGEST = "suggest"
    CUT = "cut"
    JOIN = "join"
    GROW = "grow"
    REMOVE = "remove"
    OUTLINE = "outline"
    CHECK = "check"
    VERIFY = "verify"
    FAMILY = "family"
    DELETE = "delete_track"

    @property
    def mends(self) -> MendKind | None:
        """How this mode mends masks, None where it does not."""
        return MendKind(self.value) if self in _MENDING else None

    @property
    def edits(self) -> bool:
        """Whether this mode is about whole tracks."""
        return self in _TRACKS

    @property
    def event(self) -> Event | None:
        """The event that this mode annotates, None where it annotates none."""
        others = (Mode.REVIEW, Mode.SWAP, Mode.BREAK, Mode.SUGGEST, *_MENDING, *_TRACKS)
        return None if self in others else Event.from_key(self.value)


_TRACKS = (Mode.VERIFY, Mode.FAMILY, Mode.DELETE)
_MENDING = (Mode.CUT, Mode.JOIN, Mode.GROW, Mode.REMOVE, Mode.OUTLINE, Mode.CHECK)


@dataclass(frozen=True)
class Picking:
    """Cells picked so far."""

    mode: Mode = Mode.REVIEW
    sources: tuple[CellRef, ...] = ()
    targets: tuple[CellRef, ...] = ()
    place: tuple[int, Place] | None = None  # frame and place of the first of two clicks on masks
    half: int = 0  # label of the cell that the first click was in one half of, 0 where in none

    @property
    def empty(self) -> bool:
        """Whether nothing is picked."""
        return not self.sources and not self.targets and self.place is None

    @property
    def waits_for_target(self) -> bool:
        """Whether all earlier cells are picked and a later one is next."""
        event = self.mode.event
        return event is not None and 0 < N_SOURCES[event] == len(self.sources)

    @property
    def hint(self) -> str:
        """What to do next, in plain words."""
        if self.empty:
            return _FIRST[self.mode]
        if self.half:
            return "Click in its other half: the cell is cut between the two. Esc: never mind."
        if self.mode == Mode.CUT:
            return "Click on the other side: the line between cuts. Esc: never mind."
        if self.mode == Mode.JOIN:
            return "Click the other piece. Esc: never mind."
        if self.mode == Mode.SWAP:
            return "Click the other cell, in the same frame."
        if not self.waits_for_target:
            return "Click the second cell, in the same frame."
        if self.targets:
            return "Click the second one."
        if self.mode == Mode.MOVE:
            return "Click the same cell here; the outline is where it was. Esc: never mind."
        if self.mode == Mode.MERGE:
            return "Click the region that holds both. Esc: never mind."
        return "Click both parts, one after the other. Esc: never mind."


@dataclass(frozen=True)
class PickStep:
    """What a click leads to."""

    picking: Picking  # the new state
    event: EventRef | None = None  # now complete; None while cells are missing
    frame: int | None = None  # to show next, None to stay
    problem: str = ""  # why the click could not be used
    places: tuple[Place, ...] = ()  # where masks are to be mended; none while one is missing


_FIRST = {
    Mode.REVIEW: "Point at a cell to see what the model thinks. Click or Enter says yes.",
    Mode.MOVE: "Click a cell, then the same cell one frame later.",
    Mode.DIVIDE: "Click the mother, then her two daughters one frame later.",
    Mode.DISAPPEAR: "Click a cell in the last frame in which it is seen.",
    Mode.APPEAR: "Click a cell in the first frame in which it is seen.",
    Mode.MERGE: "Click two cells, then the region that they share one frame later.",
    Mode.SPLIT: "Click a cell, then its two pieces one frame later.",
    Mode.FALSE: "Click what is not a cell.",
    Mode.SWAP: "Click two cells whose next steps were exchanged.",
    Mode.BREAK: "Click a cell whose link to the next frame is wrong.",
    Mode.VERIFY: "Click a cell whose track is right: it is locked. Again: it is released.",
    Mode.FAMILY: "Click a cell whose family is right, with all daughters: it is locked.",
    Mode.DELETE: "Click a cell of a track that is none: its cells are no cells.",
    Mode.SUGGEST: "Is what is drawn right? Enter: yes. Bksp: no. A number: that one instead. "
    "U: cannot tell. G: another one. Esc: stop.",
    Mode.CUT: "Click two cells drawn as one; or Shift+click one, then click the other; or click "
    "beside them on both sides.",
    Mode.JOIN: "Click two pieces of one cell.",
    Mode.GROW: "Click a cell that is not drawn.",
    Mode.REMOVE: "Click what is drawn but is no cell.",
    Mode.OUTLINE: "Click a cell for its next outline.",
    Mode.CHECK: "Mend what is wrong in view first. Then click the image or press Enter: every cell "
    "in view is right, and none is missing.",
}


def click(state: Picking, cell: CellRef) -> PickStep:
    """The state after a click on a cell, in an event mode.

    A click in the frame of the picked cell starts again from there; a later frame than the
    next closes a gap where the mode is *move*.
    """
    event = state.mode.event
    if event is None:
        return PickStep(state)
    if event == Event.APPEAR:
        return _done(state, EventRef(event, (), (cell,)), None)
    if not state.waits_for_target:
        return _pick_source(state, event, cell)
    return _pick_target(state, event, cell)


def _pick_source(state: Picking, event: Event, cell: CellRef) -> PickStep:
    same_frame = state.sources and state.sources[0].frame == cell.frame
    kept = tuple(s for s in state.sources if s.cell != cell.cell) if same_frame else ()
    picked = replace(state, sources=(*kept, cell))
    if len(picked.sources) < N_SOURCES[event]:
        return PickStep(picked)
    if N_TARGETS[event] == 0:
        return _done(state, EventRef(event, picked.sources), None)
    return PickStep(picked, frame=cell.frame + 1)


def _pick_target(state: Picking, event: Event, cell: CellRef) -> PickStep:
    start = state.sources[0].frame
    gap = cell.frame - start
    if gap == 0:
        return _pick_source(replace(state, sources=(), targets=()), event, cell)
    if gap > 1 and event == Event.MOVE:
        return _done(state, EventRef(Event.SKIP, state.sources, (cell,)), start)
    if gap != 1:
        return PickStep(state, frame=start + 1, problem="The next cell must be one frame later.")
    if any(t.cell == cell.cell for t in state.targets):
        return PickStep(state, problem="That cell is picked already; click the other one.")
    targets = (*state.targets, cell)
    if len(targets) < N_TARGETS[event]:
        return PickStep(replace(state, targets=targets))
    return _done(state, EventRef(event, state.sources, targets), start)


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
    back = state.sources[0].frame if state.waits_for_target else None
    return PickStep(Picking(state.mode), frame=back)


def _done(state: Picking, event: EventRef, frame: int | None) -> PickStep:
    return PickStep(Picking(state.mode), event, frame)
