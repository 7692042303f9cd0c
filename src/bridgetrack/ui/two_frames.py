"""The two frames of a question side by side."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QImage, QPainter, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget

from bridgetrack.ui.question_pictures import Picture

_GAP = 6
_CAPTION = 18
_LARGEST = 170
_HERE = "#ffffff"


class TwoFrames(QWidget):
    """Shows pictures with their frames' numbers; emits `picked` with the frame of a click."""

    picked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setToolTip("Both frames of the question; click one to see it on the left")
        self._pictures: tuple[Picture, ...] = ()
        self._images: list[QImage] = []
        self._frame = -1

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """What is shown."""
        return self._pictures

    def show_pictures(self, pictures: tuple[Picture, ...]) -> None:
        """Show other pictures."""
        self._pictures = pictures
        self._images = [_image(p) for p in pictures]
        self.updateGeometry()
        self.update()

    def mark(self, frame: int) -> None:
        """Tell which frame is in view elsewhere."""
        if frame != self._frame:
            self._frame = frame
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Two squares side by side, each with its caption."""
        return QSize(320, self._side() + _CAPTION)

    def resizeEvent(self, event: Any) -> None:  # noqa: N802
        """Keep the pictures square."""
        super().resizeEvent(event)
        self.setFixedHeight(self._side() + _CAPTION)

    def _side(self) -> int:
        return max(min((self.width() - _GAP) // 2, _LARGEST), 60)

    def _place(self, k: int) -> QRect:
        side = self._side()
        return QRect(k * (side + _GAP), 0, side, side)

    def paintEvent(self, _: Any) -> None:  # noqa: N802
        """Draw the pictures; the frame in view elsewhere has a rim."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        words = self.palette().windowText().color()
        for k, (picture, image) in enumerate(zip(self._pictures, self._images, strict=True)):
            place = self._place(k)
            painter.drawImage(place, image)
            here = picture.frame == self._frame
            if here:
                painter.setPen(QPen(QColor(_HERE), 2))
                painter.drawRect(place.adjusted(1, 1, -1, -1))
            painter.setPen(words)
            below = QRectF(place.left(), place.bottom() + 1, place.width(), _CAPTION)
            caption = f"frame {picture.frame}{' (in view)' if here else ''}"
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, caption)
        painter.end()

    def mousePressEvent(self, event: Any) -> None:  # noqa: N802
        """Go to the frame that was clicked."""
        spot = QPointF(event.position())
        for k, picture in enumerate(self._pictures):
            if self._place(k).contains(spot.toPoint()):
                self.picked.emit(picture.frame)


def _image(picture: Picture) -> QImage:
    height, width = picture.pixels.shape[:2]
    image = QImage(picture.pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    return image.copy()
