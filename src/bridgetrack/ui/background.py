"""Long work in threads of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from qtpy.QtCore import QObject, Signal

from bridgetrack.session.background import BackgroundWork, Factory, Report

_EVERY = 0.05
"""Seconds between two reports, so that fast steps do not flood the event loop."""

_REST, _OFTEN = 0.25, 0.005
"""Most seconds that work waits for the window, and seconds until it waits again."""


class Links:
    """Connections that are disconnected together."""

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
            # Widgets and viewers may be closed.
            with contextlib.suppress(ValueError, RuntimeError, TypeError):
                each()


class _Caller(QObject):
    """Calls functions in the thread in which it was made."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.wanted.connect(lambda act: act())

    def call(self, act: Callable[[], None]) -> None:
        """Call a function once the event loop is idle; not if Qt has ended."""
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
    done: Report,
    failed: Report,
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


class ThreadWork(BackgroundWork):
    """Does each work in a thread; reports arrive in the thread in which this was made."""

    def __init__(self) -> None:
        super().__init__()
        self._caller = _Caller()

    def do(
        self,
        name: str,
        work: Factory,
        stopped: threading.Event,
        step: Report,
        done: Report,
        failed: Report,
    ) -> None:
        """Begin work."""

        def handed(report: Report) -> Report:
            return lambda what: self._caller.call(lambda: report(what))

        given = (work, stopped, self._caller.rest, *map(handed, (step, done, failed)))
        threading.Thread(target=_drive, args=given, daemon=True, name=f"bridgetrack {name}").start()
