"""The panel Tracks: the table, family trees, plots and cell cycles, with one choice of tracks."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import QSignalBlocker, QSize
from qtpy.QtGui import QTextOption
from qtpy.QtWidgets import QComboBox, QTabWidget, QTextBrowser, QWidget

from bridgetrack.tracks.cycles import CellCycles, cell_cycles
from bridgetrack.tracks.numbers import TrackNumbers, numbers_of
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.plots import NumberPlot, TreePlot
from bridgetrack.ui.track_list import TrackList
from bridgetrack.ui.widgets import Column, column_words, row, text

NAME = "Tracks, trees and plots"
"""Of the panel in the window."""


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
        self.tabs.currentChanged.connect(lambda _: self._show())
        self.listen(self._looks.chosen_changed, self._on_chosen)
        self.listen(self._looks.colour_changed, self._show)
        self.listen(self.state.viewer.dims.events.current_step, self._on_frame)
        self.listen(self.state.annotator.clicked, self._on_cell)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide and low, for below the image."""
        return QSize(760, 330)

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
        if self.numbers is not None:
            show = (self._show_list, self._show_trees, self._show_plot, self._show_cycles)
            show[self.tabs.currentIndex()](self.numbers)

    def _show_list(self, _: TrackNumbers) -> None:
        self.list.mark(self._looks.chosen)

    def _show_trees(self, numbers: TrackNumbers) -> None:
        self.tree.show_trees(numbers.trees, self._looks.colouring(numbers.tracks))
        self.tree.mark(self._looks.chosen, self.state.canvas.frame)

    def _show_plot(self, numbers: TrackNumbers) -> None:
        feature, chosen = str(self.feature.currentData()), self._looks.chosen
        words, of_tracks = column_words(numbers.features[feature]), feature.startswith("track:")
        if of_tracks or not chosen:
            self.plot.show_bars(numbers.distribution(feature, chosen))
            self.plot.name_axes(words, f"number of {'tracks' if of_tracks else 'cells'}")
            return
        curves = numbers.curves(feature, chosen)
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
