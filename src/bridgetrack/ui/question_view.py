"""The model's question: in view on the canvas, and its frames cut out side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPainterPath, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget
from scipy.ndimage import binary_erosion

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, Name
from bridgetrack.arrays import Array, Mask
from bridgetrack.movie import Movie
from bridgetrack.movie.movie import pixels_of
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session
from bridgetrack.ui.background import Links
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import Drawing, SliceShown, draw_question, draw_subject, numbered

_ACROSS = 60.0
"""Screen pixels that a cell is at least across, until somebody zooms."""


class QuestionView:
    """Shows the model's question on the canvas."""

    def __init__(self, session: Session, canvas: Canvas) -> None:
        self._canvas, self._questions = canvas, session.questions
        self._shown: Suggestion | None = None
        self._moving = self._zoomed = False
        canvas.painters.append(self._paint)
        self._links = Links()
        self._links.add(session.questions.look, self.show)
        self._links.add(session.questions.changed, self._on_change)
        self._links.add(canvas.viewer.dims.events.current_step, self._on_frame)

    def close(self) -> None:
        """Follow nothing any more."""
        self._links.cut()

    def show(self, asked: Suggestion) -> None:
        """Go to a question."""
        self._shown = asked
        self._canvas.activate()
        self.go_to(asked.frame, asked.position)

    def go_to(self, frame: int, position: tuple[float, ...] | None = None) -> None:
        """Show a frame of the question and, where given, centre a position in pixels."""
        asked = self._shown
        if asked is None:
            return
        cells = [c for c in asked.cells if c.frame == frame] or asked.cells
        plane = float(np.mean([c.position[0] for c in cells]))
        if position is not None:
            position = (plane, *position[-2:])[-len(position) :]
        self._moving = True
        try:
            across = 0.0 if self._zoomed else _ACROSS
            self._canvas.show(frame, position, plane=plane, across=across)
            self._zoomed = self._zoomed or position is not None
        finally:
            self._moving = False

    def _on_change(self) -> None:
        wanted = self._questions.current if self._questions.asking else None
        if wanted is None and self._shown is not None:
            self._shown = None
            self._zoomed = self._zoomed and self._questions.engaged
            self._canvas.redraw()

    def _on_frame(self) -> None:
        """Somebody steps through the frames: leave the view to them."""
        if not self._moving and self._shown is not None:
            self._questions.away = True

    def _paint(self, drawing: Drawing, view: SliceShown) -> None:
        asked = self._questions.current
        if self._shown is not None:
            draw_question(drawing, self._shown, view, self._canvas.outline)
        elif self._questions.engaged and asked is not None:
            draw_subject(drawing, asked, view, self._canvas.outline)


# ---------------------------------------------------------------------- pictures

Pixels = NDArray[np.uint8]

_ROOM = 1.5
"""Cell diameters around the event's cells."""

_WIDE = 360
"""Pixels that a picture is at least across."""

_BRIGHTER = 1.4
"""White, as a multiple of the brightest cell in question."""


@dataclass(frozen=True)
class PictureTag:
    """A cell's name or numbers on a picture: where, as shares of its height and width."""

    y: float
    x: float
    what: CellRef | str
    colour: str = "#ffffff"

    def words(self, name: Name) -> str:
        """What is written, where cells are called so."""
        return self.what if isinstance(self.what, str) else name(self.what)


@dataclass(frozen=True)
class Picture:
    """The surroundings of an event in one frame."""

    frame: int
    pixels: Pixels  # shape (h, w, 3), with the cells outlined
    tags: tuple[PictureTag, ...] = ()  # names of cells, and numbers of alternatives


def frames_of(asked: Suggestion, n_frames: int) -> list[int]:
    """Frames that a question is about, as far as the movie has them."""
    frames = {asked.frame, asked.last_frame, *(c.frame for c in asked.cells)}
    return sorted(t for t in frames if 0 <= t < n_frames)


