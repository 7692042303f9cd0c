"""A part of the Train panel: what training starts from."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QComboBox, QFileDialog, QWidget

from bridgetrack.session.training import MOVIES, PRESENT, STRATEGIES, StartChoice
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import Column, button, heading, row, text

_PROJECTS = "Bridgetrack project (*.json *.bridgetrack);;All files (*)"


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
        self.movies = self.add(self._movies())
        self.use = button(
            "Use without training", "Track with this model as it is", self.starts.use, icon="go"
        )
        self.add(self.use)
        self.problem = self.add(text())
        panel.listen(self.starts.changed, self.refresh)
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

    def _on_choice(self, place: int) -> None:
        self.starts.choose(str(self.choice.itemData(place)))

    def _on_strategy(self, place: int) -> None:
        self.starts.use_strategy(list(STRATEGIES)[place])

    def ask_movies(self) -> None:
        """Ask for project files."""
        names, _ = QFileDialog.getOpenFileNames(self, "Earlier movies", "", _PROJECTS)
        if names:
            self.starts.add_movies([Path(name) for name in names])

    def refresh(self) -> None:
        """Show what there is."""
        chosen = self.starts
        starts, start = chosen.starts, chosen.start
        wanted = [(s.title, s.key) for s in starts]
        places = range(self.choice.count())
        if wanted != [(self.choice.itemText(k), self.choice.itemData(k)) for k in places]:
            self.choice.clear()
            for place, each in enumerate(starts):
                self.choice.addItem(each.title, each.key)
                self.choice.setItemData(place, each.words, Qt.ItemDataRole.ToolTipRole)
        self.choice.setCurrentIndex([s.key for s in starts].index(start.key))
        self.words.setText(start.words)
        self.movies.setVisible(start.key == MOVIES)
        self.clear.setEnabled(bool(chosen.movies))
        self.strategy.setCurrentIndex(list(STRATEGIES).index(chosen.strategy))
        self.use.setVisible(start.key not in (MOVIES, PRESENT))
        self.problem.setText(f"✕ {chosen.problem}" if chosen.problem else "")
        self.problem.setVisible(bool(chosen.problem))
