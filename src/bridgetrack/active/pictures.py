"""Pictures of a question, cut out of its frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef, Name
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Movie
from bridgetrack.movie.movie import pixels_of
from bridgetrack.progress import Progress, Steps

Pixels = NDArray[np.uint8]

_ROOM = 1.5
"""Cell diameters around the event's cells."""

_WIDE = 360
"""Least width of a picture in pixels."""

_BRIGHTER = 1.4
"""Intensity drawn as white, as a multiple of that of the brightest cell in question."""


class Numbered(NamedTuple):
    """A cell of events listed as alternatives, their numbers, and the first of their kinds."""

    cell: CellRef
    numbers: str
    event: Event


def numbered(listed: Iterable[tuple[int, EventRef]]) -> list[Numbered]:
    """The numbers of all events but the first, at every cell that the first has not."""
    (_, first), *others = listed
    known = {c.cell for c in first.cells}
    found: dict[tuple[int, int], Numbered] = {}
    for number, event in others:
        for cell in event.cells:
            before = found.get(cell.cell, Numbered(cell, "", event.event))
            if cell.cell not in known:
                numbers = [*before.numbers.split(", "), str(number)]
                found[cell.cell] = before._replace(numbers=", ".join(filter(None, numbers)))
    return list(found.values())


@dataclass(frozen=True)
class PictureTag:
    """A cell's name or numbers on a picture: where, as shares of its height and width."""

    y: float
    x: float
    what: CellRef | str
    colour: str = "#ffffff"

    def words(self, name: Name) -> str:
        """The words, with these names of cells."""
        return self.what if isinstance(self.what, str) else name(self.what)


@dataclass(frozen=True)
class Picture:
    """The surroundings of an event in one frame."""

    frame: int
    pixels: Pixels  # shape (h, w, 3), with the cells outlined
    tags: tuple[PictureTag, ...] = ()  # names of cells, and numbers of alternatives


def picture_steps(
    asked: Suggestion,
    cells: Movie | Detections,
    image: Movie | None,
    size: float,
    colours: Mapping[Event, str],
) -> Steps[tuple[Picture, ...]]:
    """Cut the frames of a question out, with the same brightness.

    `size` is the diameter of a cell in pixels. Cells are outlined in the `colours` of events, and
    have the numbers of the alternatives that they are in.
    """
    yield Progress("Preparing the pictures", 0.0)
    frames = {asked.frame, asked.last_frame, *(c.frame for c in asked.cells)}
    there = sorted(t for t in frames if 0 <= t < cells.geometry.n_frames)
    cuts = [_Cut(asked, cells, image, size, t) for t in there]
    low, high = _contrast(cuts)
    made = []
    for cut in cuts:
        grey = np.clip((cut.grey - low) / max(high - low, 1e-12), 0.0, 1.0)
        rgb = np.repeat(_large((255 * grey).astype(np.uint8), cut.zoom)[..., None], 3, axis=2)
        tags, named = [], list(cut.cells)
        for cell, numbers, event in numbered(enumerate(asked.listed, 1)):
            if cell.frame == cut.frame:
                _outline(rgb, cut.mask(cell), cut.zoom, colours[event], 2)
            if cell.frame == cut.frame and cut.holds(cell):
                tags.append(cut.tag(cell, 0.0, numbers, colours[event]))
                named.append(cell)
        for cell in cut.cells:
            thick = 6 if cell.cell == asked.slot[1] else 3
            _outline(rgb, cut.mask(cell), cut.zoom, colours[asked.kind], thick)
        tags += [cut.tag(cell, 0.75, cell) for cell in named]
        made.append(Picture(cut.frame, rgb, tuple(tags)))
    return tuple(made)


