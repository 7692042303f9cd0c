"""A question drawn over the image, in either of its two frames."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.ui.colours import LOOKS, PROPOSAL, rgba
from bridgetrack.ui.overlay import CLEAR, Colour, Drawing, View, percent

Array = NDArray[np.float64]
Outline = Callable[[CellRef], Array]

_SHADE: Colour = (0.0, 0.0, 0.0, 0.55)
"""Behind numbers, so that they are legible on bright cells."""


def question_words(asked: Suggestion) -> str:
    """The question as a label: what the model believes, and how firmly."""
    look = LOOKS[asked.kind]
    return f"{look.sign} {look.name}, {percent(asked.beliefs[0])}"


def draw_question(drawing: Drawing, asked: Suggestion, view: View, outline: Outline) -> None:
    """The proposed event, and numbers on the cells of the alternatives.

    Cells of the frame in view are outlined, those of the other frame are rings.
    """
    if not asked.frame <= view.frame <= asked.last_frame:
        return
    colour = rgba(LOOKS[asked.kind].colour)
    here = [c for c in asked.cells if view.holds(c)]
    top = np.inf
    for cell in here:
        shape = outline(cell)
        top = min(top, float(shape[:, -2].min()) if len(shape) else cell.position[-2])
        for point in shape.tolist():
            drawing.mark(point, "disc", 1.4, colour, colour)
    for cell in asked.cells:
        if cell not in here and _near(cell, view):
            drawing.ring(cell.position, 0.5 * view.size, colour)
    for source in asked.event.sources:
        for target in asked.event.targets:
            drawing.arrow(source, target, colour)
    _draw_words(drawing, asked, view, top)
    _draw_numbers(drawing, asked, view)


def _near(cell: CellRef, view: View) -> bool:
    """Whether a cell of the other frame lies in the plane in view."""
    away = 0.0 if view.plane is None else view.depth * abs(cell.position[0] - view.plane)
    return away <= view.size


def _draw_words(drawing: Drawing, asked: Suggestion, view: View, top: float) -> None:
    middle = asked.position
    highest = min(c.position[-2] for c in asked.cells)
    top = min(top, highest - 0.25 * view.size)
    above = top - 0.5 * view.size if top > view.size else middle[-2] + 1.5 * view.size
    place = min(max(middle[-1], 1.6 * view.size), view.width - 1.6 * view.size)
    drawing.mark((above, place), "disc", 0.1, CLEAR, CLEAR, question_words(asked))


def _draw_numbers(drawing: Drawing, asked: Suggestion, view: View) -> None:
    """A number on the cell of every alternative that differs from the proposal in that one only."""
    proposed = {c.cell for c in asked.cells}
    seen: set[tuple[int, int]] = set()
    white: Colour = rgba(PROPOSAL, 0.8)
    for number, event in enumerate(asked.alternatives, 2):
        fresh = [c for c in event.cells if c.cell not in proposed]
        if len(fresh) == 1 and fresh[0].cell not in seen and _near(fresh[0], view):
            seen.add(fresh[0].cell)
            place = fresh[0].position
            drawing.mark(place, "disc", 0.4 * view.size, _SHADE, white, str(number))
