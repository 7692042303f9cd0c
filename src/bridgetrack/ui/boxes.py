"""Widgets put together: columns, rows, grids, forms and tables that all look alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from qtpy.QtWidgets import (
    QAbstractItemView,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLayout,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)

SPACE = 6

AnyLayout = TypeVar("AnyLayout", bound=QLayout)


def column_in(box: QWidget) -> QVBoxLayout:
    """A column that fills a widget."""
    return _plain(QVBoxLayout(box))


def form_in(box: QWidget) -> QFormLayout:
    """Words and widgets side by side, line by line, that fill a widget."""
    return _plain(QFormLayout(box))


def row(*widgets: QWidget) -> QWidget:
    """Widgets side by side, of equal width."""
    box = QWidget()
    line = _plain(QHBoxLayout(box))
    for widget in widgets:
        line.addWidget(widget, 1)
    return box


def grid(widgets: Iterable[QWidget], columns: int, last: int = 1) -> QWidget:
    """Widgets in rows of so many, the last of them so many columns wide."""
    box = QWidget()
    cells = _plain(QGridLayout(box))
    known = list(widgets)
    for k, widget in enumerate(known, 1):
        wide = last if k == len(known) else 1
        cells.addWidget(widget, (k - 1) // columns, (k - 1) % columns, 1, wide)
    return box


def _plain(layout: AnyLayout) -> AnyLayout:
    """Without a rim, and with the usual space between its parts."""
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(SPACE)
    return layout


def dress_table(
    table: QTableWidget,
    headers: Sequence[str],
    widths: Sequence[int],
    tip: str,
    clicked: Callable[[int, int], None],
) -> None:
    """Make a table a list of rows to click.

    Parameters
    ----------
    table
        The table.
    headers
        Titles of the columns.
    widths
        Their widths in pixels; a column of width 0 takes what is left.
    tip
        What a click does.
    clicked
        Called with row and column of a click.
    """
    table.setColumnCount(len(headers))
    table.setHorizontalHeaderLabels(list(headers))
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(24)
    header = table.horizontalHeader()
    for column, width in enumerate(widths):
        # Fixed, because fitting them to the contents again at every cell is slow.
        modes = QHeaderView.ResizeMode
        header.setSectionResizeMode(column, modes.Fixed if width else modes.Stretch)
        if width:
            header.resizeSection(column, width)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setToolTip(tip)
    table.cellClicked.connect(clicked)
