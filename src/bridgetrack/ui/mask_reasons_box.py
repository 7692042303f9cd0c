"""Why a cell is drawn as it is, in words, for the cell that somebody asked about."""

from __future__ import annotations

from bridgetrack.session.mask_reasons import JOB
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.widgets import Column, button, heading, text


class MaskReasonsBox(Column):
    """The words, with a button that takes them away; hidden where nobody asked."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._reasons = panel, panel.session.mask_reasons
        self.title = self.add(heading(""))
        self.work = self.add(Work(panel, JOB, cancelled=self._cancelled))
        self.words = self.add(text())
        self.close_words = self.add(button(
            "Close", "Take these words away", self._reasons.forget, icon="no"
        ))  # fmt: skip
        self.hide()
        panel.follow(self._refresh, self._reasons.changed)

    def _cancelled(self) -> str:
        self._reasons.forget()
        return ""

    def _refresh(self) -> None:
        reasons, names = self._reasons, self._panel.session.names
        if reasons.cell is not None:
            self.title.setText(f"Why {names(reasons.cell)} is drawn so")
        self.words.setText(reasons.words)
        self.close_words.setVisible(bool(reasons.words))
        self.setVisible(reasons.cell is not None)
