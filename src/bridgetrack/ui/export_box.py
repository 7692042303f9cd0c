"""Parts of step 4 that write results: of the open movie, and of many movies."""

from __future__ import annotations

from pathlib import Path

from magicgui.types import FileDialogMode
from magicgui.widgets import FileEdit
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QLineEdit,
    QMessageBox,
    QWidget,
)

from bridgetrack.io.results import ExportOptions, write_results
from bridgetrack.pipeline.batch import TABLE, BatchRow, BatchRun, batch_steps
from bridgetrack.pipeline.methods import methods_text
from bridgetrack.pipeline.tracking import Tracking, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.segmentation.settings import MaskChoice
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.widgets import Column, button, text

_FORMATS = {"csv": "CSV", "ctc": "CTC", "geff": "GEFF"}


class ExportBox(Column):
    """Formats and a button; emits `told` when it says what comes of an export."""

    told = Signal()

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        self._tracking: Tracking | None = None
        self.formats = SettingsForm(ExportOptions, _FORMATS, in_a_row=True)
        self.add(self.formats.native)
        self.save = button(
            "Export to a folder…", "Write the chosen formats", self.ask, icon="export", hot="Alt+X"
        )
        self.add(self.save)
        self.add(Work(panel, "export", cancel=False, doer=panel.state.elsewhere))
        self.words = self.add(text())
        self.set_tracking(None)

    @property
    def options(self) -> ExportOptions:
        """What the form says."""
        return self.formats.applied_to(ExportOptions())

    def set_tracking(self, tracking: Tracking | None) -> None:
        """Show what would be written."""
        writing = self._panel.state.elsewhere.busy("export")
        if not writing and (tracking is None or self._tracking is None):
            # What came of an export stays in view while the tracks change.
            self.words.setText("" if tracking is not None else "There is nothing to export yet.")
        self._tracking = tracking
        self.save.setEnabled(tracking is not None)

    def ask(self) -> None:
        """Ask for a folder and write there."""
        folder = ask_folder(
            self, "Folder for the results; a new name makes one", self._panel.beside_movie()
        )
        if folder is not None:
            self.write(folder)

    def write(self, folder: Path) -> None:
        """Write the chosen formats in the background, with all answers given so far."""
        session, options = self._panel.session, self.options
        answered = session.answered()
        if self._tracking is None or answered is None:
            return
        if not options.formats:
            self._tell("Tick at least one format.")
            return
        if self._panel.state.elsewhere.busy("export"):
            self._tell("Other results are still being written; export these when that is done.")
            return
        self._tell("Writing…")
        model, movie = session.model, session.movie
        checked = session.questions.check.finished
        files = (None, None) if movie is None else movie.files
        image, masks = (None if file is None else file.name for file in files)
        found = None if movie is None else movie.found

        def work() -> Steps[tuple[str, ...]]:
            scene = yield from answered()
            # Solved in full, so that repeating the project gives the same files.
            final = yield from track_scene(scene, model)
            yield Progress("Writing", 0.0)
            methods = methods_text(final, image=image, masks=masks, found=found, checked=checked)
            return write_results(
                final.tracks, scene.labels, folder, options.formats, methods=methods
            )

        def done(notes: tuple[str, ...]) -> None:
            more = "".join(f"\n{n}" for n in notes)
            self._tell(f"Written to {folder}.{more}")
            now = session.movie
            if movie is not None and (now is None or now.layers != movie.layers):
                words = f"The results of “{movie.name}” are written to {folder}."
                session.message.emit("info", words)

        # Goes on where another movie is chosen meanwhile.
        self._panel.state.elsewhere.run("export", work, done, lambda e: self._tell(str(e)))

    def _tell(self, words: str) -> None:
        self.words.setText(words)
        self.told.emit()


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


_ABOUT = (
    "Tracks every movie of a folder with the model in use. Movies without masks are segmented "
    "first; NAME_labels, NAME_masks or NAME_cells are the masks of NAME. "
    "What is unticked under What can happen is left out in all of them."
)
_WORDS = {
    "jointly": "together with their tracks",
    "plain": "quickly: one reading",
}


class BatchBox(Column):
    """Folders, options, a button and what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        self.add(text(_ABOUT, lines=6))
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
        self.column.addLayout(where)
        self.choose = SettingsForm(MaskChoice, {"choose": "Find cells"}, words=_WORDS)
        self.add(self.choose.native)
        self.formats = SettingsForm(ExportOptions, _FORMATS, in_a_row=True)
        self.add(self.formats.native)
        self.go = button("Track them all", "Track every movie of the folder", self.begin, icon="go")
        self.add(self.go)
        self.work = Work(panel, "batch", cancelled=self._on_cancel, doer=panel.state.elsewhere)
        self.add(self.work)
        self.words = self.add(text(lines=6))

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
        told = [f"The least certain first. Results and {TABLE} are in {out}."] if good else []
        told += [f"{row.name}: {_counted(row)}" for row in good]
        told += [f"{row.name}: ⚠ {words}." for row in good for words in row.warnings]
        told += [f"{row.name} failed: {row.problem}" for row in rows if row.problem]
        self.words.setText("\n".join(told))


def _counted(row: BatchRow) -> str:
    """What was found in a movie."""
    counts = row.counts or {}
    return (
        f"{counts['cells']:,} cells, {counts['tracks']:,} tracks, {counts['divide']:,} divisions, "
        f"{100 * row.certainty:.1f} % certain."
    )


def _path(edit: FileEdit) -> Path | None:
    """The folder chosen, None where there is none."""
    value = edit.value
    return None if value is None or str(value) in ("", ".") else Path(str(value))
