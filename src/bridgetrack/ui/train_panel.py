"""Step 3: one button, and what came of it in plain words."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QComboBox, QFileDialog

from bridgetrack.annotations.annotation import Kind
from bridgetrack.notes import plural
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.plots import AccuracyPlot
from bridgetrack.ui.widgets import Column, button, heading, text

_FILES = "Bridgetrack model (*.json)"
_FILE = "/"
"""Stands for a model that is not in the folder."""


class TrainPanel(Panel):
    """Learns from the answers."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.trainer = self.session.trainer
        self.words = self.add(text(lines=1))
        self.start = self.add(ModelBox(self))
        self.go = self.add(
            button(
                "Train",
                "Learn from your answers; takes seconds to minutes",
                self.train,
            )
        )
        self.results = self.add(text())
        self.doubt = self.add(text())
        self.advice_title = self.add(heading("What would help most"))
        self.advice = self.add(text())
        self.verdict = self.add(text())
        self.plot = self.add(AccuracyPlot())
        self.column.addStretch(1)
        session = self.session
        self.follow(
            self._refresh,
            self.trainer.changed, session.answers_changed,
            session.model_changed, session.scene_changed, session.movie_changed,
            session.questions.changed,
        )  # fmt: skip

    # ------------------------------------------------------------------ intents

    def train(self) -> None:
        """Begin."""
        self.trainer.train()

    def ask_load(self) -> None:
        """Ask for a file and use its model."""
        name, _ = QFileDialog.getOpenFileName(self, "Load a model", self._folder(), _FILES)
        if name:
            self.trainer.load(Path(name))

    def ask_save(self) -> None:
        """Ask for a file and write the model."""
        wanted = str(Path(self._folder()) / "model.json")
        name, _ = QFileDialog.getSaveFileName(self, "Save the model", wanted, _FILES)
        if name:
            self.trainer.save(Path(name))
            self.start.refresh()

    def _folder(self) -> str:
        """The folder of models, made where there is none."""
        folder = self.trainer.library.folder
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    # ------------------------------------------------------------------ state

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """Look at the kept models whenever the panel comes into view."""
        self.start.refresh()
        super().showEvent(event)

    def _refresh(self) -> None:
        # Nothing is learned from what nobody could tell.
        n = sum(a.kind != Kind.CANNOT_TELL for a in self.session.annotations or ())
        ready = self.session.scene is not None
        self.go.setEnabled(ready and n > 0 and not self.trainer.busy)
        self.words.setText(f"{plural(n, 'answer')} to learn from." if n else "")
        results = self.trainer.results()
        if self.trainer.problem:
            results = [f"✕ {self.trainer.problem}"]
        self.results.setText("\n".join(results))
        self.results.setVisible(bool(results))
        self.doubt.setText(self.trainer.doubt())
        self.doubt.setVisible(bool(self.doubt.text()))
        advice = self.trainer.advice() if ready else []
        self.advice.setText("\n".join(f"• {a}" for a in advice))
        self.advice.setVisible(bool(advice))
        self.advice_title.setVisible(bool(advice))
        report = self.session.questions.report
        self.verdict.setText(report.words)
        self.verdict.setVisible(bool(report.words))
        self.plot.show_points(report.points)


class ModelBox(Column):
    """The model in use, from which training starts, and others to use in its place."""

    def __init__(self, panel: TrainPanel) -> None:
        super().__init__()
        self._panel, self._trainer = panel, panel.trainer
        self.add(heading("Model"))
        self.choice = QComboBox()
        self.choice.setToolTip("Tracks follow at once; training starts from it and stays close")
        self.choice.setMinimumContentsLength(12)
        self.choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.choice.activated.connect(self._on_choice)
        self.save = button("Save model…", "Save the model in use to a file", panel.ask_save)
        self.add(self.choice)
        self.words = self.add(text())
        self.add(self.save)
        for signal in (panel.session.movie_changed, panel.session.model_changed):
            panel.listen(signal, self.refresh)
        self.refresh()

    def _on_choice(self, place: int) -> None:
        key = str(self.choice.itemData(place))
        if key == _FILE:
            self._panel.ask_load()
        elif place:  # the first is in use
            self._trainer.use(key)
        self.refresh()

    def refresh(self) -> None:
        """Show what there is."""
        titles = self._trainer.models() | {_FILE: "a file…"}
        self.choice.clear()
        for key, title in titles.items():
            self.choice.addItem(title, key)
        self.words.setText(self._trainer.begins)
