"""Many movies: a folder of them, tracked with the model in use, and a table of all."""

from __future__ import annotations

from pathlib import Path

from magicgui.types import FileDialogMode
from magicgui.widgets import FileEdit
from qtpy.QtWidgets import (
    QFormLayout,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from bridgetrack.io.results import ExportOptions
from bridgetrack.pipeline.batch import TABLE, BatchRow, BatchRun, batch_steps
from bridgetrack.segmentation.settings import MaskChoice
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.widgets import button, text

_ABOUT = (
    "Tracks every movie of a folder with the model in use. Movies without masks are segmented "
    "first; NAME_labels, NAME_masks or NAME_cells are the masks of NAME. "
    "What is unticked under What can happen is left out in all of them."
)
_HEADER = ("Movie", "Cells", "Tracks", "Divide", "Certain")
_WORDS = {
    "jointly": "together with their tracks",
    "plain": "quickly: one reading",
}


class BatchBox(QWidget):
    """Folders, options, a button and the table of what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        about = text()
        about.setText(_ABOUT)
        # A folded section is as high as its contents say, which know no width to wrap words at.
        line = about.fontMetrics().lineSpacing()
        about.setMinimumHeight(6 * line)
        box.addWidget(about)
        self.folder, self.labels, self.out = (
            FileEdit(mode=FileDialogMode.EXISTING_DIRECTORY, nullable=True, name=name)
            for name in ("folder", "labels", "out")
        )
        for edit in (self.folder, self.labels, self.out):
            edit.choose_btn.text = "…"  # the room is for the path
        where = QFormLayout()
        for title, widget in (
            ("Movies", self.folder), ("Masks, if elsewhere", self.labels), ("Results", self.out),
        ):  # fmt: skip
            where.addRow(title, widget.native)
        box.addLayout(where)
        self.choose = SettingsForm(MaskChoice, {"choose": "Find cells"}, words=_WORDS)
        box.addWidget(self.choose.native)
        self.formats = SettingsForm(
            ExportOptions,
            {"csv": "CSV", "ctc": "CTC", "geff": "GEFF"},
            in_a_row=True,
        )
        box.addWidget(self.formats.native)
        self.go = button("Track them all", "Track every movie of the folder", self.begin, icon="go")
        box.addWidget(self.go)
        self.work = Work(panel, "batch", cancelled=self._on_cancel, doer=panel.state.elsewhere)
        box.addWidget(self.work)
        self.table = QTableWidget(0, len(_HEADER))
        self.table.setHorizontalHeaderLabels(list(_HEADER))
        self.table.setMinimumHeight(140)
        self.table.horizontalHeader().setMinimumSectionSize(30)
        self.table.verticalHeader().hide()
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        box.addWidget(self.table)
        self.words = text()
        self.words.setMinimumHeight(6 * line)
        box.addWidget(self.words)

    def begin(self) -> None:
        """Track the folder in the background; what is done stays where it is cancelled."""
        folder, out = _path(self.folder), _path(self.out)
        formats = self.formats.applied_to(ExportOptions()).formats
        if folder is None or out is None:
            self.words.setText("Choose the folder of the movies and one for the results.")
            return
        if not formats:
            self.words.setText("Tick at least one format.")
            return
        doer, model = self._panel.state.elsewhere, self._panel.session.model
        if doer.busy("batch"):
            return  # pressed twice
        choose = self.choose.applied_to(MaskChoice())
        kinds = self._panel.session.kinds
        given = BatchRun(folder, out, model, _path(self.labels), formats, choose, kinds=kinds)
        left_out = ", ".join(kinds.words)
        self.words.setText(f"Tracking without {left_out}…" if left_out else "Tracking…")
        doer.run(
            "batch", lambda: batch_steps(given), lambda rows: self._show(rows, out),
            lambda error: self.words.setText(str(error)),
        )  # fmt: skip

    def _on_cancel(self) -> str:
        """What is told of it: the movies that are done have their results."""
        words = "Cancelled: the movies that are done have their results, the others have none."
        self.words.setText(words)
        return words

    def _show(self, rows: tuple[BatchRow, ...], out: Path) -> None:
        good = [row for row in rows if not row.problem]
        self.table.setRowCount(len(good))
        for k, row in enumerate(good):
            counts = row.counts or {}
            values = (
                row.name, f"{counts['cells']:,}", f"{counts['tracks']:,}", f"{counts['divide']:,}",
                f"{100 * row.certainty:.1f} %",
            )  # fmt: skip
            for column, value in enumerate(values):
                self.table.setItem(k, column, QTableWidgetItem(value))
        self.table.resizeColumnsToContents()
        told = [f"The least certain first. Results and {TABLE} are in {out}."] if good else []
        told += [f"{row.name}: ⚠ {words}." for row in good for words in row.warnings]
        told += [f"{row.name} failed: {row.problem}" for row in rows if row.problem]
        self.words.setText("\n".join(told))


def _path(edit: FileEdit) -> Path | None:
    """The folder chosen, None where there is none."""
    value = edit.value
    return None if value is None or str(value) in ("", ".") else Path(str(value))
