"""The panel Tracks: the table, lineage trees, plots and cell cycles, with a common selection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import QTextOption
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDockWidget,
    QTableView,
    QTabWidget,
    QTextBrowser,
    QWidget,
)

from bridgetrack.tracks.cycles import CellCycles, cell_cycles
from bridgetrack.tracks.numbers import TrackNumbers, column_words, numbers_of
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.plots import NumberPlot, TreePlot
from bridgetrack.ui.widgets import Column, row, text

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_FIRST = (
    "track_id", "lineage_id", "generation", "certainty", "verified", "divisions", "ends_in",
)  # fmt: skip
_HEADS = {"track_id": "track", "lineage_id": "lineage", "parent_id": "comes from"}


class TrackModel(QAbstractTableModel):
    """Rows of a table of tracks, in a chosen order."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: tuple[str, ...] = ("track",)
        self.table = pd.DataFrame({"track_id": np.zeros(0, np.int64)})
        self._sorted: tuple[str, bool] = ("track_id", True)

    @property
    def tracks(self) -> list[int]:
        """Tracks by row in view."""
        return [int(t) for t in self.table["track_id"]]

    def show(self, table: pd.DataFrame) -> None:
        """Show another table in the same order."""
        self.beginResetModel()
        first = [c for c in _FIRST if c in table.columns]
        more = [c for c in table.columns if c not in (*first, "link")]
        self.table = table[[*first, *more]]
        self.heads = tuple(
            _HEADS.get(name, column_words(name).replace(" [", "\n[")) for name in (*first, *more)
        )
        self._arrange()
        self.endResetModel()

    def _arrange(self) -> None:
        name, ascending = self._sorted
        if name in self.table.columns:
            self.table = self.table.sort_values(name, ascending=ascending, kind="stable")

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; missing values come last."""
        if 0 <= column < len(self.table.columns):
            self.layoutAboutToBeChanged.emit()
            self._sorted = str(self.table.columns[column]), order == Qt.SortOrder.AscendingOrder
            self._arrange()
            self.layoutChanged.emit()

    def rowCount(self, _: Any = None) -> int:  # noqa: N802
        """Number of tracks."""
        return len(self.table)

    def columnCount(self, _: Any = None) -> int:  # noqa: N802
        """Number of columns."""
        return len(self.heads)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A value of a track in words, or its alignment: numbers are on the right."""
        column = index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self.table.dtypes.iloc[column].kind in "iufb" else None
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        value = self.table.iat[index.row(), column]
        if isinstance(value, bool | np.bool_):
            return "yes" if value else "no"
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.4g}"
        return str(value)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        shown = role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal
        return self.heads[section] if shown else None


class TrackList(QTableView):
    """The table. Emits `picked` with the tracks that the user chose."""

    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.listed = TrackModel()
        self._marked: tuple[int, ...] = ()
        self.setModel(self.listed)
        self.setSortingEnabled(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setToolTip(
            "Click a track to go to it; select several to compare them. Click a column header to "
            "sort"
        )
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(22)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMinimumHeight(90)
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self.listed.layoutChanged.connect(lambda: self.mark(self._marked))

    def show_table(self, table: pd.DataFrame) -> None:
        """Show another table; order and selection are kept."""
        heads = self.listed.heads
        with QSignalBlocker(self.selectionModel()):
            self.listed.show(table)
        if self.listed.heads != heads:
            self.resizeColumnsToContents()
        self.mark(self._marked)

    def mark(self, tracks: Iterable[int]) -> None:
        """Select the rows of some tracks and scroll to the first; no signal is emitted."""
        self._marked = tuple(tracks)
        place = {track: k for k, track in enumerate(self.listed.tracks)}
        rows = [place[t] for t in self._marked if t in place]
        last, model = self.listed.columnCount() - 1, self.selectionModel()
        found = QItemSelection()
        for k in rows:
            found.select(self.listed.index(k, 0), self.listed.index(k, last))
        flags = QItemSelectionModel.SelectionFlag
        with QSignalBlocker(model):
            model.select(found, flags.ClearAndSelect)
            if rows:
                model.setCurrentIndex(self.listed.index(rows[0], 0), flags.NoUpdate)
        self.viewport().update()
        if rows:
            self.scrollTo(self.listed.index(rows[0], 0))

    def _on_selected(self, *_: Any) -> None:
        tracks = self.listed.tracks
        chosen = [tracks[i.row()] for i in self.selectionModel().selectedRows()]
        self._marked = tuple(chosen)
        self.picked.emit(chosen)


NAME = "Tracks, trees and plots"
"""Title of the panel in the window."""


class ExplorePanel(Panel):
    """All tracks as a table, as trees and in plots."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.numbers: TrackNumbers | None = None
        self.cycles: CellCycles | None = None
        self._hidden = False  # while the tracks are checked
        self._looks = self.state.looks
        self.hint = self.add(text())
        self.tabs = QTabWidget()
        self.column.addWidget(self.tabs, 1)
        self.list, self.tree = TrackList(), TreePlot()
        self.list.picked.connect(self._on_listed)
        self.tree.picked.connect(self._on_branch)
        self.tabs.addTab(self.list, "Table")
        self.tabs.addTab(self.tree, "Lineage trees")
        self.tabs.addTab(self._plots(), "Plots")
        self.tabs.addTab(self._cycles(), "Cell cycle")
        self.tabs.currentChanged.connect(lambda _: self._show())
        self.listen(self._looks.chosen_changed, self._on_chosen)
        self.listen(self._looks.colour_changed, self._show)
        self.listen(self.state.viewer.dims.events.current_step, self._on_frame)
        self.listen(self.state.annotator.clicked, self._on_cell)
        self.listen(self.session.questions.check.changed, self._on_check)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide and low, for below the image."""
        return QSize(760, 270)

    def _on_check(self) -> None:
        """Hide it while the tracks are checked: certainties would influence the user."""
        dock, running = self.parentWidget(), self.session.questions.check.running
        while dock is not None and not isinstance(dock, QDockWidget):
            dock = dock.parentWidget()
        if dock is not None and running != self._hidden and (dock.isVisible() or self._hidden):
            self._hidden = running
            dock.setVisible(not running)

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
        return row(self.cycle_words, self.survival, wide=self.cycle_words)

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
        numbers, looks, tab = self.numbers, self._looks, self.tabs.currentIndex()
        if numbers is None:
            return
        if tab == 0:
            self.list.mark(looks.chosen)
        elif tab == 1:
            self.tree.show_trees(numbers.trees, looks.colouring(numbers.tracks))
            self.tree.mark(looks.chosen, self.state.canvas.frame)
        elif tab == 2:
            self._show_plot(numbers)
        else:
            self._show_cycles(numbers)

    def _show_plot(self, numbers: TrackNumbers) -> None:
        feature, chosen = str(self.feature.currentData()), self._looks.chosen
        words, of_tracks = column_words(numbers.features[feature]), feature.startswith("track:")
        if of_tracks or not chosen:
            self.plot.show_bars(*numbers.distribution(feature, chosen))
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
        self.survival.name_axes(f"time since birth, {unit}", "fraction not yet divided")
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
        """Bring a track into view, in this frame if it is seen then."""
        row = None if self.numbers is None else self.numbers.sight(track, frame)
        annotator = self.state.annotator
        if row is None or annotator.finder is None:
            return
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
