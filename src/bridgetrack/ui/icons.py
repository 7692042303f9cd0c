"""Icons of buttons, in the colours of the viewer's theme."""

from __future__ import annotations

from typing import Any

from qtpy.QtGui import QIcon
from qtpy.QtWidgets import QPushButton, QWidget

_PROPERTY = "bridgetrack_icon"

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


def mark(button: QPushButton, name: str) -> None:
    """Note which icon a button has; `dress` paints it."""
    button.setProperty(_PROPERTY, name)


def dress(widget: QWidget, viewer: Any) -> None:
    """Paint the icons of all buttons in a widget in the colour of the viewer's theme."""
    from napari.utils.theme import get_theme

    colour = get_theme(viewer.theme).text.as_hex()
    for button in widget.findChildren(QPushButton):
        name = button.property(_PROPERTY)
        if name:
            button.setIcon(icon(str(name), colour))


def icon(name: str, colour: str) -> QIcon:
    """An icon; an empty one where the icon font is not installed."""
    try:
        from fonticon_mdi7 import MDI7
    except ImportError:
        return QIcon()
    from superqt import fonticon

    faint = {"disabled": {"color": colour, "opacity": 0.35}}
    return fonticon.icon(getattr(MDI7, GLYPHS[name]), color=colour, states=faint)
