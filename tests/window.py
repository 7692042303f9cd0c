"""What tests of the window do in it and wait for."""

from __future__ import annotations

from typing import Any

import numpy as np

WORK = ("measure", "track", "correct", "choose", "propose", "segment", "settings", "keep cells")
"""Work beside the window that changes what is seen in it."""


def plugin(viewer: Any) -> tuple[Any, Any]:
    """The state of a viewer and the plugin's steps, added to it."""
    from bridgetrack.ui.state import state_of

    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    return state_of(viewer), widget


def tracked(session: Any, qtbot: Any) -> None:
    """Wait for the first tracks."""
    qtbot.waitUntil(lambda: session.tracking is not None)


def settled(session: Any, qtbot: Any) -> None:
    """Wait until nothing is measured, tracked or written any more."""
    qtbot.waitUntil(lambda: session.tracking is not None and not session.busy(*WORK))
    qtbot.wait(50)


def undone(session: Any, qtbot: Any) -> None:
    """Take back everything."""
    while session.can_undo:
        session.undo()
    settled(session, qtbot)


def press(qtbot: Any, target: Any, place: Any = None) -> None:
    """Click with the mouse on a widget, or on a place in it."""
    from qtpy.QtCore import Qt

    more = {} if place is None else {"pos": place}
    qtbot.mouseClick(target, Qt.MouseButton.LeftButton, **more)


def press_row(qtbot: Any, table: Any, row: int) -> None:
    """Click on a row of a table of answers."""
    press(qtbot, table.viewport(), table.visualRect(table.listed.index(row)).center())


def texts_on(state: Any) -> list[str]:
    """What is written on the image."""
    return [str(text) for text in state.canvas.overlay.marks.features["text"]]


def middle(mask: np.ndarray) -> np.ndarray:
    """A pixel inside, near the centroid."""
    inside = np.argwhere(mask)
    return inside[np.abs(inside - inside.mean(axis=0)).sum(axis=1).argmin()]
