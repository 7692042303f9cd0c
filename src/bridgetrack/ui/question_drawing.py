"""A question drawn over the image, in either of its two frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.ui.colours import GHOST, LOOKS, PROPOSAL, rgba
from bridgetrack.ui.overlay import CLEAR, Colour, Drawing, View, percent

Array = NDArray[np.float64]
Outline = Callable[[CellRef], Array]

_SHADE: Colour = (0.0, 0.0, 0.0, 0.55)
"""Behind numbers, so that they are legible on bright cells."""
_LETTER = 0.08
"""Half the width of a letter in cell diameters, as cells are zoomed when a question comes."""


def question_words(asked: Suggestion, frame: int) -> str:
    """The question as a label: what the model believes, how firmly, and the frame in view."""
    look = LOOKS[asked.kind]
    return f"{look.sign} {look.name}, {percent(asked.beliefs[0])}, frame {frame}"


def draw_question(drawing: Drawing, asked: Suggestion, view: View, outline: Outline) -> None:
    """The proposed event, and numbers on the cells of the alternatives.

    Cells of the frame in view are outlined, those of the other frame are rings.
    """
    if not asked.frame <= view.frame <= asked.last_frame:
        return
    colour = rgba(LOOKS[asked.kind].colour)
    shapes = _draw_cells(drawing, asked.cells, view, outline, colour)
    for source in asked.event.sources:
        for target in asked.event.targets:
            drawing.arrow(source, target, colour)
    numbered = _numbered(asked, view)
    words = question_words(asked, view.frame)
    place = _place_of_words(asked, len(words), view, shapes, [p for _, p in numbered])
    drawing.mark(place, "disc", 0.1, CLEAR, CLEAR, words)
    for number, position in numbered:
        drawing.mark(position, "disc", 0.4 * view.size, _SHADE, rgba(PROPOSAL, 0.8), number)


def draw_subject(drawing: Drawing, asked: Suggestion, view: View, outline: Outline) -> None:
    """Only the cell asked about, while the answer is clicked."""
    if asked.frame <= view.frame <= asked.last_frame:
        _draw_cells(drawing, (asked.asked,), view, outline, rgba(GHOST, 0.9))


def _draw_cells(
    drawing: Drawing, cells: Iterable[CellRef], view: View, outline: Outline, colour: Colour
) -> Array:
    """Outlines of what is in view and rings for the rest; what they take up, shape (k, 2)."""
    taken = [np.zeros((0, 2))]
    for cell in cells:
        if view.holds(cell):
            shape = outline(cell)
            taken.append(shape[:, -2:])
            for point in shape.tolist():
                drawing.mark(point, "disc", 1.4, colour, colour)
        elif _near(cell, view):
            drawing.ring(cell.position, 0.5 * view.size, colour)
        taken.append(np.asarray([cell.position[-2:]]))
    return np.concatenate(taken)


def _near(cell: CellRef, view: View) -> bool:
    """Whether a cell of the other frame lies in the plane in view."""
    away = 0.0 if view.plane is None else view.depth * abs(cell.position[0] - view.plane)
    return away <= view.size


def _place_of_words(
    asked: Suggestion, length: int, view: View, shapes: Array, numbers: list[tuple[float, ...]]
) -> tuple[float, float]:
    """Above the event or else below it, clear of the numbers and of the image's edges."""
    size, half = view.size, _LETTER * length * view.size
    across = min(max(asked.position[-1], half), max(view.width - half, view.width / 2))
    top, bottom = float(shapes[:, 0].min()), float(shapes[:, 0].max())
    heights = [top - 0.5 * size, bottom + 0.6 * size, top - 1.1 * size, bottom + 1.2 * size]
    inside = [y for y in heights if 0.3 * size < y < view.height - 0.3 * size]
    for y in inside:
        if all(abs(p[-2] - y) > 0.45 * size or abs(p[-1] - across) > half for p in numbers):
            return y, across
    return (inside or heights)[0], across


def _numbered(asked: Suggestion, view: View) -> list[tuple[str, tuple[float, ...]]]:
    """A number on the cell of every alternative that differs from the proposal in that one only."""
    proposed = {c.cell for c in asked.cells}
    seen: set[tuple[int, int]] = set()
    found = []
    for number, event in enumerate(asked.alternatives, 2):
        fresh = [c for c in event.cells if c.cell not in proposed]
        if len(fresh) == 1 and fresh[0].cell not in seen and _near(fresh[0], view):
            seen.add(fresh[0].cell)
            found.append((str(number), fresh[0].position))
    return found
