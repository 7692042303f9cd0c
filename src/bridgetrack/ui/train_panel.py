"""Step 3: one button, and the outcome in plain words."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QComboBox, QFileDialog

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import plural
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.plots import NumberPlot
from bridgetrack.ui.widgets import button, fitted, heading, tell, text

_FILES = "Bridgetrack model (*.json)"
_LOAD, _SAVE = "/", "/save"
"""Entries for files in the list of models."""


class TrainPanel(Panel):
    """The model in use, training with the answers, and the outcome."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.trainer = self.session.trainer
        self.words = self.add(text(lines=1))
        self.add(heading("Model"))
        self.choice = self.add(fitted(QComboBox()))
        self.choice.setToolTip(
            "The tracks are updated at once. Training starts from this model and stays close to it"
        )
        self.choice.activated.connect(self._on_choice)
        self.begins = self.add(text())
        self.go = self.add(
            button("Train", "Learn from your answers; takes seconds to minutes", self.trainer.train)
        )
        self.results, self.doubt, self.verdict = (self.add(text()) for _ in range(3))
        self.plot = self.add(NumberPlot())
        self.plot.setFixedHeight(130)
        self.plot.setToolTip("The line is the estimate; the band is its 95 % confidence interval")
        self.column.addStretch(1)
        session, trainer = self.session, self.trainer
        self.follow(self._show_models, session.movie_changed, session.model_changed)
        self.follow(
            self._refresh,
            trainer.changed, session.answers_changed, session.model_changed,
            session.scene_changed, session.movie_changed, session.questions.changed,
        )  # fmt: skip

    def _show_models(self) -> None:
        self.choice.clear()
        files = {_LOAD: "a file…", _SAVE: "(save the model in use…)"}
        for key, title in (self.trainer.models() | files).items():
            self.choice.addItem(title, key)
        self.begins.setText(self.trainer.begins)

    def _on_choice(self, place: int) -> None:
        key = str(self.choice.itemData(place))
        if key == _SAVE:
            self._ask_save()
        elif key == _LOAD:
            name, _ = QFileDialog.getOpenFileName(self, "Load a model", self._folder(), _FILES)
            if name:
                self.trainer.use(Path(name))
        elif place:  # the first is in use
            self.trainer.use(key)
        self._show_models()

    def _ask_save(self) -> None:
        wanted = str(Path(self._folder()) / "model.json")
        dialog = QFileDialog(self, "Save the model", wanted, _FILES)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        if dialog.exec():
            self.trainer.save(Path(dialog.selectedFiles()[0]))

    def _folder(self) -> str:
        """The folder of models, made if there is none."""
        folder = self.trainer.library.folder
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def _refresh(self) -> None:
        given = list(self.session.annotations or ())
        n = sum(a.kind != Kind.CANNOT_TELL for a in given)
        ready, trainer = self.session.scene is not None, self.trainer
        self.go.setEnabled(ready and n > 0 and not trainer.busy)
        unsure = f"; {len(given) - n} answered “cannot tell”" if n < len(given) else ""
        words = [f"{plural(n, 'answer')} to learn from{unsure}."] if given else []
        if self.session.masks is not None and len(self.session.masks.answers):
            n_masks = len(self.session.masks.answers)
            used = "is" if n_masks == 1 else "are"
            words.append(
                f"{plural(n_masks, 'answer')} about masks {used} used when masks are chosen again."
            )
        self.words.setText(" ".join(words))
        problem = [f"✕ {trainer.problem}"] if trainer.problem else trainer.results()
        tell(self.results, "\n".join(problem))
        tell(self.doubt, trainer.doubt())
        tell(self.verdict, self.session.questions.report)
        curve = self.session.questions.curve
        self.plot.setVisible(bool(curve))
        self.plot.show_accuracy(curve)
