"""The panel Tracks: the table, family trees, plots and cell cycles, with one choice of tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import QSignalBlocker, QSize
from qtpy.QtGui import QTextOption
from qtpy.QtWidgets import QComboBox, QFileDialog, QTabWidget, QTextBrowser, QWidget

from bridgetrack.errors import OutputError
from bridgetrack.files import staged, write_text
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.results import TrackNumbers, numbers_of
from bridgetrack.tracks.cycles import CellCycles, cell_cycles
from bridgetrack.tracks.trees import save_lineages
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.plots import NumberPlot, TreePlot, save_plot
from bridgetrack.ui.track_list import TrackList
from bridgetrack.ui.widgets import Column, button, column_words, row, text

NAME = "Tracks, trees and plots"
"""Of the panel in the window."""

_FILES = (
    ("tracks.csv", "Table (*.csv)"),
    ("families.svg", "Pictures (*.svg *.png *.pdf)"),
    ("plot.png", "Picture (*.png);;Table (*.csv)"),
    ("cycles.csv", "Table (*.csv);;Picture (*.png)"),
)
"""What each tab is saved as: a name, and kinds of files."""


class ExplorePanel(Panel):
    """All tracks as a table, as trees and in plots."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.numbers: TrackNumbers | None = None
        self.cycles: CellCycles | None = None
        self._looks = self.state.looks
        self.hint = self.add(text())
        self.tabs = QTabWidget()
        self.column.addWidget(self.tabs, 1)
        self.list, self.tree = TrackList(), TreePlot()
        self.list.picked.connect(self._on_listed)
        self.tree.picked.connect(self._on_branch)
        self.tabs.addTab(self.list, "Table")
        self.tabs.addTab(self.tree, "Family trees")
        self.tabs.addTab(self._plots(), "Plots")
        self.tabs.addTab(self._cycles(), "Cell cycle")
        save = button("Save…", "What is in view as a picture, or its numbers as a table", self._ask)
        self.tabs.setCornerWidget(save)
        self.tabs.currentChanged.connect(lambda _: self._show())
        self.listen(self._looks.chosen_changed, self._on_chosen)
        self.listen(self._looks.colour_changed, self._show)
        self.listen(self.state.viewer.dims.events.current_step, self._on_frame)
        self.listen(self.state.annotator.clicked, self._on_cell)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide and low, for below the image."""
        return QSize(760, 330)

    # ------------------------------------------------------------------ tabs

    def _plots(self) -> Column:
        tab = Column()
        self.feature = tab.add(QComboBox())
        self.feature.setToolTip(
            "Over time, for the selected tracks, or for all if none is selected"
        )
        self.feature.currentIndexChanged.connect(lambda _: self._show())
        self.plot = NumberPlot()
        tab.column.addWidget(self.plot, 1)
        return tab

    def _cycles(self) -> QWidget:
        self.cycle_words = QTextBrowser()
        self.cycle_words.setWordWrapMode(QTextOption.WrapMode.WordWrap)  # no broken words
        self.survival = NumberPlot()
        return row(self.cycle_words, self.survival)

    # ------------------------------------------------------------------ state

    def _refresh(self) -> None:
        tracking = self.session.tracking
        if tracking is None:
            self.session.cancel("numbers")
            self._take(None)
        elif self.numbers is None or self.numbers.tracks is not tracking.tracks:
            tracks = tracking.tracks
            self.session.run("numbers", lambda: numbers_of(tracks), self._take)

    def _take(self, numbers: TrackNumbers | None) -> None:
        self.numbers, self.cycles = numbers, None
        self.hint.setVisible(numbers is None)
        self.tabs.setEnabled(numbers is not None)
        if numbers is None:
            self.hint.setText("There are no tracks yet: choose a movie with its cells first.")
            self.list.show_table(self.list.listed.table.head(0))
            self.tree.show_trees(None, None)
            self.plot.clear()
            self.survival.clear()
            return
        before = self.feature.currentData()
        with QSignalBlocker(self.feature):
            self.feature.clear()
            for name, words in numbers.features.items():
                self.feature.addItem(column_words(words), name)
            self.feature.setCurrentIndex(max(self.feature.findData(before or "area"), 0))
        self.list.show_table(numbers.table)
        self._show()

    def _show(self) -> None:
        """Bring the tab in view up to date."""
        if self.numbers is not None:
            show = (self._show_list, self._show_trees, self._show_plot, self._show_cycles)
            show[self.tabs.currentIndex()](self.numbers)

    def _show_list(self, _: TrackNumbers) -> None:
        self.list.mark(self._looks.chosen)

    def _show_trees(self, numbers: TrackNumbers) -> None:
        self.tree.show_trees(numbers.trees, self._looks.colouring(numbers.tracks))
        self.tree.mark(self._looks.chosen, self.state.canvas.frame)

    def _plotted(self, numbers: TrackNumbers) -> tuple[str, pd.DataFrame | None]:
        """The feature of the plot, and its values over time where tracks are chosen."""
        feature = str(self.feature.currentData())
        if not self._looks.chosen or feature.startswith("track:"):
            return feature, None
        return feature, numbers.curves(feature, self._looks.chosen)

    def _show_plot(self, numbers: TrackNumbers) -> None:
        (feature, curves), chosen = self._plotted(numbers), self._looks.chosen
        words = column_words(numbers.features.get(feature, ""))
        if curves is None:
            self.plot.show_bars(numbers.distribution(feature, chosen))
            what = "tracks" if feature.startswith("track:") else "cells"
            self.plot.name_axes(words, f"number of {what}")
            return
        time, values = (curves[c].to_numpy(np.float64) for c in ("time", feature))
        self.plot.show_curves(time, values, curves["track_id"].to_numpy(), chosen)
        self.plot.name_axes(column_words(numbers.features["time"]), words)

    def _show_cycles(self, numbers: TrackNumbers) -> None:
        if self.cycles is None:
            self.cycles = cell_cycles(numbers.tracks)
        self.survival.show_survival(self.cycles)
        unit = "h" if self.cycles.unit == "min" else "frames"
        self.survival.name_axes(f"time since birth, {unit}", "share not divided")
        table = self.cycles.generations.rename(columns=column_words).to_html(
            index=False, na_rep="", float_format="{:.4g}".format, border=0
        )
        table = table.replace("<table", '<table cellpadding="4"')
        table = table.replace("<td>", '<td align="right">')
        self.cycle_words.setHtml(f"<p>{self.cycles.words}</p>{table}")

    # ------------------------------------------------------------------ the choice

    def _on_listed(self, tracks: list[int]) -> None:
        self._looks.choose(tracks)
        if len(tracks) == 1:
            self._go(tracks[0], self.state.canvas.frame)

    def _on_branch(self, track: int, frame: int) -> None:
        self._looks.choose([track])
        self._go(track, frame)

    def _go(self, track: int, frame: int) -> None:
        """Bring a track into view, at this frame where it is seen then."""
        found = None if self.numbers is None else self.numbers.sight(track, frame)
        annotator = self.state.annotator
        if found is None or annotator.finder is None:
            return
        row, _ = found
        if annotator.picking.mode == Mode.REVIEW:
            annotator.select(row)
        else:
            annotator.go_to(annotator.finder.ref(row))

    def _on_chosen(self) -> None:
        self.list.mark(self._looks.chosen)
        if self.tabs.currentIndex() == 1:
            self.tree.mark(self._looks.chosen, self.state.canvas.frame)
            self.tree.show_tracks(self._looks.chosen)
        elif self.tabs.currentIndex() == 2:
            self._show()

    def _on_frame(self, _: Any = None) -> None:
        if self.numbers is not None and self.isVisible() and self.tabs.currentIndex() == 1:
            self.tree.mark(self._looks.chosen, self.state.canvas.frame)

    def _on_cell(self, row: int) -> None:
        """A click on a cell chooses its track, whatever else the click does."""
        track = None if self.numbers is None else self.numbers.track_of(row)
        if track is not None and self.isVisible():
            self._looks.choose([track])

    # ------------------------------------------------------------------ files

    def _ask(self) -> None:
        if self.numbers is None:
            return
        name, kinds = _FILES[self.tabs.currentIndex()]
        found, _ = QFileDialog.getSaveFileName(self, "Save", self.beside_movie(name), kinds)
        if found:
            self.save(Path(found))

    def save(self, path: Path) -> None:
        """Write what the tab in view shows: trees, a plot as .png, or its numbers as .csv."""
        numbers, tab = self.numbers, self.tabs.currentIndex()
        if numbers is None:
            return
        if tab == 1:
            self._save_trees(path, numbers)
            return
        with self.session.telling():
            if path.suffix.lower() == ".csv":
                words = self._table(numbers, tab).to_csv(index=False, lineterminator="\n")
                write_text(path, words, "the table")
            elif path.suffix.lower() == ".png":
                with staged(path, "the plot") as spare:
                    save_plot(self.survival if tab == 3 else self.plot, spare)
            else:
                raise OutputError(f"{path}: plots are written as .png or .csv")
            self._saved(path)

    def _table(self, numbers: TrackNumbers, tab: int) -> pd.DataFrame:
        """The numbers that a tab shows."""
        if tab == 0:
            return numbers.table
        if tab == 3 and self.cycles is not None:
            return self.cycles.cycles
        feature, curves = self._plotted(numbers)
        if curves is not None:
            return curves
        return numbers.distribution(feature, self._looks.chosen).table

    def _save_trees(self, path: Path, numbers: TrackNumbers) -> None:
        """Write the families of the chosen tracks, or all, in the background."""
        doer, chosen, colour = self.state.elsewhere, self._looks.chosen, self._looks.colour
        if doer.busy("trees"):
            words = f"Another file is still being written; save {path.name} when that is done."
            self.session.message.emit("warning", words)
            return
        families = numbers.families(chosen) if chosen else None

        def work() -> Steps[None]:
            yield Progress("Drawing family trees", 0.0)
            save_lineages(numbers.tracks, path, families=families, colour=colour)

        doer.run("trees", work, lambda _: self._saved(path), what="Drawing family trees")

    def _saved(self, path: Path) -> None:
        self.session.message.emit("info", f"Written: {path}")
