"""Asking for a folder, which may be a new one."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtWidgets import QDialog, QFileDialog, QMessageBox, QWidget


class FolderDialog(QFileDialog):
    """Chooses a folder; one whose name is typed is made where it is not there yet."""

    def __init__(self, parent: QWidget | None, title: str) -> None:
        super().__init__(parent, title)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOption(QFileDialog.Option.ShowDirsOnly)
        # The system's own dialogs know folders only that are there.
        self.setOption(QFileDialog.Option.DontUseNativeDialog)

    def accept(self) -> None:
        """Make what was typed, then go on."""
        try:
            for name in self.selectedFiles():
                Path(name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            QMessageBox.warning(self, self.windowTitle(), f"The folder cannot be made: {error}")
            return
        super().accept()


def ask_folder(parent: QWidget, title: str) -> Path | None:
    """The folder that somebody chose; None where they chose none."""
    dialog = FolderDialog(parent, title)
    if dialog.exec() != QDialog.DialogCode.Accepted:
        return None
    return Path(dialog.selectedFiles()[0])
