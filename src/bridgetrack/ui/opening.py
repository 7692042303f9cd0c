"""Reading files beside the window, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from bridgetrack.progress import Progress, Steps
from bridgetrack.session.background import BackgroundWork, Factory, Runner
from bridgetrack.session.session import Session

JOB = "open"
"""Name of the background work: reading what is opened."""

Read = TypeVar("Read")


class Opening(BackgroundWork):
    """Reads pixels in a thread of its own, so that the window goes on; errors are told.

    Opening a movie ends all work on the one before, but not what is read for this one.
    """

    def __init__(self, runner: Runner, session: Session) -> None:
        super().__init__(runner)
        self._waiting: deque[tuple[Factory, Callable[[Any], object]]] = deque()
        self.message.connect(session.message.emit)

    def read(self, name: str, read: Callable[[], Read], done: Callable[[Read], object]) -> None:
        """Read something, after what was asked for before, and hand it on in this thread."""

        def work() -> Steps[Read]:
            yield Progress(f"Reading {name}", 0.0)
            return read()

        self.begin(work, done)

    def begin(self, work: Factory, done: Callable[[Any], object]) -> None:
        """Do work in steps after what was asked for before, and hand its result on."""
        self._waiting.append((work, done))
        if not self.busy(JOB):
            self._next()

    def close(self) -> None:
        """End all reading."""
        self._waiting.clear()
        super().close()

    def _next(self) -> None:
        if not self._waiting:
            return
        work, done = self._waiting.popleft()

        def ended(found: Any) -> None:
            with self.telling():
                done(found)
            self._next()

        self.run(JOB, work, ended, lambda _: self._next())