def picture_steps(
    source: MovieAndCells, asked: Suggestion, size: float
) -> Steps[tuple[Picture, ...]]:
    """Cut the frames of a question out, with the same brightness.

    `size` is the diameter of a cell in pixels. Cells have the numbers of the alternatives that they
    are in.
    """
    yield Progress("Preparing the pictures", 0.0)
    cuts = [_Cut(source, asked, size, t) for t in frames_of(asked, source.geometry.n_frames)]
    low, high = _contrast(cuts)
    others = numbered(enumerate((asked.event, *asked.alternatives), 1))
    colour = rgba(LOOKS[asked.kind].colour)
    made = []
    for cut in cuts:
        grey = np.clip((cut.grey - low) / max(high - low, 1e-12), 0.0, 1.0)
        rgb = np.repeat(_large((255 * grey).astype(np.uint8), cut.zoom)[..., None], 3, axis=2)
        tags, there = [], [n for n in others if n.cell.frame == cut.frame]
        for each in there:
            _outline(rgb, cut.mask(each.cell), cut.zoom, each.colour, 2)
            if cut.holds(each.cell):
                shade = "#" + "".join(f"{round(255 * part):02x}" for part in each.colour[:3])
                tags.append(cut.tag(each.cell, 0.0, each.numbers, shade))
        for cell in cut.cells:
            thick = 6 if cell.cell == asked.slot[1] else 3
            _outline(rgb, cut.mask(cell), cut.zoom, colour, thick)
        named = [*cut.cells, *(n.cell for n in there if cut.holds(n.cell))]
        tags += [cut.tag(cell, 0.75, cell) for cell in named]
        made.append(Picture(cut.frame, rgb, tuple(tags)))
    return tuple(made)


class _Cut:
    """A square around the event's cells in one frame, within the image."""

    def __init__(self, source: MovieAndCells, asked: Suggestion, size: float, frame: int) -> None:
        self.frame, self._size = frame, size
        self.cells = [c for c in asked.cells if c.frame == frame]
        places = np.array([c.position for c in asked.cells], dtype=np.float64)
        here = [c.position[0] for c in self.cells] or places[:, 0]
        self._z = round(float(np.mean(here)))  # of the plane, in 3D
        flat = places[:, -2:]
        self._side = max(int(np.ptp(flat, axis=0).max() + (2 * _ROOM + 1) * size), 8)
        extent = np.asarray((source.geometry.shape or (1e9, 1e9))[-2:])
        self._side = int(min(self._side, *extent))
        corner = np.round((flat.min(axis=0) + flat.max(axis=0) - self._side) / 2)
        corner = np.minimum(corner, extent - self._side)
        self._corner = np.maximum(corner, 0).astype(int)
        self.zoom = max(1, round(_WIDE / self._side))
        self._labels = None if source.labels is None else self._pixels(source.labels)
        self.grey = self._grey(source)

    def _pixels(self, movie: Movie) -> NDArray[Any]:
        plane = movie.array[self.frame, 0]
        if plane.ndim == 3:
            plane = plane[min(max(self._z, 0), plane.shape[0] - 1)]
        (top, left), side = self._corner, self._side
        return np.asarray(pixels_of(plane[top : top + side, left : left + side]))

    def _grey(self, source: MovieAndCells) -> Array:
        if source.image is not None:
            return np.nan_to_num(self._pixels(source.image).astype(np.float64))
        if self._labels is not None:
            return np.where(self._labels > 0, 0.6, 0.0)
        assert source.table is not None
        table = source.table
        place = table.table[list(table.geometry.axes)].to_numpy(np.float64)[table.rows(self.frame)]
        if place.shape[1] > 2:
            depth = table.geometry.scale[0] / table.geometry.scale[-1]
            place = place[depth * np.abs(place[:, 0] - self._z) <= self._size]
        middle = self._corner + self._side / 2
        near = (np.abs(place[:, -2:] - middle) < self._side).all(axis=1)
        grey = np.zeros((self._side, self._side))
        for cell in place[near]:
            grey[self._disc(cell)] = 0.6
        return grey

    def mask(self, cell: CellRef) -> Mask:
        """Pixels of a cell of this frame; a disc where there are no masks."""
        return self._disc(cell.position) if self._labels is None else self._labels == cell.label

    def _disc(self, place: Sequence[float] | Array) -> Mask:
        y, x = np.ogrid[: self._side, : self._side]
        v, u = np.asarray(place[-2:]) - self._corner
        return np.asarray((y - v) ** 2 + (x - u) ** 2 <= (self._size / 2) ** 2)

    def holds(self, cell: CellRef) -> bool:
        """Whether the middle of a cell is in the square."""
        away = np.asarray(cell.position[-2:]) - self._corner
        return bool(((away >= 0) & (away < self._side)).all())

    def tag(
        self, cell: CellRef, below: float, what: CellRef | str, colour: str = "#ffffff"
    ) -> PictureTag:
        """Something written so many diameters below a cell."""
        y, x = (np.asarray(cell.position[-2:]) - self._corner).tolist()
        return PictureTag((y + below * self._size) / self._side, x / self._side, what, colour)


