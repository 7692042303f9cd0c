"""The cell under the pointer, and what the model thinks of it."""

from __future__ import annotations

from psygnal import Signal

from bridgetrack.ui.finder import CellFinder, PointFinder
from bridgetrack.ui.proposals import Proposal, proposals
from bridgetrack.ui.session import Session


class Pointing:
    """Finds cells by position; emits `changed` when the overlay must be drawn anew.

    Attributes
    ----------
    hovered
        Row of the cell under the pointer, -1 where there is none.
    history
        Whether to ask where the cell comes from rather than where it goes.
    proposals
        What could happen to it, best first.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._finder: CellFinder | PointFinder | None = None
        self.hovered = -1
        self.history = False
        self.proposals: list[Proposal] = []
        session.source_changed.connect(self._reset)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._refresh)
        session.tracking_changed.connect(self._refresh)

    @property
    def finder(self) -> CellFinder | PointFinder | None:
        """Finds cells by position; None until the movie is measured."""
        return self._finder

    @property
    def proposing(self) -> bool:
        """Whether the model is asked what it thinks."""
        return True

    def hover(self, frame: int, point: tuple[float, ...]) -> None:
        """The pointer moved."""
        row = -1 if self._finder is None else self._finder.row_at(frame, point)
        if row != self.hovered:
            self.point_at(row)

    def point_at(self, row: int) -> None:
        """As if the pointer were on a cell."""
        self.hovered, self.history = row, False
        self._refresh()

    def leave(self) -> None:
        """The pointer points nowhere."""
        if self.hovered >= 0:
            self.hovered = -1
            self._refresh()

    def toggle_history(self) -> None:
        """Ask where the cell comes from rather than where it goes, or back."""
        self.history = not self.history
        self._refresh()

    # ------------------------------------------------------------------ following

    def _reset(self) -> None:
        self._finder, self.hovered, self.proposals = None, -1, []
        self.changed.emit()

    def _on_scene(self) -> None:
        scene = self._session.scene
        if scene is None:
            return
        labels, cells = scene.labels, scene.detections
        self._finder = PointFinder(cells) if labels is None else CellFinder(labels, cells)
        self.hovered = -1
        self._refresh()

    def _refresh(self) -> None:
        tracking = self._session.tracking
        if tracking is None or self.hovered < 0 or not self.proposing:
            self.proposals = []
        else:
            self.proposals = proposals(tracking, self.hovered, history=self.history)
        self.changed.emit()
