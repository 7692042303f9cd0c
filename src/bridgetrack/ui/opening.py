"""Reading files beside the window, one after the other: opened, dropped, or from the File menu."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import napari
from qtpy.QtCore import QThread
from qtpy.QtWidgets import QApplication, QMainWindow

from bridgetrack.progress import Progress, Steps
from bridgetrack.session.background import BackgroundWork, Factory, Runner
from bridgetrack.session.session import Session
from bridgetrack.ui.file_layers import Reader
from bridgetrack.ui.layers import LayerData

if TYPE_CHECKING:
    from bridgetrack.ui.state import ViewerState


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


_LATER: list[LayerData] = [(None,)]  # type: ignore[list-item]
"""What a reader returns that has read a file and has no layers for napari to add."""


def beside(read: Reader | None) -> Reader | None:
    """A reader that has a file read beside the window while a person waits in it.

    napari calls readers in the thread of its window, which stands still until they return. They may
    return that there is nothing to add, though; the layers are added once they are read. Scripts
    wait for what ``viewer.open`` returns, and get the layers from it.
    """
    if read is None:
        return None

    def reader(path: str | list[str]) -> list[LayerData]:
        state = _window_of_a_person()
        if state is None:
            return read(path)
        name = Path(path if isinstance(path, str) else path[0]).name
        state.files.read(name, lambda: read(path), state.add_layers)
        return _LATER

    return reader


def _window_of_a_person() -> ViewerState | None:
    """The window in which an event is handled and a panel of ours tells what comes of it."""
    from bridgetrack.ui.state import shared_state  # most scripts need no panel

    app, here = QApplication.instance(), QThread.currentThread()
    if app is None or here is not app.thread() or not here.loopLevel():
        return None
    windows = [w for w in app.topLevelWidgets() if isinstance(w, QMainWindow) and w.isVisible()]
    viewer = napari.current_viewer()
    return None if viewer is None or len(windows) > 1 else shared_state(viewer)