def _contrast(cuts: Sequence[_Cut]) -> tuple[float, float]:
    """Black and white of all: those of the cells in question where they are faint."""
    low, high = np.percentile(np.concatenate([c.grey.ravel() for c in cuts]), (1.0, 99.8))
    own = [c.grey[mask] for c in cuts for mask in map(c.mask, c.cells) if mask.any()]
    bright = max((np.percentile(values, 99.0) for values in own), default=high)
    if bright > low:
        high = min(high, low + _BRIGHTER * (bright - low))
    return float(low), float(high)


def _large(pixels: NDArray[Any], zoom: int) -> NDArray[Any]:
    return np.repeat(np.repeat(pixels, zoom, axis=0), zoom, axis=1)


def _outline(rgb: Pixels, mask: Mask, zoom: int, colour: tuple[float, ...], thick: int) -> None:
    """Draw a line around a mask into the enlarged picture."""
    large = _large(mask, zoom)
    rim = large & ~binary_erosion(large, iterations=thick, border_value=0)
    rgb[rim] = (255 * np.array(colour[:3])).astype(np.uint8)


_GAP = 6
_CAPTION = 18
_LARGEST = 132
_HERE = "#ffffff"


class FrameStrip(QWidget):
    """Shows pictures with what they show; emits `picked` with the frame that was clicked."""

    picked = Signal(int)

    def __init__(self, name: Callable[[], Name]) -> None:
        super().__init__()
        self._name = name
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setToolTip("The frames of the question; click one to see it on the left")
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
        """Squares side by side, each with its caption; as high as two are."""
        return QSize(320, self._side(2) + _CAPTION)

    def resizeEvent(self, event: Any) -> None:  # noqa: N802
        """Keep the pictures square."""
        super().resizeEvent(event)
        self.setFixedHeight(self._side(2) + _CAPTION)

    def _side(self, count: int) -> int:
        return max(min((self.width() - _GAP * (count - 1)) // count, _LARGEST), 60)

    def _place(self, k: int) -> QRect:
        side = self._side(max(len(self._pictures), 2))
        return QRect(k * (side + _GAP), 0, side, side)

    def paintEvent(self, _: Any) -> None:  # noqa: N802
        """Draw the pictures; the frame in view elsewhere has a rim."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        ink = self.palette().windowText().color()
        for k, (picture, image) in enumerate(zip(self._pictures, self._images, strict=True)):
            place = self._place(k)
            painter.drawImage(place, image)
            _write(painter, picture.tags, place, self._name())
            here = picture.frame == self._frame
            if here:
                painter.setPen(QPen(QColor(_HERE), 2))
                painter.drawRect(place.adjusted(1, 1, -1, -1))
            painter.setPen(ink)
            below = QRectF(place.left(), place.bottom() + 1, place.width(), _CAPTION)
            caption = f"frame {picture.frame}{' (in view)' if here else ''}"
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, caption)
        painter.end()

    def mousePressEvent(self, event: Any) -> None:  # noqa: N802
        """Go to what was clicked."""
        spot = QPointF(event.position()).toPoint()
        for k, picture in enumerate(self._pictures):
            if self._place(k).contains(spot):
                self.picked.emit(picture.frame)


_SMALL = 11
"""Height of names on pictures, in pixels."""


def _write(painter: QPainter, tags: Iterable[PictureTag], place: QRect, name: Name) -> None:
    """Write names and numbers on a picture, with a dark rim, inside its edges."""
    font = painter.font()
    font.setPixelSize(_SMALL)
    known = QFontMetricsF(font)
    for tag in tags:
        words = tag.words(name)
        half, high = known.horizontalAdvance(words) / 2 + 2, known.ascent()
        middle = place.left() + tag.x * place.width()
        x = min(max(middle, place.left() + half), place.right() - half)
        y = min(place.top() + tag.y * place.height() + high / 2, place.bottom() - 3.0)
        path = QPainterPath()
        path.addText(QPointF(x - half + 2, max(y, place.top() + high)), font, words)
        painter.strokePath(path, QPen(QColor("#000000"), 3))
        painter.fillPath(path, QColor(tag.colour))


def _image(picture: Picture) -> QImage:
    height, width = picture.pixels.shape[:2]
    image = QImage(picture.pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    return image.copy()
