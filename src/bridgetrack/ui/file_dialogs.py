"""The dialog that opens files, and folders that are one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QDialog, QFileDialog, QWidget

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
