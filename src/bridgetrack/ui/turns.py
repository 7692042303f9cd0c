"""Work of the window's own thread in small parts, so that it never stands still for long."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable

from qtpy.QtCore import QTimer

_PAUSE = 10
"""Milliseconds between two parts: time for drawing, for the mouse and for keys."""


class Turns:
    """Does parts one after the other, one per turn of the event loop."""

    def __init__(self) -> None:
        self._parts: deque[Callable[[], None]] = deque()
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._next)

    @property
    def busy(self) -> bool:
        """Whether parts are left."""
        return bool(self._parts)

    def begin(self, *parts: Callable[[], None]) -> None:
        """Do these parts; what is left of earlier ones is dropped."""
        self._parts = deque(parts)
        self._timer.start(_PAUSE)

    def stop(self) -> None:
        """Drop what is left."""
        self._parts.clear()
        # At the end of the program Qt may be gone before this is called.
        with contextlib.suppress(RuntimeError):
            self._timer.stop()

    def _next(self) -> None:
        if self._parts:
            self._parts.popleft()()
        if self._parts:
            self._timer.start(_PAUSE)
