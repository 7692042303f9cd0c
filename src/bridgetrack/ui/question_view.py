"""Brings questions into view: centred and zoomed, in either of their two frames."""

from __future__ import annotations

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.arrays import Array
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import EventLoopQueue, Links
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
        self._late = self._moving = self._zoomed = False
        self._outlines: dict[tuple[int, int], Array] = {}
        self._queue = EventLoopQueue()
        canvas.painters.append(self._paint)
        self._links = Links()
        self._links.add(session.questions.look, self.show)
        self._links.add(session.questions.changed, self._on_change)
        self._links.add(session.questions.settling, self._hold)
        self._links.add(annotator.turned, self.flip)
        self._links.add(canvas.viewer.dims.events.current_step, self._on_frame)

    def close(self) -> None:
        """Let go of the viewer."""
        self._queue.stop()
        self._links.cut()

    # ------------------------------------------------------------------ view

    def show(self, asked: Suggestion) -> None:
        """Go to a question."""
        self._shown, self._outlines = asked, {}
        held, self._canvas.held = self._canvas.held, True
        self._canvas.activate()
        self.go_to(late=False, position=asked.position)
        self._hold(held)

    def _hold(self, held: bool) -> None:
        """Draw once for an answer and the next question, when their frame is in view."""
        self._canvas.held = held
        if held:
            self._queue.stop()
        else:
            self._queue.begin(self._canvas.redraw)

    def flip(self) -> None:
        """Show the other frame."""
        if self._canvas.viewer is not None:
            self.go_to(late=not self._late)

    def go_to(self, late: bool, position: tuple[float, ...] | None = None) -> None:
        """Show the earlier or the later frame and, where given, centre a position in pixels."""
        asked = self._shown
        if asked is None:
            return
        cells = (asked.event.targets if late else asked.event.sources) or asked.cells
        plane = float(np.mean([c.position[0] for c in cells]))
        if position is not None:
            position = (plane, *position[-2:])[-len(position) :]
        self._late = late
        self._moving = True
        try:
            frame = asked.last_frame if late else asked.frame
            self._canvas.show(frame, position, plane=plane, across=0.0 if self._zoomed else _CELL)
            self._zoomed = self._zoomed or position is not None
        finally:
            self._moving = False

    # ------------------------------------------------------------------ following

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
