"""What clicks on cells and keys of events mean while a question is in view."""

from __future__ import annotations

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.pipeline.scene import Scene
from bridgetrack.ui.picking import Mode

_FATE = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.MERGE, Mode.SPLIT, Mode.FALSE)
_HISTORY = (Mode.APPEAR, Mode.FALSE)


def number_of(asked: Suggestion, cell: tuple[int, int]) -> int | None:
    """Number of the first listed event that a cell takes part in, from 1; None without one."""
    for number, event in enumerate((asked.event, *asked.alternatives), 1):
        if cell in [c.cell for c in event.cells]:
            return number
    return None


def subject_row(scene: Scene, asked: Suggestion, mode: Mode) -> int:
    """Row of the cell asked about, where an event of this kind can begin with it; else -1."""
    fits = _HISTORY if asked.slot[0] == "history" else _FATE
    return scene.detections.row_of(*asked.slot[1]) if mode in fits else -1
