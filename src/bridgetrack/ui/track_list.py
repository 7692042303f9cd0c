"""The table of tracks, sorted by a column; of thousands only what is in view is made."""

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

from bridgetrack.ui.widgets import column_words

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_FIRST = (
    "track_id", "lineage_id", "generation", "certainty", "verified", "divisions", "ends_in",
)  # fmt: skip
_HEADS = {"track_id": "track", "lineage_id": "family", "parent_id": "comes from"}


class TrackModel(QAbstractTableModel):
    """Rows of a table of tracks, in the order that people want."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: tuple[str, ...] = ("track",)
        self.table = pd.DataFrame({"track_id": np.zeros(0, np.int64)})
        self.rows = np.zeros(0, np.int64)
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
        self.heads = tuple(
            _HEADS.get(name, column_words(name).replace(" [", "\n[")) for name in (*first, *more)
        )
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
        if 0 <= column < len(self.table.columns):
            self.layoutAboutToBeChanged.emit()
            self._sorted = str(self.table.columns[column]), order == Qt.SortOrder.AscendingOrder
            self._arrange()
            self.layoutChanged.emit()

    def rowCount(self, _: Any = None) -> int:  # noqa: N802
        """Tracks."""
        return len(self.rows)

    def columnCount(self, _: Any = None) -> int:  # noqa: N802
        """Columns."""
        return len(self.heads)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A value of a track in words, and its place in the cell: numbers stand on the right."""
        column = index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if self.table.dtypes.iloc[column].kind in "iufb" else None
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        value = self.table.iat[self.rows[index.row()], column]
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
    """The table. Emits `picked` with tracks that a person chose."""

    picked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.listed = TrackModel()
        self._marked: tuple[int, ...] = ()
        self.setModel(self.listed)
        self.setSortingEnabled(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setToolTip("Click a track to go there, several to compare them; a column sorts")
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(22)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMinimumHeight(90)
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self.listed.layoutChanged.connect(lambda: self.mark(self._marked))

    def show_table(self, table: pd.DataFrame) -> None:
        """Show another table; order and choice stay."""
        heads = self.listed.heads
        with QSignalBlocker(self.selectionModel()):
            self.listed.show(table)
        if self.listed.heads != heads:
            self.resizeColumnsToContents()
        self.mark(self._marked)

    def mark(self, tracks: Iterable[int]) -> None:
        """Select the rows of some tracks and scroll to the first; nobody is told."""
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
