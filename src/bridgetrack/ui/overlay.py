"""What is drawn over the image, answers, proposals and questions, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind, Name, by_label
from bridgetrack.arrays import Array
from bridgetrack.session.cells import Proposal
from bridgetrack.session.check import SampleQuestion
from bridgetrack.ui.looks import GHOST, LOOKS, PROPOSAL, rgba
from bridgetrack.ui.picking import Mode

Colour = tuple[float, float, float, float]

Outline = Callable[[CellRef], Array]
"""Points along the border of a cell."""

CLEAR: Colour = (0.0, 0.0, 0.0, 0.0)
EDGE: Colour = (0.0, 0.0, 0.0, 0.8)


class Mark(NamedTuple):
    """A marker: where (y, x) in pixels, its shape, its size in pixels, its colours and words."""

    point: tuple[float, float]
    symbol: str
    size: float
    face: Colour
    border: Colour
    text: str
    z: float | None = None  # its plane in a 3D movie, None where it is in no certain one


class Arrow(NamedTuple):
    """An arrow: where it starts and how far it goes, (y, x) in pixels, and its colour."""

    start: tuple[float, float]
    step: tuple[float, float]
    colour: Colour
    rise: tuple[float, float] = (0.0, 0.0)  # plane where it starts in a 3D movie, and how far up


@dataclass
class Drawing:
    """Markers, words and arrows of the slice in view."""

    marks: list[Mark] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    rooms: list[Array] = field(default_factory=list)  # boxes of words and outlined cells

    def mark(
        self,
        position: Sequence[float],
        symbol: str,
        size: float,
        face: Colour,
        border: Colour = EDGE,
        text: str = "",
    ) -> None:
        """Add a marker."""
        point = position[-2], position[-1]
        z = position[0] if len(position) > 2 else None
        self.marks.append(Mark(point, symbol, size, face, border, text, z))

    def ring(self, position: Sequence[float], size: float, colour: Colour) -> None:
        """Add an open circle."""
        self.mark(position, "disc", size, CLEAR, colour)

    def arrow(self, start: CellRef, stop: CellRef, colour: Colour) -> None:
        """Add an arrow between two cells; cells that hardly move get a short one."""
        (y, x), (v, u) = start.position[-2:], stop.position[-2:]
        low, high = (c.position[0] if len(c.position) > 2 else 0.0 for c in (start, stop))
        self.arrows.append(Arrow((y, x), (v - y, u - x), colour, (low, high - low)))

    def keep_free(self, points: Array) -> None:
        """No words where some points are, shape (k, 2), as far as there is room elsewhere."""
        if len(points):
            self.rooms.append(np.concatenate([points.min(axis=0), points.max(axis=0)]))

    def write(
        self,
        words: str,
        beside: Array,
        view: SliceShown,
        *,
        below: bool = False,
        depth: tuple[float, ...] = (),
    ) -> None:
        """Write words above (or below) some points, shape (k, 2), beside and not on them.

        Where other words are, or the screen ends, they stand farther away or on the other side.
        """
        (top, left), (bottom, right) = beside.min(axis=0), beside.max(axis=0)
        low, high = np.reshape(view.seen, (2, 2))
        half = _half(words, view)
        rim = np.minimum(half, (high - low) / 2)
        lines = half[0] * (1.5 + 2.2 * np.arange(_LINES))
        above, under = top - lines, bottom + lines
        y = np.column_stack([under, above] if below else [above, under]).ravel()
        x = np.full(len(y), (left + right) / 2)
        places = np.clip(np.column_stack([y, x]), low + rim, high - rim)
        taken = [*self.rooms, np.array([top, left, bottom, right])]
        rooms = [np.concatenate([place - half, place + half]) for place in places]
        k = int(np.argmin([sum(_overlap(room, other) for other in taken) for room in rooms]))
        self.rooms.append(rooms[k])
        self.mark((*depth, *places[k].tolist()), "disc", 0.1, CLEAR, CLEAR, words)


@dataclass(frozen=True)
class SliceShown:
    """The slice in view."""

    frame: int
    plane: float | None  # in 3D
    size: float  # of a cell
    seen: tuple[float, ...]  # top, left, bottom, right of what is on the screen
    depth: float = 1.0  # distance of two planes
    letter: float = 0.0  # width of a letter in pixels of the movie
    name: Name = by_label  # what cells are called

    def holds(self, cell: CellRef) -> bool:
        """Whether a cell is to be drawn here."""
        if cell.frame != self.frame:
            return False
        return (
            self.plane is None or self.depth * abs(cell.position[0] - self.plane) <= self.size / 2
        )


def draw_answers(drawing: Drawing, answers: Iterable[Annotation], view: SliceShown) -> None:
    """Annotations that concern a frame: shape and colour by event, rejections barred."""
    for annotation in answers:
        event = annotation.events[0]
        if annotation.kind == Kind.CONFIRM:
            _draw_event(drawing, event, view)
        elif annotation.kind == Kind.REJECT:
            _draw_rejection(drawing, event, view)


def _draw_rejection(drawing: Drawing, event: EventRef, view: SliceShown) -> None:
    colour = rgba(LOOKS[event.event].colour)
    for cell in event.sources or event.targets:
        if view.holds(cell):
            drawing.ring(cell.position, 0.7 * view.size, colour)
            drawing.mark(cell.position, "hbar", 0.7 * view.size, colour)


def _draw_event(drawing: Drawing, event: EventRef, view: SliceShown) -> None:
    look = LOOKS[event.event]
    colour = rgba(look.colour)
    mark = 0.5 * view.size
    now = [c for c in event.sources if view.holds(c)]
    for cell in now:
        drawing.mark(cell.position, look.symbol, mark, colour)
        for target in event.targets:
            drawing.arrow(cell, target, colour)
    for cell in event.targets:
        if view.holds(cell) and event.sources:
            drawing.ring(cell.position, mark, colour)
        elif view.holds(cell):
            drawing.mark(cell.position, look.symbol, mark, colour)


def draw_proposals(
    drawing: Drawing, found: Sequence[Proposal], view: SliceShown, outline: Outline
) -> None:
    """The best proposal with its confidence, and numbers on the cells of those that may be."""
    best = found[0]
    listed = [(k, p.event) for k, p in enumerate(found, 1) if k == 1 or not p.excluded]
    look = LOOKS[best.event.event]
    _draw_listed(
        drawing, listed, f"{look.sign} {look.name}, {percent(best.confidence)}", view, outline
    )


def _draw_listed(
    drawing: Drawing,
    listed: Sequence[tuple[int, EventRef]],
    title: str,
    view: SliceShown,
    outline: Outline,
    subject: CellRef | None = None,
) -> None:
    """The first of some events with their numbers, and the numbers of the others on their cells.

    Cells of the frame in view are outlined, those of the other frame are rings. With a `subject`,
    only this cell of the first.
    """
    first = listed[0][1]
    colour = rgba(LOOKS[first.event].colour if subject is None else GHOST)
    cells = first.cells if subject is None else (subject,)
    shapes = _draw_cells(drawing, cells, view, outline, colour)
    for source in first.sources if subject is None else ():
        for target in first.targets:
            drawing.arrow(source, target, colour)
    _draw_numbers(drawing, _numbered(listed, view), view)
    _draw_names(drawing, [c for _, event in listed for c in event.cells], view, outline)
    drawing.write(title, shapes, view)


def _draw_names(
    drawing: Drawing, cells: Iterable[CellRef], view: SliceShown, outline: Outline
) -> None:
    """Names of cells as the panel has them: below those in view, above those of other frames."""
    low, high = np.reshape(view.seen, (2, 2))
    seen = [c for c in cells if _near(c, view) and np.all((low <= _flat(c)) & (_flat(c) <= high))]
    known = {c.cell: c for c in seen}
    here = [c for c in known.values() if c.frame == view.frame]
    for cell in sorted(known.values(), key=lambda c: c.frame != view.frame):
        name, flat, shown = view.name(cell), _flat(cell), cell.frame == view.frame
        if not shown and any(
            view.name(c) == name and np.abs(flat - _flat(c)).max() <= view.size for c in here
        ):
            continue
        shape = outline(cell)[:, -2:] if shown else np.zeros((0, 2))
        ring = flat + 0.25 * view.size * np.array([[-1, -1], [1, 1]])
        beside = np.concatenate([shape, ring])
        drawing.write(name, beside, view, below=shown, depth=cell.position[:-2])


_LINES = 5
"""So many lines above and below a cell are tried for its name."""


def _half(words: str, view: SliceShown) -> Array:
    """Half the height and half the width of words, in pixels."""
    letter = view.letter or 2 * _LETTER * view.size
    # Signs are wider than letters.
    more = 1 if words[:1].isalnum() else 2 if words.startswith("#") else 4
    return np.array([letter, letter * (len(words) + more) / 2])


def _overlap(one: Array, two: Array) -> float:
    """Area that two boxes share."""
    sides = np.minimum(one[2:], two[2:]) - np.maximum(one[:2], two[:2])
    return float(np.prod(np.maximum(sides, 0.0)))


def percent(share: float) -> str:
    """A confidence in words: never 0 or 100."""
    return f"{min(max(round(100 * share), 1), 99)} %"


class Numbered(NamedTuple):
    """A cell that takes part in events listed as alternatives, their numbers, and a colour."""

    cell: CellRef
    numbers: str
    colour: Colour


def numbered(listed: Iterable[tuple[int, EventRef]]) -> list[Numbered]:
    """Numbers and colours of all events but the first, at every cell that the first has not."""
    (_, first), *others = listed
    known = {c.cell for c in first.cells}
    found: dict[tuple[int, int], Numbered] = {}
    for number, event in others:
        for cell in event.cells:
            if cell.cell in known:
                continue
            before = found.get(cell.cell)
            colour = rgba(LOOKS[event.event].colour) if before is None else before.colour
            numbers = str(number) if before is None else f"{before.numbers} {number}"
            found[cell.cell] = Numbered(cell, numbers, colour)
    return list(found.values())


def _numbered(listed: Iterable[tuple[int, EventRef]], view: SliceShown) -> list[Numbered]:
    """Those near the slice in view; a cell seen in both frames has its numbers once."""
    shown: list[Numbered] = []
    near = [n for n in numbered(listed) if _near(n.cell, view)]
    for each in sorted(near, key=lambda n: n.cell.frame != view.frame):
        for k, known in enumerate(shown):
            away = np.abs(_flat(each.cell) - _flat(known.cell)).max() / view.size
            if away <= 0.6 or (away <= 1 and each.numbers == known.numbers):
                both = {*known.numbers.split(), *each.numbers.split()}
                shown[k] = known._replace(numbers=" ".join(sorted(both, key=int)))
                break
        else:
            shown.append(each)
    return shown


def _flat(cell: CellRef) -> Array:
    """Where a cell is in the plane, (y, x)."""
    return np.asarray(cell.position[-2:], dtype=np.float64)


def _draw_numbers(drawing: Drawing, found: Iterable[Numbered], view: SliceShown) -> None:
    """Numbers of the alternatives on their cells, in the colours of the events."""
    for cell, numbers, colour in found:
        size = max(0.4 * view.size, 1.2 * view.letter * (len(numbers) + 0.5))
        half = _half(numbers, view)
        drawing.keep_free(np.stack([_flat(cell) - half, _flat(cell) + half]))
        drawing.mark(cell.position, "disc", size, _SHADE, colour, numbers)


def draw_pointed(drawing: Drawing, outline: Array, mode: Mode, view: SliceShown) -> None:
    """The cell that a click or Enter takes, with what that would say of it."""
    if not len(outline):
        return
    draw_outline(drawing, outline, rgba(mode.colour), view)
    drawing.write(f"{mode.title}? [Enter]", outline[:, -2:], view)


def draw_ghost(
    drawing: Drawing, outline: Array, picked: Iterable[CellRef], view: SliceShown
) -> None:
    """Outline of the cell clicked a frame earlier, and rings on what is clicked here."""
    draw_outline(drawing, outline, rgba(GHOST, 0.9), view)
    for cell in picked:
        if view.holds(cell):
            drawing.ring(cell.position, 0.8 * view.size, rgba(PROPOSAL))


def draw_outline(drawing: Drawing, outline: Array, colour: Colour, view: SliceShown) -> None:
    """Dots along the border of a cell: in its plane in view, or around all of it."""
    if outline.shape[1] > 2 and view.plane is not None:
        away = np.abs(outline[:, 0] - view.plane)
        outline = outline[away <= max(float(away.min(initial=np.inf)), 0.5)]
    elif outline.shape[1] > 2:
        # So few that the cell is seen between them.
        for point in outline[:: 1 + len(outline) // _DOTS].tolist():
            drawing.mark(point, "disc", 0.7, colour, colour)
        return
    dot = min(1.4, 0.1 * view.size)  # of cells of a few pixels, little would be seen else
    for point in outline.tolist():
        drawing.mark(point, "disc", dot, colour, colour)


_DOTS = 150
"""Dots around a cell at most, where a volume is in view."""


_SHADE: Colour = (0.0, 0.0, 0.0, 0.55)
"""Behind numbers, so that they are legible on bright cells."""
_LETTER = 0.08
"""Half the width of a letter in cell diameters, as cells are zoomed when a question comes."""


def question_words(asked: Suggestion, frame: int) -> str:
    """The question as a label: what the model believes, how firmly, and the frame in view."""
    look = LOOKS[asked.kind]
    if isinstance(asked, SampleQuestion):
        # No belief, which would sway who checks.
        return f"{look.sign} {look.name} (frame {frame} in view)"
    return f"{look.sign} {look.name}, {percent(asked.beliefs[0])} (frame {frame} in view)"


def draw_question(
    drawing: Drawing, asked: Suggestion, view: SliceShown, outline: Outline, denied: bool = False
) -> None:
    """The proposed event, and numbers on the cells of the alternatives.

    Where it was `denied`, only the cell asked about and the alternatives.
    """
    if asked.frame <= view.frame <= asked.last_frame:
        listed = list(enumerate(asked.listed, 1))
        words = "What happened instead?" if denied else question_words(asked, view.frame)
        _draw_listed(drawing, listed, words, view, outline, asked.asked if denied else None)


def draw_subject(drawing: Drawing, asked: Suggestion, view: SliceShown, outline: Outline) -> None:
    """Only the cell asked about, while the answer is clicked."""
    if asked.frame <= view.frame <= asked.last_frame:
        _draw_cells(drawing, (asked.asked,), view, outline, rgba(GHOST, 0.9))


def _draw_cells(
    drawing: Drawing, cells: Iterable[CellRef], view: SliceShown, outline: Outline, colour: Colour
) -> Array:
    """Outlines of what is in view and rings for the rest; what they take up, shape (k, 2)."""
    taken = [np.zeros((0, 2))]
    for cell in cells:
        if view.holds(cell):
            shape = outline(cell)
            taken.append(shape[:, -2:])
            draw_outline(drawing, shape, colour, view)
            drawing.keep_free(shape[:, -2:])
        elif _near(cell, view):
            drawing.ring(cell.position, 0.5 * view.size, colour)
        taken.append(np.asarray([cell.position[-2:]]))
    return np.concatenate(taken)


def _near(cell: CellRef, view: SliceShown) -> bool:
    """Whether a cell of the other frame lies in the plane in view."""
    away = 0.0 if view.plane is None else view.depth * abs(cell.position[0] - view.plane)
    return away <= view.size
