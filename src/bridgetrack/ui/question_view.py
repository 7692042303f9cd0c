"""Brings questions into view: centred and zoomed, in each of their frames."""

from __future__ import annotations

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.arrays import Array
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import Links
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.overlay import Drawing, SliceShown, draw_question, draw_subject

_CELL = 60.0
"""Screen pixels that a cell is at least across, until somebody zooms."""


class QuestionView:
    """Shows the model's question on the canvas."""

    def __init__(self, session: Session, annotator: Annotator, canvas: Canvas) -> None:
        self._session, self._annotator = session, annotator
        self._canvas, self._questions = canvas, session.questions
        self._shown: Suggestion | None = None
        self._moving = self._zoomed = False
        self._outlines: dict[tuple[int, int], Array] = {}
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
        self._shown, self._outlines = asked, {}
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
            across = 0.0 if self._zoomed else _CELL
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
            draw_question(drawing, self._shown, view, self._outline)
        elif self._questions.engaged and asked is not None:
            draw_subject(drawing, asked, view, self._outline)

    def _outline(self, cell: CellRef) -> Array:
        scene, finder = self._session.scene, self._annotator.finder
        if scene is None or finder is None:
            return np.zeros((0, 2))
        if cell.cell not in self._outlines:
            self._outlines[cell.cell] = finder.outline(scene.detections.row_of(*cell.cell))
        return self._outlines[cell.cell]
