"""Parts of the Train panel: what to start from, and keeping what was learned."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import Qt
from qtpy.QtGui import QPixmap
from qtpy.QtWidgets import QComboBox, QFileDialog, QLabel, QLineEdit, QWidget

from bridgetrack.session.keep_model import JOB, ModelKeeper
from bridgetrack.session.start_choice import MOVIES, PRESENT, STRATEGIES, Start, StartChoice
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.widgets import Column, button, heading, row, text

_MODELS = "Bridgetrack model (*.json)"
_PROJECTS = "Bridgetrack project (*.json *.bridgetrack);;All files (*)"
_WIDEST = 330


class StartFrom(Column):
    """The choice of what training starts from."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self.starts: StartChoice = panel.session.starts
        self.add(heading("Start from"))
        self.choice = QComboBox()
        self.choice.setToolTip("What training starts from and stays close to")
        self.choice.setMinimumContentsLength(12)
        self.choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.choice.activated.connect(self._on_choice)
        self.add(self.choice)
        self.words = self.add(text())
        self.picture = QLabel()
        self.picture.setToolTip("Some cells of the movie that the model learned from")
        self._shown: Path | None = None
        self.add(self.picture)
        self.movies = self.add(self._movies())
        self.use = button(
            "Use without training", "Track with this model as it is", self.starts.use, icon="go"
        )
        self.add(self.use)
        self.export = button(
            "Share…", "Write this model into a file for somebody else", self.ask_export,
            icon="export",
        )  # fmt: skip
        self.remove = button(
            "Remove", "Take this model out of the library", self.starts.remove, icon="delete"
        )
        self.of_library = self.add(row(self.export, self.remove))
        self.undo = button(
            "Undo Remove", "Bring the removed model back", self.starts.undo_remove, icon="undo"
        )
        self.add(self.undo)
        self.problem = self.add(text())
        panel.listen(self.starts.changed, self.refresh)
        panel.listen(panel.session.model_changed, self.refresh)
        self.refresh()

    def _movies(self) -> QWidget:
        """Which earlier movies, and how they are used."""
        box = Column()
        self.add_movies = button(
            "Add movies…", "Choose project files of earlier movies", self.ask_movies, icon="open"
        )
        self.clear = button(
            "Clear", "Use none of these movies", self.starts.forget_movies, icon="delete"
        )
        box.add(row(self.add_movies, self.clear))
        self.strategy = QComboBox()
        self.strategy.addItems(list(STRATEGIES.values()))
        self.strategy.setToolTip(
            "The movies may differ: each has a model of its own, tied to the others (transfer). "
            "The movies are alike: all answers count as if of one movie (union)."
        )
        self.strategy.activated.connect(self._on_strategy)
        box.add(self.strategy)
        return box

    # ------------------------------------------------------------------ intents

    def _on_choice(self, place: int) -> None:
        self.starts.choose(str(self.choice.itemData(place)))

    def _on_strategy(self, place: int) -> None:
        self.starts.use_strategy(list(STRATEGIES)[place])

    def ask_movies(self) -> None:
        """Ask for project files."""
        names, _ = QFileDialog.getOpenFileNames(self, "Earlier movies", "", _PROJECTS)
        if names:
            self.starts.add_movies([Path(name) for name in names])

    def ask_export(self) -> None:
        """Ask for a file and write the chosen model."""
        wanted = f"{self.starts.start.name}.json"
        name, _ = QFileDialog.getSaveFileName(self, "Share the model", wanted, _MODELS)
        if name:
            self.starts.export_file(Path(name))

    # ------------------------------------------------------------------ state

    def refresh(self) -> None:
        """Show what there is."""
        chosen = self.starts
        starts, start = chosen.starts, chosen.start
        self._list(starts, start)
        suited = bool(chosen.suited) and start.name == chosen.suited
        self.words.setText(f"{'Chosen for you. ' if suited else ''}{start.words}")
        self._draw(start.preview)
        movies = start.key == MOVIES
        self.movies.setVisible(movies)
        self.clear.setEnabled(bool(chosen.movies))
        self.strategy.setCurrentIndex(list(STRATEGIES).index(chosen.strategy))
        self.use.setVisible(not movies and start.key != PRESENT and start.usable)
        self.of_library.setVisible(bool(start.name))
        self.export.setEnabled(start.usable)
        self.undo.setVisible(chosen.can_undo)
        self.problem.setText(f"✕ {chosen.problem}" if chosen.problem else "")
        self.problem.setVisible(bool(chosen.problem))

    def _list(self, starts: tuple[Start, ...], chosen: Start) -> None:
        """Fill the list anew where it changed."""
        wanted = [(s.title, s.key) for s in starts]
        places = range(self.choice.count())
        shown = [(self.choice.itemText(k), self.choice.itemData(k)) for k in places]
        if wanted != shown:
            self.choice.clear()
            for place, (title, key) in enumerate(wanted):
                self.choice.addItem(title, key)
                self.choice.setItemData(place, starts[place].words, Qt.ItemDataRole.ToolTipRole)
        self.choice.setCurrentIndex([s.key for s in starts].index(chosen.key))

    def _draw(self, preview: Path | None) -> None:
        if preview != self._shown:
            self._shown = preview
            picture = QPixmap() if preview is None else QPixmap(str(preview))
            if not picture.isNull() and picture.width() > _WIDEST:
                smooth = Qt.TransformationMode.SmoothTransformation
                picture = picture.scaledToWidth(_WIDEST, smooth)
            self.picture.setPixmap(picture)
        self.picture.setVisible(not self.picture.pixmap().isNull())


class KeepModel(Column):
    """Keeping the present model in the library."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self.keeper: ModelKeeper = panel.session.keeper
        self.words = self.add(text())
        self.name = QLineEdit()
        self.name.setPlaceholderText("name")
        self.name.setMaxLength(40)
        self.name.setToolTip("What to call the model")
        self.description = QLineEdit()
        self.description.setPlaceholderText("what to remember of it: cells, microscope, who")
        self.description.setMaxLength(300)
        self.description.setToolTip("Shown when you choose what to start from")
        self.add(self.name)
        self.add(self.description)
        self.save = button(
            "Keep the model", "Keep the model in use for later movies", self.keep, icon="models"
        )
        self.take = button(
            "Add a file…", "Take a model file that somebody shared into the library",
            self.ask_import, icon="open",
        )  # fmt: skip
        self.add(row(self.save, self.take))
        self.work = self.add(Work(panel, JOB))
        self.problem = self.add(text())
        panel.listen(self.keeper.changed, self.refresh)
        self.refresh()

    def keep(self) -> None:
        """Keep the present model."""
        name = self.name.text() or self.name.placeholderText()
        if self.keeper.keep(name, self.description.text()):
            self.name.clear()
            self.description.clear()

    def ask_import(self) -> None:
        """Ask for a model file."""
        name, _ = QFileDialog.getOpenFileName(self, "Add a model to the library", "", _MODELS)
        if name:
            self.keeper.import_file(Path(name))

    def refresh(self) -> None:
        """Say what can be kept."""
        keeper = self.keeper
        why_not = keeper.why_not
        self.words.setText(
            why_not or "Keep what was learned, to start from it with similar movies later."
        )
        ready = not why_not and not keeper.busy
        for widget in (self.save, self.name, self.description):
            widget.setEnabled(ready)
        self.name.setPlaceholderText(keeper.suggested_name)
        told = keeper.problem if keeper.problem != why_not else ""
        self.problem.setText(f"✕ {told}" if told else "")
        self.problem.setVisible(bool(told))
