"""Who asks questions about events, as far as keys and clicks need to know.

Writing answers down: each is said back, and what cannot be kept is told.

The cell under the pointer, and what the model thinks of it.

What hovering, clicking and keys mean: the controller behind the canvas and its buttons.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from psygnal import Signal

from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError
from bridgetrack.session.proposals import SOURCE, Proposal, chosen_event, exchanged, proposals
from bridgetrack.session.session import Session
from bridgetrack.ui import picking
from bridgetrack.ui.finder import CellFinder, PointFinder
from bridgetrack.ui.picking import Mode, Picking, Step


class Asker(Protocol):
    """Gets the answers while it asks."""

    def next(self) -> None:
        """Ask something, or something else."""

    def choose(self, number: int) -> None:
        """The event with this number holds, from 1, the proposed one."""

    def point(self, row: int) -> None:
        """A cell was clicked (-1: none)."""

    def reject(self) -> None:
        """The proposed event does not hold."""

    def cannot_tell(self) -> None:
        """Somebody looked and could not say."""

    def turn(self) -> None:
        """Show the other frame."""

    def subject(self, mode: Mode) -> int:
        """Row of the cell to begin another kind of event with, -1 where there is none."""


_LONGEST = 600.0
"""Seconds; who thinks longer about a cell was away."""


class Notebook:
    """Adds, removes and takes back answers of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._since = time.monotonic()

    def answer(self, kind: Kind, events: list[EventRef], source: str) -> None:
        """Add an answer in place of those that it contradicts."""
        answers = self._session.answers
        if answers is None:
            return
        now = time.monotonic()
        seconds, self._since = min(round(now - self._since, 2), _LONGEST), now

        def add() -> None:
            _, replaced = answers.answer(kind, events, source, seconds)
            words = describe_event(events[0])
            words = words if kind == Kind.CONFIRM else f"not {words}"
            more = f" It replaces {replaced} earlier answer(s)." if replaced else ""
            self._session.message.emit("info", f"Noted: {words}.{more}")

        self._guarded(add)

    def remove(self, cell: CellRef) -> None:
        """Remove the answers about a cell."""
        answers = self._session.answers
        if answers is None:
            return
        found = [a.id for a in answers.annotations.at(*cell.cell)]
        if not found:
            self._session.message.emit("info", "There is no answer about this cell to delete.")
        self._guarded(lambda: answers.remove(*found))

    def undo(self) -> None:
        """Take back the last step."""
        answers = self._session.answers
        if answers is not None:
            self._step("undo", answers.undo)

    def redo(self) -> None:
        """Repeat the step undone last."""
        answers = self._session.answers
        if answers is not None:
            self._step("redo", answers.redo)

    def _step(self, what: str, act: Callable[[], bool]) -> None:
        def step() -> None:
            if not act():
                self._session.message.emit("info", f"There is nothing to {what}.")

        self._guarded(step)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BridgetrackError as error:
            self._session.message.emit("error", str(error))


