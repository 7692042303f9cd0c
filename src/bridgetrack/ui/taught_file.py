"""What strokes taught, opened from a file and saved to one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from bridgetrack.movie import Movie
from bridgetrack.segmentation.pixels import PixelModel
from bridgetrack.session.teaching import open_taught, save_taught
from bridgetrack.ui.layers import path_of
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import SPACE, brief, button, row

JOB = "open pixels"
"""Name of the background work: reading a file."""

_FILES = "What strokes taught (*.json)"


class TaughtFile(QWidget):
    """Opens what strokes on another movie taught, saves what they taught here."""

    def __init__(
        self,
        panel: Panel,
        image: Callable[[], Any],
        movie: Callable[[], Movie | None],
        begin_with: Callable[[PixelModel | None], None],
    ) -> None:
        super().__init__()
        self._panel, self._image, self._movie = panel, image, movie
        self._begin_with = begin_with
        self._model: PixelModel | None = None
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        self.open = button(
            "Open what was taught…",
            "Begin with what strokes on another movie taught, from a file saved here or by "
            "bridgetrack segment --strokes",
            self.ask_open, icon="open",
        )  # fmt: skip
        self.save = button(
            "Save it…", "Keep what was taught in a file, for other movies and the command line",
            self.ask_save, icon="save",
        )  # fmt: skip
        self.without = button(
            "", "Learn from the strokes on this movie alone; they stay",
            lambda: self._begin_with(None), icon="undo",
        )  # fmt: skip
        box.addWidget(row(self.open, self.save))
        box.addWidget(self.without)

    def show_taught(self, model: PixelModel | None, start: PixelModel | None) -> None:
        """Show what is taught, and what the strokes began with."""
        self._model = model
        self.open.setEnabled(self._image() is not None)
        self.save.setEnabled(model is not None and "cell" in model.classes)
        self.without.setVisible(start is not None)
        if start is not None:
            self.without.setText(f"Do without what {brief(start.name)} taught")
            self.without.setToolTip(
                f"Learn from the strokes on this movie alone, without {start.name}; they stay"
            )

    def ask_open(self) -> None:
        """Ask for a file and begin with what it holds."""
        name, _ = QFileDialog.getOpenFileName(
            self, "Open what strokes taught", self._beside(), _FILES
        )
        image, movie = self._image(), self._movie()
        if not name or movie is None:
            return
        session = self._panel.session

        def take(model: PixelModel) -> None:
            if image is self._image():  # else another movie was chosen meanwhile
                self._begin_with(model)

        session.run(JOB, lambda: open_taught(Path(name), movie), take)

    def ask_save(self) -> None:
        """Ask for a file and write what was taught."""
        image, model = self._image(), self._model
        if image is None or model is None:
            return
        name, _ = QFileDialog.getSaveFileName(
            self, "Save what strokes taught", self._beside("taught.pixels.json"), _FILES
        )
        if not name:
            return
        session = self._panel.session
        with session.telling():
            save_taught(model, Path(name), path_of(image))
            session.message.emit("info", f"Saved what the strokes taught to {name}.")

    def _beside(self, name: str = "") -> str:
        """Where a dialog begins: beside the movie, which may not be open with cells yet."""
        path = None if self._image() is None else path_of(self._image())
        return self._panel.beside_movie(name) if path is None else str(path.parent / name)
