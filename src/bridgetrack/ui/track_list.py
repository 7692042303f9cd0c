"""The table of tracks: sorted by a click on a column, thousands of rows."""

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
    Qt,
    Signal,
)
from qtpy.QtWidgets import QAbstractItemView, QTableView

from bridgetrack.ui.widgets import Column, column_words

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_FIRST = (
    "track_id", "lineage_id", "generation", "certainty", "verified", "divisions", "ends_in",
)  # fmt: skip
_HEADS = {"track_id": "track", "lineage_id": "family", "parent_id": "comes from"}


class TrackModel(QAbstractTableModel):
    """Rows of a table of tracks, in the order that people want."""

    def __init__(self) -> None:
        super().__init__()
        self.table = pd.DataFrame({"track_id": np.zeros(0, np.int64)})
        self.rows = np.zeros(0, np.int64)
        self._values: list[list[Any]] = [[]]
        self._sorted: tuple[str, bool] = ("track_id", True)

    @property
    def tracks(self) -> list[int]:
        """Tracks by row in view."""
        return [int(t) for t in self.table["track_id"].to_numpy()[self.rows]]

    def show(self, table: pd.DataFrame) -> None:
        """Show another table; the order stays."""
        self.beginResetModel()
        first = [c for c in _FIRST if c in table.columns]
        more = [c for c in table.columns if c not in (*first, "link")]
        self.table = table[[*first, *more]].reset_index(drop=True)
        self._values = [self.table[c].tolist() for c in self.table.columns]
        self._arrange()
        self.endResetModel()

    def _arrange(self) -> None:
        name, ascending = self._sorted
        if name in self.table.columns:
            values = self.table[name]
            order = values.sort_values(ascending=ascending, kind="stable", na_position="last")
            self.rows = order.index.to_numpy()
        else:
            self.rows = np.arange(len(self.table))

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; what has no value comes last."""
        if not 0 <= column < len(self.table.columns):
            return
        self.layoutAboutToBeChanged.emit()
        self._sorted = str(self.table.columns[column]), order == Qt.SortOrder.AscendingOrder
        self._arrange()
        self.layoutChanged.emit()

    def rowCount(self, _: Any = None) -> int:  # noqa: N802
        """Rows in view."""
        return len(self.rows)

    def columnCount(self, _: Any = None) -> int:  # noqa: N802
        """Columns."""
        return len(self.table.columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Words and their place in a cell."""
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _shown(self._values[index.column()][self.rows[index.row()]])
        if role == Qt.ItemDataRole.TextAlignmentRole:
            kind = self.table.dtypes.iloc[index.column()].kind
            return _RIGHT if kind in "iufb" else _LEFT
        return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        if role != Qt.ItemDataRole.DisplayRole or orientation != Qt.Orientation.Horizontal:
            return None
        name = str(self.table.columns[section])
        return _HEADS.get(name, column_words(name).replace(" [", "\n["))


class TrackList(Column):
    """The table. Emits `picked` with tracks that a person chose."""

    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.model = TrackModel()
        self.view = QTableView()
        self.view.setModel(self.model)
        self.view.setSortingEnabled(True)
        self.view.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.verticalHeader().hide()
        self.view.verticalHeader().setDefaultSectionSize(22)
        self.view.setMinimumHeight(90)
        self.view.setToolTip("Click a row to go to the track; several with Ctrl or Shift")
        self.view.selectionModel().selectionChanged.connect(self._on_selected)
        self.model.layoutChanged.connect(lambda: self.mark(self._marked))
        self.column.addWidget(self.view, 1)
        self._marked: tuple[int, ...] = ()

    def show_table(self, table: pd.DataFrame) -> None:
        """Show another table; order and choice stay."""
        fresh = list(self.model.table.columns) != list(table.columns)
        with QSignalBlocker(self.view.selectionModel()):
            self.model.show(table)
        if fresh:
            self.view.resizeColumnsToContents()
        self.mark(self._marked)

    def mark(self, tracks: Iterable[int]) -> None:
        """Select the rows of some tracks and scroll to the first; nobody is told."""
        self._marked = tuple(tracks)
        place = {track: k for k, track in enumerate(self.model.tracks)}
        rows = [place[t] for t in self._marked if t in place]
        last, model = self.model.columnCount() - 1, self.view.selectionModel()
        found = QItemSelection()
        for k in rows:
            found.select(self.model.index(k, 0), self.model.index(k, last))
        flags = QItemSelectionModel.SelectionFlag
        with QSignalBlocker(model):
            model.select(found, flags.ClearAndSelect)
            if rows:
                model.setCurrentIndex(self.model.index(rows[0], 0), flags.NoUpdate)
        self.view.viewport().update()
        if rows:
            self.view.scrollTo(self.model.index(rows[0], 0))

    def _on_selected(self, *_: Any) -> None:
        tracks = self.model.tracks
        chosen = [tracks[i.row()] for i in self.view.selectionModel().selectedRows()]
        self._marked = tuple(chosen)
        self.picked.emit(chosen)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)
