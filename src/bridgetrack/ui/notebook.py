"""Writing answers down: each is said back, and what cannot be kept is told."""

from __future__ import annotations

import time
from collections.abc import Callable

from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError
from bridgetrack.ui.session import Session

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
