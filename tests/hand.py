"""Mouse and keyboard for a viewer in tests."""

from __future__ import annotations

from typing import Any

import numpy as np


class Hand:
    """Points, clicks and types on the real canvas."""

    def __init__(self, viewer: Any, qtbot: Any) -> None:
        from qtpy.QtWidgets import QApplication

        self.viewer, self.qtbot = viewer, qtbot
        kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
        self.canvas = next(w for w in kinds if w.isVisible())

    def _pixel(self, world: Any) -> Any:
        from qtpy.QtCore import QPoint

        from bridgetrack.ui.layers import camera_of

        camera = camera_of(self.viewer)
        centre = np.array([self.canvas.height(), self.canvas.width()]) / 2
        y, x = (np.asarray(world)[-2:] - np.array(camera.center[-2:])) * camera.zoom + centre
        return QPoint(round(x), round(y))

    def point(self, world: Any) -> None:
        """Move the pointer to a position in the movie's unit."""
        self.move(self._pixel(world))

    def move(self, pixel: Any, held: bool = False) -> None:
        """Move the pointer; sent to the canvas directly, for warping the pointer needs the X
        server to answer in time."""
        from qtpy.QtCore import QEvent, QPointF, Qt
        from qtpy.QtGui import QMouseEvent
        from qtpy.QtWidgets import QApplication

        none, left = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
        where, above = QPointF(pixel), QPointF(self.canvas.mapToGlobal(pixel))
        event = QMouseEvent(
            QEvent.Type.MouseMove, where, above, none, left if held else none,
            Qt.KeyboardModifier.NoModifier,
        )  # fmt: skip
        QApplication.sendEvent(self.canvas, event)
        self.qtbot.wait(5)

    def click(self, world: Any, shift: bool = False) -> None:
        """Point and click."""
        from qtpy.QtCore import Qt

        held = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
        self.point(world)
        self.qtbot.mouseClick(self.canvas, Qt.MouseButton.LeftButton, held, self._pixel(world))
        self.qtbot.wait(10)

    def key(self, key: str, control: bool = False, shift: bool = False) -> None:
        """Press a key, e.g. ``"Z"`` or ``"Return"``."""
        from qtpy.QtCore import Qt

        held = Qt.KeyboardModifier.ControlModifier if control else Qt.KeyboardModifier.NoModifier
        held = Qt.KeyboardModifier.ShiftModifier if shift else held
        self.qtbot.keyClick(self.canvas, getattr(Qt.Key, f"Key_{key}"), held)
        self.qtbot.wait(10)
