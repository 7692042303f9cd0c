"""Dialogs that choose files and folders, where those of the system cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QLineEdit, QMessageBox, QWidget

from bridgetrack.annotations.files import ENDING

_KINDS = [
    "Movies, masks, tables, projects (*.tif *.tiff *.btf *.lsm *.npy zarr.json .zgroup .zattrs "
    ".zarray *.csv *.xml *.json)",
    "All files (*)",
]


class OpenDialog(QFileDialog):
    """Chooses a file; or a folder that is one thing, a project or a zarr store, by opening it."""

    def __init__(self, parent: QWidget | None, start: str = "") -> None:
        super().__init__(parent, "Open", start)
        self.setFileMode(QFileDialog.FileMode.ExistingFile)
        self.setNameFilters(_KINDS)
        self.setOption(QFileDialog.Option.DontUseNativeDialog)  # they only go into folders
        self.chosen: Path | None = None
        self.directoryEntered.connect(self._take)

    def _take(self, name: Any) -> bool:
        path = Path(name)
        if path.suffix not in (ENDING, ".zarr") or not path.is_dir():
            return False
        self.chosen = path
        QDialog.accept(self)
        return True

    def accept(self) -> None:
        """Take what is chosen, or go into its folder."""
        names = self.selectedFiles()
        if not (names and self._take(names[0])):
            super().accept()

    @property
    def path(self) -> Path:
        """What was chosen."""
        return self.chosen or Path(self.selectedFiles()[0])


def ask_open(parent: QWidget, start: str = "") -> Path | None:
    """The file that somebody chose to open; None where they chose none."""
    dialog = OpenDialog(parent, start)
    return dialog.path if dialog.exec() == QDialog.DialogCode.Accepted else None


class FolderDialog(QFileDialog):
    """Chooses a folder; one whose name is typed is made where it is not there yet."""

    def __init__(self, parent: QWidget | None, title: str, start: str = "") -> None:
        super().__init__(parent, title, start)
        self.setFileMode(QFileDialog.FileMode.Directory)
        self.setOption(QFileDialog.Option.ShowDirsOnly)
        # The system's own dialogs know folders only that are there.
        self.setOption(QFileDialog.Option.DontUseNativeDialog)
        line, buttons = self.findChild(QLineEdit), self.findChild(QDialogButtonBox)
        if line is not None and buttons is not None:
            # Qt lets people choose only what is there.
            choose = buttons.buttons()[0]
            line.textChanged.connect(lambda name: choose.setEnabled(bool(name.strip())))

    def accept(self) -> None:
        """Make what was typed, then go on."""
        try:
            for name in self.selectedFiles():
                Path(name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            QMessageBox.warning(self, self.windowTitle(), f"The folder cannot be made: {error}")
            return
        super().accept()


def ask_folder(parent: QWidget, title: str, start: str = "") -> Path | None:
    """The folder that somebody chose, beginning in another; None where they chose none."""
    dialog = FolderDialog(parent, title, start)
    if dialog.exec() != QDialog.DialogCode.Accepted:
        return None
    return Path(dialog.selectedFiles()[0])
