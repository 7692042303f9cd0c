"""Opening and saving projects, at the head of the panel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from bridgetrack.errors import BridgetrackError
from bridgetrack.io.results import ExportOptions
from bridgetrack.session.project import saving
from bridgetrack.ui.file_layers import project_reading
from bridgetrack.ui.layers import LayerData
from bridgetrack.ui.opening import JOB
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import button, row, text

_KIND = "Bridgetrack project (*.json)"


class ProjectBar(QWidget):
    """Two buttons, how far saving is, and what came of it."""

    def __init__(
        self, panel: Panel, source: SourceChooser, options: Callable[[], ExportOptions]
    ) -> None:
        super().__init__()
        self._panel, self._source, self._options = panel, source, options
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.open = button(
            "Open project…", "Go on with a movie, its cells, answers and model",
            self.ask_open, icon="open",
        )  # fmt: skip
        self.save = button(
            "Save project…", "One file to go on from here, or to repeat this run without a window",
            self.ask_save, icon="save", hot="Alt+S",
        )  # fmt: skip
        box.addWidget(row(self.open, self.save))
        self.work = Work(panel, "project", cancel=False, doer=panel.state.elsewhere)
        box.addWidget(self.work)
        self.reading = Work(panel, JOB, doer=panel.state.files)
        box.addWidget(self.reading)
        self.words = text()
        self.words.hide()
        box.addWidget(self.words)
        panel.listen(panel.session.movie_changed, self._on_movie)
        self._on_movie()

    def _on_movie(self) -> None:
        self.save.setEnabled(self._panel.session.movie is not None)
        self._say("")

    def _say(self, words: str) -> None:
        self.words.setText(words)
        self.words.setVisible(bool(words))

    # ------------------------------------------------------------------ saving

    def ask_save(self) -> None:
        """Ask for a file and save the project."""
        name, _ = QFileDialog.getSaveFileName(
            self, "Save project", self._panel.beside_movie("movie.bridgetrack.json"), _KIND
        )
        if name:
            self.write(Path(name))

    def write(self, path: Path) -> None:
        """Save the project in the background; the name gets its ending where it has none."""
        if path.suffix.lower() != ".json":
            path = path.with_name(f"{path.name}.json")
        session, options = self._panel.session, self._options()
        if self._panel.state.elsewhere.busy("project"):
            self._say("Another project is still being saved; save this one when that is done.")
            return
        try:
            steps = saving(session, path, options.formats)
        except BridgetrackError as error:
            self._say(str(error))
            return
        self._say("Saving…")

        def done(notes: list[str]) -> None:
            self._say(f"Saved {path}.{''.join(chr(10) + n for n in notes)}")

        self._panel.state.elsewhere.run("project", lambda: steps, done, lambda e: self._say(str(e)))

    # ------------------------------------------------------------------ opening

    def ask_open(self) -> None:
        """Ask for a file and open the project."""
        name, _ = QFileDialog.getOpenFileName(
            self, "Open project", self._panel.beside_movie(), _KIND
        )
        if name:
            self.read(Path(name))

    def read(self, path: Path) -> None:
        """Open a project in place of the movie that is open; its layers stay, hidden."""
        read = project_reading(str(path))
        if read is None:
            self._say(f"{path} is no Bridgetrack project.")
            return
        self._say("")
        self._panel.state.files.read(path.name, lambda: read(str(path)), self._add)

    def _add(self, found: list[LayerData]) -> None:
        earlier = [x for x in (self._source.image.layer, self._source.labels.layer) if x]
        made = self._panel.state.add_layers(found)
        for layer in earlier if made else []:
            layer.visible = False
        if made:
            self._source.image.choose(made[0] if len(made) > 1 else None)
            self._source.labels.choose(made[-1])