class _Cut:
    """A square around the event's cells in one frame, within the image."""

    def __init__(
        self,
        asked: Suggestion,
        cells: Movie | Detections,
        image: Movie | None,
        size: float,
        frame: int,
    ) -> None:
        self.frame, self._size = frame, size
        self.cells = [c for c in asked.cells if c.frame == frame]
        places = np.array([c.position for c in asked.cells], dtype=np.float64)
        here = [c.position[0] for c in self.cells] or places[:, 0]
        self._z = round(float(np.mean(here)))  # of the plane, in 3D
        flat = places[:, -2:]
        extent = np.asarray((cells.geometry.shape or (1e9, 1e9))[-2:])
        wide = max(int(np.ptp(flat, axis=0).max() + (2 * _ROOM + 1) * size), 8)
        self._side = int(min(wide, *extent))
        corner = np.round((flat.min(axis=0) + flat.max(axis=0) - self._side) / 2)
        self._corner = np.clip(corner, 0, extent - self._side).astype(int)
        self.zoom = max(1, round(_WIDE / self._side))
        self._labels = self._pixels(cells) if isinstance(cells, Movie) else None
        if image is not None:
            self.grey = np.nan_to_num(self._pixels(image).astype(np.float64))
        elif isinstance(cells, Detections):
            self.grey = self._discs(cells)
        else:
            self.grey = np.where(self._pixels(cells) > 0, 0.6, 0.0)

    def _pixels(self, movie: Movie) -> NDArray[Any]:
        plane = movie.array[self.frame, 0]
        if plane.ndim == 3:
            plane = plane[min(max(self._z, 0), plane.shape[0] - 1)]
        (top, left), side = self._corner, self._side
        return np.asarray(pixels_of(plane[top : top + side, left : left + side]))

    def _discs(self, table: Detections) -> Array:
        """Cells of the frame near the plane as discs, if only points are known."""
        place = table.table[list(table.geometry.axes)].to_numpy(np.float64)[table.rows(self.frame)]
        if place.shape[1] > 2:
            depth = table.geometry.scale[0] / table.geometry.scale[-1]
            place = place[depth * np.abs(place[:, 0] - self._z) <= self._size]
        seen = np.zeros((self._side, self._side), dtype=bool)
        away = np.abs(place[:, -2:] - self._corner - self._side / 2)
        for cell in place[(away < self._side).all(axis=1)]:
            seen |= self._disc(cell)
        return 0.6 * seen

    def _disc(self, place: Sequence[float] | Array) -> Mask:
        y, x = np.ogrid[: self._side, : self._side]
        v, u = np.asarray(place[-2:]) - self._corner
        return np.asarray((y - v) ** 2 + (x - u) ** 2 <= (self._size / 2) ** 2)

    def mask(self, cell: CellRef) -> Mask:
        """Pixels of a cell of this frame; a disc where there are no masks."""
        return self._disc(cell.position) if self._labels is None else self._labels == cell.label

    def holds(self, cell: CellRef) -> bool:
        """Whether the middle of a cell is in the square."""
        away = np.asarray(cell.position[-2:]) - self._corner
        return bool(((away >= 0) & (away < self._side)).all())

    def tag(
        self, cell: CellRef, below: float, what: CellRef | str, colour: str = "#ffffff"
    ) -> PictureTag:
        """A tag some diameters below a cell."""
        y, x = (np.asarray(cell.position[-2:]) - self._corner).tolist()
        return PictureTag((y + below * self._size) / self._side, x / self._side, what, colour)


def _contrast(cuts: Sequence[_Cut]) -> tuple[float, float]:
    """Intensities drawn as black and white, chosen for the cells in question if they are faint."""
    low, high = np.percentile(np.concatenate([c.grey.ravel() for c in cuts]), (1.0, 99.8))
    own = [c.grey[mask] for c in cuts for mask in map(c.mask, c.cells) if mask.any()]
    bright = max((np.percentile(values, 99.0) for values in own), default=high)
    if bright > low:
        high = min(high, low + _BRIGHTER * (bright - low))
    return float(low), float(high)


def _large(pixels: NDArray[Any], zoom: int) -> NDArray[Any]:
    return np.repeat(np.repeat(pixels, zoom, axis=0), zoom, axis=1)


def _outline(rgb: Pixels, mask: Mask, zoom: int, colour: str, thick: int) -> None:
    """Draw a line around a mask into the enlarged picture."""
    large = _large(mask, zoom)
    rim = large & ~binary_erosion(large, iterations=thick, border_value=0)
    rgb[rim] = list(bytes.fromhex(colour[1:]))
