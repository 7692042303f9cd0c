"""One viewer that one test after the other has for itself: opening one takes seconds."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

MANIFEST = Path(__file__).parents[1] / "napari.yaml"


@cache
def take_manifest() -> None:
    """The plugin says what it says here, whatever is installed."""
    from npe2 import PluginManager

    plugins = PluginManager.instance()
    plugins.discover()
    plugins.unregister("bridgetrack")
    plugins.register(str(MANIFEST))


def open_window(qtbot: Any, shown: bool = True) -> Any:
    """A new viewer, usually visible."""
    from napari import Viewer

    take_manifest()
    # napari and its dependencies warn about their own futures.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The status is computed in a thread that tests do not wait for.
        with patch("napari._qt.threads.status_checker.StatusChecker.start", lambda *_: None):
            viewer = Viewer(show=shown, show_welcome_screen=False)
    if shown:
        qtbot.waitExposed(viewer.window._qt_window, timeout=20_000)
    return viewer


def is_open(viewer: Any) -> bool:
    """Whether its window is still there."""
    return hasattr(viewer.window, "_qt_window")


def close(viewer: Any) -> None:
    """Close a viewer that may be closed already; where its window was is not kept."""
    if is_open(viewer):
        with patch.object(viewer.window._qt_window, "_save_current_window_settings"):
            viewer.close()


class KeptViewer:
    """Lends a viewer; a test that closes it gets the next test a new one."""

    def __init__(self) -> None:
        self._viewer: Any = None
        self._frozen = False

    def lend(self, open_one: Callable[[], Any]) -> Any:
        """The viewer, empty and in view."""
        if self._viewer is None or not is_open(self._viewer):
            self._viewer = open_one()
            if not self._frozen:  # napari is left out of the search for garbage
                gc.collect()
                gc.freeze()
                self._frozen = True
        self._viewer.window.resize(1200, 800)
        return self._viewer

    def clear(self) -> None:
        """Take away what a test left in it."""
        viewer = self._viewer
        if not is_open(viewer):
            self._viewer = None
            return
        from qtpy.QtCore import QCoreApplication, QEvent
        from qtpy.QtWidgets import QApplication

        docks = list(viewer.window._wrapped_dock_widgets.values())
        for dock in docks:
            inner = dock.widget()
            viewer.window.remove_dock_widget(dock)
            inner.deleteLater()
        del docks
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        viewer.layers.clear()
        viewer.dims.ndisplay = 2
        viewer.dims.ndim = 2
        QApplication.processEvents()
        gc.collect(1)

    def end(self) -> None:
        """Close it."""
        if self._viewer is not None:
            close(self._viewer)
            self._viewer = None
