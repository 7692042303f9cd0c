"""Widgets put together: columns, rows, buttons, tables and icons that all look alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fonticon_mdi7 import MDI7
from napari.utils.theme import get_theme
from qtpy.QtCore import Qt
from qtpy.QtGui import QIcon
from qtpy.QtWidgets import (
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible, fonticon

from bridgetrack.ui.shortcuts import Shortcut

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


def grid(widgets: Iterable[QWidget], columns: int) -> QWidget:
    """Widgets in rows of so many."""
    box = QWidget()
    cells = _plain(QGridLayout(box))
    for k, widget in enumerate(widgets):
        cells.addWidget(widget, k // columns, k % columns)
    return box


def _plain(layout: AnyLayout) -> AnyLayout:
    """Without a rim, and with the usual space between its parts."""
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(SPACE)
    return layout


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
    name = _shown(key.keys[0]) if key is not None and key.keys else ""
    made = QPushButton(f"{words}  [{name}]" if name else words)
    made.setToolTip(f"{tip} (key {name})" if name else tip)
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
    "break": "link_off",
    "undo": "undo",
    "redo": "redo",
    "delete": "delete_outline",
    "go": "play",
    "stop": "stop",
    "open": "folder_open_outline",
    "save": "content_save_outline",
    "restart": "restart",
    "export": "export",
    "sample": "flask_outline",
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
