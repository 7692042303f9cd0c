"""Files that are dropped on the window or opened from its File menu, read beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import napari
from qtpy.QtCore import QThread
from qtpy.QtWidgets import QApplication, QMainWindow

from bridgetrack.ui.file_layers import Reader
from bridgetrack.ui.layers import LayerData

if TYPE_CHECKING:
    from bridgetrack.ui.panel import ViewerState

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
    from bridgetrack.ui.panel import shared_state  # most scripts need no panel

    app, here = QApplication.instance(), QThread.currentThread()
    if app is None or here is not app.thread() or not here.loopLevel():
        return None
    windows = [w for w in app.topLevelWidgets() if isinstance(w, QMainWindow) and w.isVisible()]
    viewer = napari.current_viewer()
    return None if viewer is None or len(windows) > 1 else shared_state(viewer)
