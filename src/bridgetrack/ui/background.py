"""Long work in threads of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from qtpy.QtCore import QObject, Signal

from bridgetrack.progress import Progress, Steps
from bridgetrack.session.background import BackgroundWork, Done, Factory, Failed, Report, Runner
from bridgetrack.session.session import Session

Read = TypeVar("Read")

READING = "open"
"""Name of the background work that reads what is opened."""

_EVERY = 0.05
"""Seconds between two reports, so that fast steps do not flood the event loop."""

_REST, _OFTEN = 0.25, 0.005
"""Seconds that work lets the window go first at most, and seconds until it does so again."""


class Links:
    """Connections that are cut together."""

    def __init__(self) -> None:
        self._cuts: list[Callable[[], None]] = []

    def add(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect and remember."""
        signal.connect(slot)
        self._cuts.append(lambda: signal.disconnect(slot))

    def cut(self) -> None:
        """Disconnect everything."""
        cuts, self._cuts = self._cuts, []
        for each in cuts:
            # Widgets and viewers may be gone.
            with contextlib.suppress(ValueError, RuntimeError, TypeError):
                each()


class _Caller(QObject):
    """Calls functions in the thread in which it was made."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.wanted.connect(lambda act: act())

    def call(self, act: Callable[[], None]) -> None:
        """Call this once there is nothing else to do; never where Qt is gone at the end."""
        with contextlib.suppress(RuntimeError):
            self.wanted.emit(act)

    def rest(self) -> None:
        """Let the window draw first: threads that compute at the same time hold each other up."""
        idle = threading.Event()
        self.call(idle.set)
        idle.wait(_REST)


def _drive(
    work: Factory,
    stopped: threading.Event,
    rest: Callable[[], None],
    report: Report,
    done: Done,
    failed: Failed,
) -> None:
    told = rested = 0.0
    try:
        with contextlib.closing(work()) as steps:
            while not stopped.is_set():
                if time.monotonic() - rested >= _OFTEN:
                    rest()
                    rested = time.monotonic()
                step = next(steps)
                now = time.monotonic()
                if now - told >= _EVERY or getattr(step, "done", 0.0) in (0.0, 1.0):
                    told = now
                    report(step)
    except StopIteration as stop:
        done(stop.value)
    except Exception as error:
        failed(error)


class ThreadRunner(Runner):
    """Runs each work in a thread; reports arrive in the thread in which this was made."""

    def __init__(self) -> None:
        self._caller = _Caller()
        self._active: dict[str, threading.Event] = {}  # set to stop the work

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        """Begin work; an earlier run of this name is told to stop."""
        self.cancel(name)
        stopped = self._active[name] = threading.Event()

        def handed(act: Callable[[Any], None], *, last: bool) -> Callable[[Any], None]:
            def call(what: Any) -> None:
                if self._active.get(name) is stopped:
                    if last:
                        del self._active[name]
                    act(what)

            return lambda what: self._caller.call(lambda: call(what))

        reports = (handed(report, last=False), handed(done, last=True), handed(failed, last=True))
        given = (work, stopped, self._caller.rest, *reports)
        threading.Thread(target=_drive, args=given, daemon=True, name=f"bridgetrack {name}").start()

    def cancel(self, name: str) -> None:
        """Tell work to stop; what it still delivers is dropped."""
        found = self._active.pop(name, None)
        if found is not None:
            found.set()

    def running(self, name: str) -> bool:
        """Whether work of this name is under way."""
        return name in self._active

    def close(self) -> None:
        """End all work."""
        for name in list(self._active):
            self.cancel(name)


class FileReader(BackgroundWork):
    """Reads files one after the other in a thread, so that the window goes on; errors are told.

    Opening a movie ends all work on the one before, but not what is read for this one.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(ThreadRunner())
        self._waiting: deque[tuple[Factory, Callable[[Any], object]]] = deque()
        self.message.connect(session.message.emit)

    def read(self, name: str, read: Callable[[], Read], done: Callable[[Read], object]) -> None:
        """Read something, after what was asked for before, and hand it on in this thread."""

        def work() -> Steps[Read]:
            yield Progress(f"Reading {name}", 0.0)
            return read()

        self._waiting.append((work, done))
        if not self.busy(READING):
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

        self.run(READING, work, ended, lambda _: self._next())
