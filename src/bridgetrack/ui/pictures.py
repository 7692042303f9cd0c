"""Pictures of the model's question, cut out of its frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QFontMetricsF, QIcon, QImage, QPainter, QPainterPath, QPen, QPixmap
from qtpy.QtWidgets import QHBoxLayout, QToolButton, QWidget
from scipy.ndimage import binary_erosion

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, Name
from bridgetrack.arrays import Array, Mask
from bridgetrack.movie import Movie
from bridgetrack.movie.movie import pixels_of
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.ui.looks import LOOKS, rgba
from bridgetrack.ui.overlay import numbered

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
    others = numbered(enumerate(asked.listed, 1))
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
