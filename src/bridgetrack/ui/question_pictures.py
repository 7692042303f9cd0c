"""Both frames of a question, cut out side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPainterPath, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Cell, CellRef, Name, by_label
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.movie import Movie
from bridgetrack.movie.movie import pixels_of
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import Numbered, numbered

Pixels = NDArray[np.uint8]


Window = tuple[slice, slice]

_ROOM = 1.5
"""Cell diameters around the event's cells."""
_WIDE = 360
"""Pixels that a picture is at least across."""


@dataclass(frozen=True)
class PictureTag:
    """Words on a picture: where, as shares of its height and width, and their colour."""

    y: float
    x: float
    words: str
    colour: str = "#ffffff"


@dataclass(frozen=True)
class Picture:
    """The surroundings of an event in one frame."""

    frame: int
    pixels: Pixels  # shape (h, w, 3), with the cells outlined
    late: bool = False  # whether it shows the later frame
    tags: tuple[PictureTag, ...] = ()  # names of cells, and numbers of alternatives


def picture_steps(
    source: MovieAndCells, asked: Suggestion, size: float, name: Name = by_label
) -> Steps[tuple[Picture, ...]]:
    """Cut the earlier and the later frame of a question out, with the same brightness.

    `size` is the diameter of a cell in pixels; frames that the movie does not have are left out.
    Cells are called by their `name`, and have the numbers of the alternatives that they are in.
    """
    yield Progress("Cutting out both frames", 0.0)
    window = window_of(asked, source.geometry.shape, size)
    frames = [t for t in (asked.frame, asked.last_frame) if 0 <= t < source.geometry.n_frames]
    own = [_masks(source.labels, asked, asked.cells, t, window, size) for t in frames]
    grey = _brightness([_grey(source, asked, t, window, size) for t in frames], own)
    zoom = max(1, round(_WIDE / (window[1].stop - window[1].start)))
    others = numbered(enumerate((asked.event, *asked.alternatives), 1))
    made = []
    for t, cut, masks in zip(frames, grey, own, strict=True):
        rgb = _large(cut, zoom)
        there = [n for n in others if n.cell.frame == t]
        shapes = _masks(source.labels, asked, [n.cell for n in there], t, window, size)
        for each in there:
            _outline(rgb, shapes[each.cell.cell], zoom, each.colour, 2)
        for cell, mask in masks.items():
            _outline(
                rgb, mask, zoom, rgba(LOOKS[asked.kind].colour), 6 if cell == asked.slot[1] else 3
            )
        tags = _tags(_cells(asked.cells, t), there, window, size, name)
        made.append(Picture(t, rgb, t != asked.frame, tags=tags))
    return tuple(made)


def _tags(
    own: list[CellRef], others: list[Numbered], window: Window, size: float, name: Name
) -> tuple[PictureTag, ...]:
    """Names below the cells of one frame, and numbers of alternatives on them."""
    side = window[0].stop - window[0].start

    def tag(cell: CellRef, below: float, words: str, colour: str = _HERE) -> PictureTag:
        y, x = cell.position[-2:]
        place = (y + below * size - window[0].start) / side, (x - window[1].start) / side
        return PictureTag(*place, words, colour)

    def inside(cell: CellRef) -> bool:
        return all(w.start <= p < w.stop for p, w in zip(cell.position[-2:], window, strict=True))

    there = [n for n in others if inside(n.cell)]
    named = [*own, *(n.cell for n in there)]
    numbers = [tag(n.cell, 0.0, n.numbers, _hex(n.colour)) for n in there]
    return (*numbers, *(tag(c, 0.75, name(c)) for c in named))


def _hex(colour: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour[:3])


def window_of(asked: Suggestion, shape: tuple[int, ...] | None, size: float) -> Window:
    """Rows and columns to show: a square around the event's cells, within the image."""
    places = np.array([c.position[-2:] for c in asked.cells], dtype=np.float64)
    extent = float(np.ptp(places, axis=0).max())
    side = max(int(extent + 2 * _ROOM * size + size), 8)
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    corner = np.round(middle - side / 2)
    if shape is not None:
        corner = np.minimum(corner, np.asarray(shape[-2:]) - side)
    top, left = np.maximum(corner, 0).astype(int).tolist()
    return slice(top, top + side), slice(left, left + side)


def _cells(cells: Iterable[CellRef], t: int) -> list[CellRef]:
    return [c for c in cells if c.frame == t]


def _cut(movie: Movie, asked: Suggestion, t: int, window: Window) -> NDArray[np.number]:
    """Pixels of the window, in 3D of the plane of the event's cells."""
    frame = movie.array[t, 0]
    if movie.array.ndim == 5:
        cells = _cells(asked.cells, t) or list(asked.cells)
        z = round(float(np.mean([c.position[0] for c in cells])))
        frame = frame[min(max(z, 0), frame.shape[0] - 1)]
    return pixels_of(frame[window])


def _grey(source: MovieAndCells, asked: Suggestion, t: int, window: Window, size: float) -> Array:
    if source.image is not None:
        return np.nan_to_num(_cut(source.image, asked, t, window).astype(np.float64))
    if source.labels is not None:
        return np.where(_cut(source.labels, asked, t, window) > 0, 0.6, 0.0)
    assert source.table is not None
    return _discs(source.table, asked, t, window, size)


