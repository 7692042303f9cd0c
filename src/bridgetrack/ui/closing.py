"""Closing the window: what can be kept is kept, and what cannot is asked about first."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QMessageBox, QWidget

from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.kept import KeptCells

_WORK = {
    "segment": "Cells are being found; what is found so far would be lost.",
    "repair": "The cells are being repaired; the repair would be lost.",
    "choose": "Masks are being chosen again; that would be lost.",
    "train": "The model is training; what it learns would be lost.",
    "export": "Results are being written; nothing of them would be kept.",
    "project": "The project is being saved; it would not be kept.",
    "batch": "Many movies are being tracked; those that are not done yet would be left out.",
    "trees": "Family trees are being saved; they would not be kept.",
    "keep the model": "The model is being kept for later movies; it would not be.",
    "take over": "Tracks are being taken over; none of them would be.",
}
"""What is lost with work that is under way, by its name."""


class CloseGuard(QObject):
    """Keeps the cells before a window closes, and asks where something cannot be kept.

    Attributes
    ----------
    others
        Each says, in a sentence, what else closing would lose; nothing where that is nothing.
    """

    def __init__(self, kept: KeptCells, *doers: BackgroundWork) -> None:
        super().__init__()
        self._kept, self._doers = kept, doers
        self.others: list[Callable[[], str]] = []
        self._watched: weakref.ref[QWidget] | None = None

    def watch(self, part: QWidget) -> None:
        """Watch over a window."""
        if self._watched is None or part is not self._watched():
            self._watched = weakref.ref(part)
            part.installEventFilter(self)

    @property
    def losses(self) -> list[str]:
        """What closing now would lose, a sentence each."""
        found = [
            words for name, words in _WORK.items() if any(doer.busy(name) for doer in self._doers)
        ]
        if self._kept.problem:
            found.append(
                f"The cells cannot be kept: {self._kept.problem}. Save the project elsewhere, or "
                "save the layer of the cells."
            )
        return found + [words for lost in self.others if (words := lost())]

    def eventFilter(self, watched: Any, event: Any) -> bool:  # noqa: N802
        """Stop the window from closing where somebody says so."""
        if event.type() != QEvent.Type.Close or self._watched is None:
            return False
        if watched is not self._watched():
            return False
        self._kept.keep_now()
        losses = self.losses
        if losses and not may_close(watched, losses):
            event.ignore()
            return True
        return False


def may_close(window: QWidget, losses: list[str]) -> bool:
    """Ask whether to close although something is lost."""
    box = QMessageBox(window)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("Close Bridgetrack?")
    box.setText("\n".join(losses))
    box.setInformativeText("Everything else is kept: your answers, and the cells of this movie.")
    close = box.addButton("Close and lose it", QMessageBox.ButtonRole.DestructiveRole)
    stay = box.addButton("Stay", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.exec()
    return box.clickedButton() is close
