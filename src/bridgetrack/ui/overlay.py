"""The overlay of answers, proposals and questions, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bridgetrack.active.pictures import Numbered, numbered
from bridgetrack.active.suggester import Proposal
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind, Name, by_label
from bridgetrack.arrays import Array
from bridgetrack.ui.looks import LOOKS, PROPOSAL, rgba
from bridgetrack.ui.picking import Mode

Colour = tuple[float, float, float, float]

CLEAR: Colour = (0.0, 0.0, 0.0, 0.0)
EDGE: Colour = (0.0, 0.0, 0.0, 0.8)

_LETTER = 0.08
"""Half the width of a letter in cell diameters, at the zoom of a question."""

_DOTS = 150
"""Most dots around a cell if a volume is in view."""


class Mark(NamedTuple):
    """A marker: where it is in pixels, its shape, its size in pixels and its colours; or words."""

    place: tuple[float, ...]  # ([z,] y, x); without z in 3D if its plane is uncertain
    symbol: str
    size: float
    face: Colour
    border: Colour
    text: str = ""


class Arrow(NamedTuple):
    """An arrow from one place in pixels to another, and its colour."""

    start: tuple[float, ...]
    stop: tuple[float, ...]
    colour: Colour


def percent(share: float) -> str:
    """A confidence in words: never 0 or 100."""
    if share < 0.01:
        return "< 1 %"
    return "> 99 %" if share > 0.99 else f"{round(100 * share)} %"


def _flat(cell: CellRef) -> Array:
    """Position of a cell in the plane, (y, x)."""
    return np.asarray(cell.position[-2:], dtype=np.float64)


@dataclass(frozen=True)
class SliceShown:
    """The slice in view."""

    frame: int = 0
    plane: float | None = None  # in 3D
    size: float = 10.0  # of a cell
    seen: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)  # top, left, bottom, right of the screen
    depth: float = 1.0  # distance between planes
    letter: float = 0.0  # width of a letter in pixels of the movie
    name: Name = by_label  # names of cells
    outline: Callable[[CellRef], Array] = lambda _: np.zeros((0, 2))  # points along its border

    def near(self, cell: CellRef, share: float = 1.0) -> bool:
        """Whether a cell of any frame lies in the plane in view, or within `share` diameters of
        it."""
        away = 0.0 if self.plane is None else abs(cell.position[0] - self.plane)
        return self.depth * away <= share * self.size

    def holds(self, cell: CellRef) -> bool:
        """Whether a cell is to be drawn here."""
        return cell.frame == self.frame and self.near(cell, 0.5)

    def half(self, words: str) -> Array:
        """Half the height and half the width of words, in pixels."""
        letter = self.letter or 2 * _LETTER * self.size
        return np.array([letter, letter * (len(words) + 4) / 2])  # signs are wider than letters


class Drawing:
    """Markers, words and arrows of the slice in view."""

    def __init__(self, view: SliceShown | None = None) -> None:
        self.view = view or SliceShown()
        self.marks: list[Mark] = []
        self.arrows: list[Arrow] = []

    def mark(
        self, place: Sequence[float], symbol: str, size: float, face: Colour,
        border: Colour = EDGE, text: str = "",
    ) -> None:  # fmt: skip
        """Draw a marker."""
        self.marks.append(Mark(tuple(place), symbol, size, face, border, text))

    def answers(self, given: Iterable[Annotation]) -> None:
        """Annotations that concern a frame: shape and colour by event, rejections barred."""
        for annotation in given:
            event = annotation.events[0]
            if annotation.kind == Kind.CONFIRM:
                self._event(event)
            elif annotation.kind == Kind.REJECT:
                colour, size = rgba(LOOKS[event.event].colour), 0.7 * self.view.size
                for cell in filter(self.view.holds, event.sources or event.targets):
                    self._ring(cell, size, colour)
                    self.mark(cell.position, "hbar", size, colour)

    def proposals(self, found: Sequence[Proposal]) -> None:
        """The best proposal with its confidence, and numbers on the cells of the alternatives."""
        best, look = found[0], LOOKS[found[0].event.event]
        listed = [(k, p.event) for k, p in enumerate(found, 1) if k == 1 or not p.excluded]
        name = self.view.name(best.event.cells[0])
        self._listed(listed, f"{name} {look.sign} {look.name}, {percent(best.confidence)}")

    def question(self, asked: Suggestion, denied: bool = False) -> None:
        """The proposed event, and numbers on the cells of the alternatives.

        If it was `denied`, only the cell asked about and the alternatives.
        """
        if not asked.frame <= self.view.frame <= asked.last_frame:
            return
        look = LOOKS[asked.kind]
        # The belief would influence the user who checks a sample.
        belief = "" if asked.sampled else f", {percent(asked.beliefs[0])}"
        who = asked.asked if asked.slot[0] == "fate" else asked.event.cells[0]  # who acts
        words = f"{self.view.name(who)} {look.sign} {look.name}{belief}"
        words += f" (frame {self.view.frame} in view)"
        listed = list(enumerate(asked.listed, 1))
        if denied:
            self._listed(listed, "What happened instead?", asked.asked)
        else:
            self._listed(listed, words)

    def subject(self, asked: Suggestion) -> None:
        """Only the cell asked about, while the answer is clicked."""
        if asked.frame <= self.view.frame <= asked.last_frame:
            self._cells((asked.asked,), rgba(PROPOSAL, 0.9))

    def pointed(self, cell: CellRef, mode: Mode) -> None:
        """The cell that a click or Enter takes, with the answer that this would give."""
        outline = self.view.outline(cell)
        if len(outline):
            self._outline(outline, rgba(mode.colour))
            self._write(f"{mode.title}? [Enter]", outline[:, -2:])

    def picked(self, source: CellRef | None, targets: Iterable[CellRef]) -> None:
        """Outline of the cell clicked a frame earlier, and rings on what is clicked here."""
        if source is not None:
            self._outline(self.view.outline(source), rgba(PROPOSAL, 0.9))
        for cell in filter(self.view.holds, targets):
            self._ring(cell, 0.8 * self.view.size, rgba(PROPOSAL))

    def _event(self, event: EventRef) -> None:
        look, view = LOOKS[event.event], self.view
        colour, size = rgba(look.colour), 0.5 * view.size
        for cell in filter(view.holds, event.sources):
            self.mark(cell.position, look.symbol, size, colour)
            self.arrows += [Arrow(cell.position, c.position, colour) for c in event.targets]
        for cell in filter(view.holds, event.targets):
            if event.sources:
                self._ring(cell, size, colour)
            else:
                self.mark(cell.position, look.symbol, size, colour)

    def _listed(
        self, listed: Sequence[tuple[int, EventRef]], title: str, subject: CellRef | None = None
    ) -> None:
        """The first of some events, and the numbers of the others on their cells.

        Cells of the frame in view are outlined, those of the other frame are rings. With a
        `subject`, only this cell of the first.
        """
        first = listed[0][1]
        colour = rgba(LOOKS[first.event].colour if subject is None else PROPOSAL)
        shapes = self._cells(first.cells if subject is None else (subject,), colour)
        for source in first.sources if subject is None else ():
            self.arrows += [Arrow(source.position, c.position, colour) for c in first.targets]
        self._write(title, shapes, self._numbers(numbered(listed)))

    def _cells(self, cells: Iterable[CellRef], colour: Colour) -> Array:
        """Outlines of cells in view, rings for the others; returns their points, shape (k, 2)."""
        taken = [np.zeros((0, 2))]
        for cell in cells:
            if self.view.holds(cell):
                shape = self.view.outline(cell)
                self._outline(shape, colour)
                taken.append(shape[:, -2:])
            elif self.view.near(cell):
                self._ring(cell, 0.5 * self.view.size, colour)
                taken.append(_flat(cell) + self.view.size * np.array([[-0.25], [0.25]]))
            taken.append(_flat(cell)[None])
        return np.concatenate(taken)

    def _ring(self, cell: CellRef, size: float, colour: Colour) -> None:
        self.mark(cell.position, "disc", size, CLEAR, colour)

    def _outline(self, outline: Array, colour: Colour) -> None:
        """Dots along the border of a cell: in its plane in view, or around all of it."""
        plane = self.view.plane
        # Otherwise little would be seen of cells of a few pixels.
        dot = min(1.4, 0.1 * self.view.size)
        if outline.shape[1] > 2 and plane is not None:
            away = np.abs(outline[:, 0] - plane)
            outline = outline[away <= max(float(away.min(initial=np.inf)), 0.5)]
        elif outline.shape[1] > 2:
            # So few that the cell is seen between them.
            outline, dot = outline[:: 1 + len(outline) // _DOTS], 0.7
        for point in outline.tolist():
            self.mark(point, "disc", dot, colour, colour)

    def _numbers(self, found: Iterable[Numbered]) -> Array:
        """Numbers on cells of alternatives; a cell seen in both frames has its numbers once.

        Returns the points of these cells and numbers, shape (k, 2).
        """
        view, shown = self.view, list[Numbered]()
        near = [n for n in found if view.near(n.cell)]
        for each in sorted(near, key=lambda n: n.cell.frame != view.frame):
            for k, known in enumerate(shown):
                away = np.abs(_flat(each.cell) - _flat(known.cell)).max() / view.size
                if away <= 0.6 or (away <= 1 and each.numbers == known.numbers):
                    both = {*known.numbers.split(", "), *each.numbers.split(", ")}
                    shown[k] = known._replace(numbers=", ".join(sorted(both, key=int)))
                    break
            else:
                shown.append(each)
        taken = [np.zeros((0, 2))]
        for cell, numbers, event in shown:
            taken.append(self._cells((cell,), rgba(LOOKS[event].colour)))
            *plane, y, x = cell.position
            if not view.holds(cell):  # beside its ring
                x += 0.25 * view.size + view.half(numbers)[1]
            self._text((*plane, y, x), numbers)
            taken.append(np.array([[y, x]]) + [[-1], [1]] * view.half(numbers))
        return np.concatenate(taken)

    def _write(self, words: str, beside: Array, free: Array | None = None) -> None:
        """Write words above or below some points, shape (k, 2), where they hide least of the cells.

        As far as there is room, they do not hide the points `free`, shape (m, 2), either.
        """
        (top, left), (bottom, right) = beside.min(axis=0), beside.max(axis=0)
        low, high = np.reshape(self.view.seen, (2, 2))
        half = self.view.half(words)
        rim = np.minimum(half, (high - low) / 2)
        away = half[0] * np.arange(1.5, 12)
        rows = np.column_stack([top - away, bottom + away]).ravel()  # the nearest first
        places = np.column_stack([rows, np.full(len(rows), (left + right) / 2)])
        places = np.clip(places, low + rim, high - rim)
        taken = beside if free is None else np.concatenate([beside, free])
        hidden = (np.abs(places[:, None] - taken) < half).all(axis=2).sum(axis=1)
        self._text(places[hidden.argmin()].tolist(), words)

    def _text(self, place: Sequence[float], words: str) -> None:
        self.mark(place, "disc", 0.1, CLEAR, CLEAR, words)