def _discs(table: Detections, asked: Suggestion, t: int, window: Window, size: float) -> Array:
    """All cells of a frame that are known by their centroids alone, as discs."""
    grey = np.zeros([s.stop - s.start for s in window])
    place = table.table[list(table.geometry.axes)].to_numpy(np.float64)[table.rows(t)]
    if place.shape[1] > 2:
        middle = float(np.mean([c.position[0] for c in asked.cells]))
        depth = table.geometry.scale[0] / table.geometry.scale[-1]
        place = place[depth * np.abs(place[:, 0] - middle) <= size]
    corner = np.array([s.start for s in window])
    near = (np.abs(place[:, -2:] - corner - np.array(grey.shape) / 2) < np.array(grey.shape)).all(1)
    for cell in place[near]:
        grey[_disc(cell, window, size)] = 0.6
    return grey


def _brightness(pictures: list[Array], own: Sequence[Mapping[Cell, Mask]]) -> list[Array]:
    """The same contrast for all, 0 to 1: that of the cells in question where they are faint."""
    values = np.concatenate([p.ravel() for p in pictures])
    low, high = np.percentile(values, (1.0, 99.8)) if values.size else (0.0, 1.0)
    pairs = zip(pictures, own, strict=True)
    mine = [p[mask] for p, masks in pairs for mask in masks.values() if mask.any()]
    bright = max((float(np.percentile(m, 99.0)) for m in mine), default=float(high))
    if bright > low:
        high = min(float(high), low + _BRIGHTER * (bright - low))
    span = max(float(high - low), 1e-12)
    return [np.clip((p - low) / span, 0.0, 1.0) for p in pictures]


_BRIGHTER = 1.4
"""White, as a multiple of the brightest cell in question."""


def _masks(
    labels: Movie | None, asked: Suggestion, cells: Iterable[CellRef], t: int, window: Window,
    size: float,
) -> dict[Cell, Mask]:  # fmt: skip
    """Masks of the cells of one frame, as far as they are in the window."""
    here = _cells(cells, t)
    known = None if labels is None or not here else _cut(labels, asked, t, window)
    return {
        c.cell: _disc(c.position, window, size) if known is None else known == c.label for c in here
    }


def _outline(rgb: Pixels, mask: Mask, zoom: int, colour: tuple[float, ...], thick: int) -> None:
    """Draw a line around a mask into the enlarged picture."""
    large = np.repeat(np.repeat(mask, zoom, axis=0), zoom, axis=1)
    rgb[_rim(large, thick)] = (255 * np.array(colour[:3])).astype(np.uint8)


def _large(grey: Array, zoom: int) -> Pixels:
    large = np.repeat(np.repeat(grey, zoom, axis=0), zoom, axis=1)
    return np.repeat((255 * large).astype(np.uint8)[..., None], 3, axis=2)


def _disc(place: Sequence[float] | Array, window: Window, size: float) -> Mask:
    y, x = np.ogrid[window]
    v, u = place[-2:]
    return np.asarray((y - v) ** 2 + (x - u) ** 2 <= (size / 2) ** 2)


def _rim(mask: Mask, thick: int) -> Mask:
    """Pixels of a mask at most so far from its edge."""
    from scipy.ndimage import binary_erosion

    return np.asarray(mask & ~binary_erosion(mask, iterations=thick, border_value=0))


_GAP = 6
_CAPTION = 18
_LARGEST = 170
_HERE = "#ffffff"


class TwoFrames(QWidget):
    """Shows pictures with what they show; emits `picked` with whether the later was clicked."""

    picked = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setToolTip("Both sides of the question; click one to see it on the left")
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
        ink = self.palette().windowText().color()
        for k, (picture, image) in enumerate(zip(self._pictures, self._images, strict=True)):
            place = self._place(k)
            painter.drawImage(place, image)
            _write(painter, picture.tags, place)
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
        spot = QPointF(event.position())
        for k, picture in enumerate(self._pictures):
            if self._place(k).contains(spot.toPoint()):
                self.picked.emit(picture.late)


_SMALL = 11
"""Height of names on pictures, in pixels."""


def _write(painter: QPainter, tags: Iterable[PictureTag], place: QRect) -> None:
    """Write names and numbers on a picture, with a dark rim, inside its edges."""
    font = painter.font()
    font.setPixelSize(_SMALL)
    known = QFontMetricsF(font)
    for tag in tags:
        half, high = known.horizontalAdvance(tag.words) / 2 + 2, known.ascent()
        x = min(
            max(place.left() + tag.x * place.width(), place.left() + half), place.right() - half
        )
        y = min(place.top() + tag.y * place.height() + high / 2, place.bottom() - 3.0)
        path = QPainterPath()
        path.addText(QPointF(x - half + 2, max(y, place.top() + high)), font, tag.words)
        painter.strokePath(path, QPen(QColor("#000000"), 3))
        painter.fillPath(path, QColor(tag.colour))


def _image(picture: Picture) -> QImage:
    height, width = picture.pixels.shape[:2]
    image = QImage(picture.pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    return image.copy()
