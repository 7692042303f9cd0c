"""The answers so far as a table, the latest on top."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtWidgets import QTableWidget, QTableWidgetItem

from bridgetrack.annotations.annotation import Annotation, CellRef, Kind
from bridgetrack.annotations.words import describe
from bridgetrack.ui.event_looks import LOOKS, short_answer
from bridgetrack.ui.widgets import dress_table


class AnswersTable(QTableWidget):
    """Lists answers; a click calls `jump` with the answer's first cell."""

    def __init__(self, jump: Callable[[CellRef], None]) -> None:
        super().__init__()
        dress_table(self, ("", "Frame", "Answer"), (36, 56, 0), "Click an answer to go there",
                    self._on_click)  # fmt: skip
        self.setWordWrap(False)
        self.setMinimumHeight(60)
        self._jump = jump
        self._listed: list[Annotation] = []

    @property
    def chosen(self) -> list[str]:
        """Ids of the answers selected."""
        return [self._listed[k].id for k in sorted({i.row() for i in self.selectedIndexes()})]

    def fill(self, answers: list[Annotation]) -> None:
        """Show these answers; only rows that changed are touched."""
        listed = answers[::-1]
        if len(listed) == len(self._listed) + 1 and listed[1:] == self._listed:
            self.insertRow(0)
            self._set_row(0, listed[0])
        elif listed != self._listed:
            self.setRowCount(len(listed))
            for k, answer in enumerate(listed):
                self._set_row(k, answer)
        self._listed = listed

    def _set_row(self, k: int, answer: Annotation) -> None:
        look = LOOKS[answer.events[0].event]
        sign = look.sign if answer.kind == Kind.CONFIRM else f"¬ {look.sign}"
        frame = str(answer.cells[0].frame)
        for column, value in enumerate((sign, frame, short_answer(answer))):
            item = QTableWidgetItem(value)
            item.setToolTip(describe(answer))
            self.setItem(k, column, item)

    def _on_click(self, k: int, _: int) -> None:
        self._jump(self._listed[k].cells[0])
