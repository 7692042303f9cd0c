"""Pictures of the model's question, side by side in the panel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QFontMetricsF, QIcon, QImage, QPainter, QPainterPath, QPen, QPixmap
from qtpy.QtWidgets import QHBoxLayout, QToolButton, QWidget

from bridgetrack.active.pictures import Picture
from bridgetrack.annotations.annotation import Name

_SIDE, _SMALL = 132, 11
"""Pixels on the screen: the side of a picture where there are two, and the height of names."""


class FrameStrip(QWidget):
    """Shows pictures with what they show; emits `picked` with the frame that was clicked."""

    picked = Signal(int)

    def __init__(self, name: Callable[[], Name]) -> None:
        super().__init__()
        self._name = name
        self.pictures: tuple[Picture, ...] = ()
        self.buttons: list[QToolButton] = []
        self._frame = -1
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self.setFixedHeight(_SIDE + 24)

    def show_pictures(self, pictures: tuple[Picture, ...]) -> None:
        """Show other pictures."""
        for old in self.buttons:
            self._line.removeWidget(old)
            old.deleteLater()
        self.pictures, self.buttons = pictures, [QToolButton() for _ in pictures]
        side = _SIDE if len(pictures) < 3 else 2 * _SIDE // len(pictures)
        for button, picture in zip(self.buttons, pictures, strict=True):
            button.setToolTip("A frame of the question; click to see it on the left")
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(side, side))
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.setCheckable(True)
            button.clicked.connect(partial(self._on_click, picture.frame))
            self._line.addWidget(button)
        self.write_names()
        self.mark(self._frame)

    def write_names(self) -> None:
        """Write on the pictures what cells are called now."""
        for button, picture in zip(self.buttons, self.pictures, strict=True):
            button.setIcon(QIcon(_painted(picture, button.iconSize().width(), self._name())))

    def mark(self, frame: int) -> None:
        """Tell which frame is in view elsewhere."""
        self._frame = frame
        for button, picture in zip(self.buttons, self.pictures, strict=True):
            here = picture.frame == frame
            button.setChecked(here)
            button.setText(f"frame {picture.frame}{' (in view)' if here else ''}")

    def _on_click(self, frame: int, _: bool) -> None:
        self.picked.emit(frame)
        self.mark(self._frame)  # the click has turned its tick


def _painted(picture: Picture, side: int, name: Name) -> QPixmap:
    """A picture with its names and numbers, which have a dark rim and stand free of each other."""
    height, width = picture.pixels.shape[:2]
    image = QImage(picture.pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    smooth = Qt.TransformationMode.SmoothTransformation
    drawn = QPixmap.fromImage(image).scaled(QSize(side, side), transformMode=smooth)
    painter = QPainter(drawn)
    font = painter.font()
    font.setPixelSize(_SMALL)
    metrics, taken = QFontMetricsF(font), list[QRectF]()
    high = metrics.ascent() + 2
    for tag in picture.tags:
        words = tag.words(name)
        wide = metrics.horizontalAdvance(words) + 6
        x = min(max(tag.x * side - wide / 2, 0), side - wide)
        y = min(max(tag.y * side - high / 2, 0), side - high)
        lines = sorted(range(-8, 9), key=lambda k: (abs(k), -k))  # as near as there is room
        places = [QRectF(x, y + k * high, wide, high) for k in lines]
        inside = [place for place in places if place.top() >= 0 and place.bottom() <= side]
        room = min(inside, key=lambda place: sum(map(place.intersects, taken)))
        taken.append(room)
        path = QPainterPath()
        path.addText(room.bottomLeft() + QPointF(3, -3), font, words)
        painter.strokePath(path, QPen(QColor("#000000"), 3))
        painter.fillPath(path, QColor(tag.colour))
    painter.end()
    return drawn
