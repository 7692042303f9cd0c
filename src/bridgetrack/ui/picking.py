"""Picking the cells of an event click by click, as pure functions of a small state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.hypotheses.events import N_SOURCES, N_TARGETS, Event


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
    SUGGEST = "suggest"

    @property
    def event(self) -> Event | None:
        """The event that this mode annotates, None where it annotates none."""
        others = (Mode.REVIEW, Mode.SWAP, Mode.SUGGEST)
        return None if self in others else Event.from_key(self.value)


@dataclass(frozen=True)
class Picking:
    """Cells picked so far."""

    mode: Mode = Mode.REVIEW
    sources: tuple[CellRef, ...] = ()
    targets: tuple[CellRef, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is picked."""
        return not self.sources and not self.targets

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
        if self.mode == Mode.SWAP:
            return "Click the other cell, in the same frame."
        if not self.waits_for_target:
            return "Click the second cell, in the same frame."
        if self.targets:
            return "Click the second one."
        if self.mode == Mode.MOVE:
            return "Click the outlined cell here. Enter: it is gone. Esc: never mind."
        if self.mode == Mode.MERGE:
            return "Click the region that holds both. Esc: never mind."
        return "Click both parts, one after the other. Esc: never mind."


@dataclass(frozen=True)
class Step:
    """What a click leads to."""

    picking: Picking  # the new state
    event: EventRef | None = None  # now complete; None while cells are missing
    frame: int | None = None  # to show next, None to stay
    problem: str = ""  # why the click could not be used


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
    Mode.SUGGEST: "Is what is drawn right? Enter: yes. Bksp: no. A number: that one instead. "
    "U: cannot tell. G: another one. Esc: stop.",
}


def click(state: Picking, cell: CellRef) -> Step:
    """The state after a click on a cell, in an event mode.

    A click in the frame of the picked cell starts again from there; a later frame than the
    next closes a gap where the mode is *move*.
    """
    event = state.mode.event
    if event is None:
        return Step(state)
    if event == Event.APPEAR:
        return _done(state, EventRef(event, (), (cell,)), None)
    if not state.waits_for_target:
        return _pick_source(state, event, cell)
    return _pick_target(state, event, cell)


def _pick_source(state: Picking, event: Event, cell: CellRef) -> Step:
    same_frame = state.sources and state.sources[0].frame == cell.frame
    kept = tuple(s for s in state.sources if s.cell != cell.cell) if same_frame else ()
    picked = replace(state, sources=(*kept, cell))
    if len(picked.sources) < N_SOURCES[event]:
        return Step(picked)
    if N_TARGETS[event] == 0:
        return _done(state, EventRef(event, picked.sources), None)
    return Step(picked, frame=cell.frame + 1)


def _pick_target(state: Picking, event: Event, cell: CellRef) -> Step:
    start = state.sources[0].frame
    gap = cell.frame - start
    if gap == 0:
        return _pick_source(replace(state, sources=(), targets=()), event, cell)
    if gap > 1 and event == Event.MOVE:
        return _done(state, EventRef(Event.SKIP, state.sources, (cell,)), start)
    if gap != 1:
        return Step(state, frame=start + 1, problem="The next cell must be one frame later.")
    if any(t.cell == cell.cell for t in state.targets):
        return Step(state, problem="That cell is picked already; click the other one.")
    targets = (*state.targets, cell)
    if len(targets) < N_TARGETS[event]:
        return Step(replace(state, targets=targets))
    return _done(state, EventRef(event, state.sources, targets), start)


def finish(state: Picking) -> Step:
    """Enter: a cell whose successor was not clicked leaves."""
    if state.mode == Mode.MOVE and state.waits_for_target:
        return _done(state, EventRef(Event.DISAPPEAR, state.sources), state.sources[0].frame)
    return Step(state, problem="" if state.empty else state.hint)


def cancel(state: Picking) -> Step:
    """Esc: forget what was picked; with nothing picked, go back to review."""
    if state.empty:
        return Step(Picking(Mode.REVIEW))
    back = state.sources[0].frame if state.waits_for_target else None
    return Step(Picking(state.mode), frame=back)


def _done(state: Picking, event: EventRef, frame: int | None) -> Step:
    return Step(Picking(state.mode), event, frame)
