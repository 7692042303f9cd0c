"""Background work in tests that cannot go on unless the event loop beats."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import Any


class Pace:
    """Makes background work wait at each of its steps until the event loop has beaten twice.

    Work that stops the event loop would wait for itself; it fails after `_PATIENCE` seconds.
    """

    _PATIENCE = 30.0

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self.beats = 0
        self.held = False
        self.steps: dict[str, int] = {}
        self.threads: set[int] = set()
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)
        self._timer.start(1)

    def _beat(self) -> None:
        self.beats += 1

    def wrap(self, steps: Generator[Any, None, Any]) -> Generator[Any, None, Any]:
        """The same work, waiting after each step."""
        self.threads.add(threading.get_ident())
        try:
            while True:
                step = next(steps)
                stage = str(getattr(step, "stage", type(step).__name__))
                self.steps[stage] = self.steps.get(stage, 0) + 1
                yield step
                self._wait()
        except StopIteration as stop:
            return stop.value
        finally:
            steps.close()

    def _wait(self) -> None:
        wanted, limit = self.beats + 2, time.monotonic() + self._PATIENCE
        while self.held or self.beats < wanted:
            time.sleep(0.001)
            assert time.monotonic() < limit, "the event loop stands still during work"
