"""Widgets put together: columns, rows, buttons, tables and icons that all look alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fonticon_mdi7 import MDI7
from napari.utils.theme import get_theme
from qtpy.QtCore import Qt
from qtpy.QtGui import QIcon, QKeySequence
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible, fonticon

from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.shortcuts import SHORTCUTS, Shortcut

AnyLayout = TypeVar("AnyLayout", bound=QLayout)
AnyWidget = TypeVar("AnyWidget", bound=QWidget)

SPACE = 6
"""Pixels between widgets."""

_ICON = "bridgetrack_icon"
"""Property of a button that names its icon; `dress_icons` paints it."""


class Column(QWidget):
    """Widgets one below the other."""

    def __init__(self) -> None:
        super().__init__()
        self.column = _plain(QVBoxLayout(self))

    def add(self, widget: AnyWidget) -> AnyWidget:
        """Put a widget below the others; gives it back."""
        self.column.addWidget(widget)
        return widget


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
    """Make a table a list of rows to click; a column of width 0 takes the room that is left."""
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


_KEYS = {"Return": "Enter", "Esc": "Escape", "Del": "Delete"}
"""Names of keys in Qt and, where they differ, in napari."""


class KeyedTable(QTableWidget):
    """A list in which keys do what they do on the image; Up and Down are clicks on other rows."""

    def __init__(self, annotator: Annotator) -> None:
        super().__init__()
        self._annotator = annotator
        self._at = -1  # where somebody was last

    def mark(self, k: int) -> None:
        """Highlight a row; none where it is negative."""
        if k < 0:
            self.setCurrentCell(-1, -1)
            self.clearSelection()
        else:
            self._at = k
            self.selectRow(k)

    def step(self, by: int) -> None:
        """As a click on the next (1) or the previous (-1) row."""
        if self.rowCount():
            at, marked = self._at, self.currentRow()
            # What was answered may have left the list; then the next one stands in its place.
            k = marked + by if marked >= 0 else at + (by if at < 0 or by < 0 else 0)
            self._at = min(max(k, 0), self.rowCount() - 1)
            self.selectRow(self._at)
            self.cellClicked.emit(self._at, 0)

    def keyPressEvent(self, event: Any) -> None:  # noqa: N802
        """Do what the key does on the image; keys without a meaning there are the table's own."""
        name = QKeySequence(event.keyCombination()).toString()
        parts = [_KEYS.get(p, p) for p in name.replace("Ctrl", "Control").split("+")]
        known = next((s for s in SHORTCUTS if "-".join(parts) in s.keys), None)
        if known is None:
            super().keyPressEvent(event)
        elif known.name in ("next", "previous"):
            self.step(1 if known.name == "next" else -1)
        else:
            known.act(self._annotator)


def text(words: str = "", *, style: str = "", lines: int = 0) -> QLabel:
    """A paragraph that wraps, in a style of Qt's.

    It has room for some `lines` at least, so that what is below it stays where it is.
    """
    label = QLabel(words)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(wrapping())
    label.setMinimumWidth(80)
    if lines:
        label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        style += f" min-height: {1.05 * lines + 0.6:.2f}em;"
    if style:
        label.setStyleSheet(f"QLabel {{ {style} }}")
    return label


DIM = "font-size: 11px;"
"""The style of words that matter less."""


def wrapping() -> QSizePolicy:
    """As wide as there is room, and as high as the words need at that width."""
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    return policy


def heading(words: str, *, lines: int = 0) -> QLabel:
    """The title of a group; with room for some `lines`, words that change."""
    return text(words, style="font-weight: bold; padding-top: 4px;", lines=lines)


def button(
    words: str,
    tip: str,
    act: Callable[[], None],
    *,
    key: Shortcut | None = None,
    checkable: bool = False,
    icon: str = "",
    hot: str = "",
) -> QPushButton:
    """A button with its tooltip, and its icon and its key where it has one.

    `key` works on the image, `hot` wherever the button is in view.
    """
    shown = f"{words}  [{_shown(key.keys[0])}]" if key is not None else words
    made = QPushButton(shown)
    made.setToolTip(f"{tip} (key {_shown(key.keys[0])})" if key is not None else tip)
    made.setCheckable(checkable)
    if hot:
        made.setShortcut(hot)
        made.setToolTip(f"{tip} ({hot})")
    made.setProperty(_ICON, icon)
    made.clicked.connect(lambda _=False: act())
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made


def _shown(key: str) -> str:
    return {"Escape": "Esc", "Backspace": "Bksp"}.get(key, key)


class Section(QCollapsible):
    """A section that is closed until somebody opens it, and then as high as what is in it."""

    def __init__(self, title: str) -> None:
        super().__init__(title, expandedIcon="▾", collapsedIcon="▸")
        self.layout().setContentsMargins(0, 0, 0, 0)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.setDuration(0)
        self.toggled.connect(self._limit)
        self.collapse(animate=False)

    def eventFilter(self, _: Any, __: Any) -> bool:  # noqa: N802
        """Leave the height to the layout: fixed once, it would squash what grows later."""
        return False

    def _limit(self, shown: bool) -> None:
        self.content().setMaximumHeight(_NO_LIMIT if shown else 0)


_NO_LIMIT = 16_777_215
"""The largest height of a widget in Qt."""


def folded(title: str, *widgets: QWidget) -> Section:
    """Widgets in a section of their own."""
    section = Section(title)
    for widget in widgets:
        section.addWidget(widget)
    return section


# ---------------------------------------------------------------------- icons

GLYPHS = {
    "cells": "circle_multiple_outline",
    "annotate": "cursor_default_click_outline",
    "train": "school_outline",
    "track": "source_branch",
    "suggest": "lightbulb_on_outline",
    "models": "library_outline",
    "yes": "check_bold",
    "no": "close_thick",
    "unsure": "help",
    "past": "history",
    "break": "link_off",
    "undo": "undo",
    "redo": "redo",
    "delete": "delete_outline",
    "go": "play",
    "stop": "stop",
    "next": "skip_next",
    "open": "folder_open_outline",
    "save": "content_save_outline",
    "restart": "restart",
    "export": "export",
    "sample": "flask_outline",
    "download": "download",
    "find": "magnify",
}
"""Names in Material Design Icons by what they stand for here."""


def dress_icons(widget: QWidget, viewer: Any) -> None:
    """Paint the icons of all buttons in a widget in the colour of the viewer's theme."""
    colour = get_theme(viewer.theme).text.as_hex()
    for button in widget.findChildren(QPushButton):
        name = button.property(_ICON)
        if name:
            button.setIcon(icon(str(name), colour))


def icon(name: str, colour: str) -> QIcon:
    """An icon of Material Design Icons."""
    faint = {"disabled": {"color": colour, "opacity": 0.35}}
    return fonticon.icon(getattr(MDI7, GLYPHS[name]), color=colour, states=faint)


_UNITS = {"um2": "µm²", "um3": "µm³", "um": "µm", "/": "/\N{WORD JOINER}"}
"""How units of tables are shown; a line does not break within one."""


def column_words(column: str) -> str:
    """The name of a column of a table in words."""
    name, bracket, unit = column.partition(" [")
    for plain, shown in _UNITS.items():
        unit = unit.replace(plain, shown)
    return name.replace("_", " ") + bracket + unit