class Pointing:
    """Finds cells by position; emits `changed` when the overlay must be drawn anew.

    Attributes
    ----------
    hovered
        Row of the cell under the pointer, -1 where there is none.
    history
        Whether to ask where the cell comes from rather than where it goes.
    proposals
        What could happen to it, best first.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._finder: CellFinder | PointFinder | None = None
        self.hovered = -1
        self.history = False
        self.proposals: list[Proposal] = []
        session.source_changed.connect(self._reset)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._refresh)
        session.tracking_changed.connect(self._refresh)

    @property
    def finder(self) -> CellFinder | PointFinder | None:
        """Finds cells by position; None until the movie is measured."""
        return self._finder

    @property
    def proposing(self) -> bool:
        """Whether the model is asked what it thinks."""
        return True

    def hover(self, frame: int, point: tuple[float, ...]) -> None:
        """The pointer moved."""
        row = -1 if self._finder is None else self._finder.row_at(frame, point)
        if row != self.hovered:
            self.point_at(row)

    def point_at(self, row: int) -> None:
        """As if the pointer were on a cell."""
        self.hovered, self.history = row, False
        self._refresh()

    def leave(self) -> None:
        """The pointer points nowhere."""
        if self.hovered >= 0:
            self.hovered = -1
            self._refresh()

    def toggle_history(self) -> None:
        """Ask where the cell comes from rather than where it goes, or back."""
        self.history = not self.history
        self._refresh()

    # ------------------------------------------------------------------ following

    def _reset(self) -> None:
        self._finder, self.hovered, self.proposals = None, -1, []
        self.changed.emit()

    def _on_scene(self) -> None:
        scene = self._session.scene
        if scene is None:
            return
        labels, cells = scene.labels, scene.detections
        self._finder = PointFinder(cells) if labels is None else CellFinder(labels, cells)
        self.hovered = -1
        self._refresh()

    def _refresh(self) -> None:
        tracking = self._session.tracking
        if tracking is None or self.hovered < 0 or not self.proposing:
            self.proposals = []
        else:
            self.proposals = proposals(tracking, self.hovered, history=self.history)
        self.changed.emit()


class Annotator(Pointing):
    """Turns pointing into answers.

    Signals: `changed` when the overlay must be drawn anew, `show` with (frame, position or None)
    when the view should go somewhere, `mode_changed`.
    """

    show = Signal(int, object)
    mode_changed = Signal()

    def __init__(self, session: Session) -> None:
        self.picking = Picking()
        self._swap: int = -1
        self.asker: Asker | None = None
        self._notebook = Notebook(session)
        super().__init__(session)

    # ------------------------------------------------------------------ state

    @property
    def proposing(self) -> bool:
        """Whether the model is asked what it thinks."""
        return self.picking.mode == Mode.REVIEW

    @property
    def hint(self) -> str:
        """What to do next."""
        session = self._session
        if session.source is None:
            return "Choose a segmentation first."
        if session.scene is None:
            return "Measuring the cells; a moment please."
        return self.picking.hint

    def _reset(self) -> None:
        self.picking, self._swap = Picking(self.picking.mode), -1
        super()._reset()

    # ------------------------------------------------------------------ clicks

    def click(self, frame: int, point: tuple[float, ...]) -> None:
        """A click in the image."""
        if self._finder is None:
            self._session.message.emit("info", self.hint)
            return
        self.hover(frame, point)
        if self._asking is not None:
            self._asking.point(self.hovered)
        elif self.picking.mode == Mode.REVIEW:
            self.accept()
        elif self.hovered < 0:
            if not self.picking.empty:
                self._session.message.emit("info", f"There is no cell here. {self.hint}")
        elif self.picking.mode == Mode.SWAP:
            self._swap_with(self.hovered)
        else:
            self._follow(picking.click(self.picking, self._finder.ref(self.hovered)))

    def _follow(self, step: Step) -> None:
        self.picking = step.picking
        if step.problem:
            self._session.message.emit("info", step.problem)
        if step.frame is not None:
            self.hovered = -1
            self.show.emit(step.frame, None)
        if step.event is not None:
            self._notebook.answer(Kind.CONFIRM, [step.event], "click")
        self._refresh()

    # ------------------------------------------------------------------ keys and buttons

    def set_mode(self, mode: Mode) -> None:
        """Begin annotating another kind of event."""
        back = self.picking.sources[0].frame if self.picking.waits_for_target else None
        self.picking, self._swap = Picking(mode), -1
        if back is not None:
            self.show.emit(back, None)
        self.mode_changed.emit()
        self._refresh()

    def start(self, mode: Mode) -> None:
        """As `set_mode`, beginning with the cell under the pointer, or with the one asked about."""
        row = self.hovered if self._asking is None else self._asking.subject(mode)
        self.set_mode(mode)
        if row < 0 or self._finder is None:
            return
        if mode == Mode.SWAP:
            self._swap_with(row)
        elif mode != Mode.REVIEW:
            self._follow(picking.click(self.picking, self._finder.ref(row)))

    def accept(self) -> None:
        """Enter: yes to the proposal, or an end to picking."""
        if self._asking is not None:
            self._asking.choose(1)
        elif self.picking.mode == Mode.REVIEW:
            self.choose(1)
        else:
            self._follow(picking.finish(self.picking))

    def choose(self, number: int) -> None:
        """Pick the alternative with this number, from 1."""
        if self._asking is not None:
            self._asking.choose(number)
        elif 1 <= number <= len(self.proposals):
            self._notebook.answer(Kind.CONFIRM, [self.proposals[number - 1].event], "review")
            self._refresh()

    def reject(self) -> None:
        """Backspace: the proposal is wrong; or forget what was picked."""
        if self._asking is not None:
            self._asking.reject()
        elif self.picking.mode != Mode.REVIEW:
            self.cancel()
        elif self.proposals:
            self._notebook.answer(Kind.REJECT, [self.proposals[0].event], "review")
            self._refresh()

    def cancel(self) -> None:
        """Esc: forget what was picked, then go back to review."""
        before = self.picking.mode
        step = picking.cancel(self.picking)
        self._swap = -1
        self._follow(step)
        if self.picking.mode != before:
            self.mode_changed.emit()

    @property
    def _asking(self) -> Asker | None:
        """Who is to hear the answers; None while nobody asks."""
        return self.asker if self.picking.mode == Mode.SUGGEST else None

    def suggest(self) -> None:
        """G: let the model ask."""
        if self.asker is not None:
            self.asker.next()

    def cannot_tell(self) -> None:
        """U: somebody looked and could not say."""
        if self._asking is not None:
            self._asking.cannot_tell()
        elif self.proposals:
            self._notebook.answer(Kind.CANNOT_TELL, [self.proposals[0].event], "review")
            self._refresh()

    def turn(self) -> None:
        """T: the other frame of the question."""
        if self._asking is not None:
            self._asking.turn()

    def break_link(self) -> None:
        """B: the cell under the pointer does not go where the tracks say."""
        tracking = self._session.tracking
        if tracking is None or self.hovered < 0:
            self._session.message.emit("info", "Point at a cell whose link is wrong, then press B.")
            return
        event = chosen_event(tracking, self.hovered)
        if event is None:
            self._session.message.emit("info", "This cell has no link to a later frame.")
            return
        self._notebook.answer(Kind.REJECT, [event], SOURCE)

    def _swap_with(self, row: int) -> None:
        tracking = self._session.tracking
        if tracking is None or self._finder is None:
            return
        if self._swap < 0:
            self._swap = row
            self.picking = Picking(Mode.SWAP, (self._finder.ref(row),))
            self._refresh()
            return
        events = exchanged(tracking, self._swap, row)
        self._swap, self.picking = -1, Picking(Mode.SWAP)
        if events is None:
            self._session.message.emit(
                "info", "Only two cells of one frame that both move on can be swapped."
            )
        for event in events or ():
            self._notebook.answer(Kind.CONFIRM, [event], SOURCE)
        self._refresh()

    def delete_here(self) -> None:
        """D: remove the answers about the cell under the pointer."""
        if self._finder is not None and self.hovered >= 0:
            self._notebook.remove(self._finder.ref(self.hovered))

    def undo(self) -> None:
        """Take back the last answer, or what was picked so far."""
        if self.picking.empty:
            self._notebook.undo()
        else:
            self.cancel()

    def redo(self) -> None:
        """Repeat the answer undone last."""
        if self.picking.empty:
            self._notebook.redo()
        else:
            self.cancel()

    def go_to(self, cell: CellRef) -> None:
        """Show a cell."""
        self.show.emit(cell.frame, cell.position)
