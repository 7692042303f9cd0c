"""Widgets put together: columns, rows, grids, forms and tables that all look alike.

Small widgets that all panels share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFormLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from bridgetrack.session.session import Session
from bridgetrack.ui import icons
from bridgetrack.ui.shortcuts import Shortcut
from bridgetrack.ui.viewer_state import ViewerState, state_of

AnyLayout = TypeVar("AnyLayout", bound=QLayout)


SPACE = 6


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


_FADE = 8000
"""Milliseconds that a message without weight stays."""


class _Links:
    """Connections of a panel, cut when its widget is gone."""

    def __init__(self, state: ViewerState) -> None:
        self._desk = state
        self._cuts: list[Callable[[], None]] = []
        state.attach()

    def add(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect and remember."""
        signal.connect(slot)
        self._cuts.append(lambda: signal.disconnect(slot))

    def cut(self) -> None:
        """Disconnect everything."""
        cuts, self._cuts = self._cuts, []
        for each in cuts:
            try:
                each()
            except (ValueError, RuntimeError, TypeError):
                continue
        self._desk.detach()


class Panel(QWidget):
    """A panel of one viewer's state: a column of widgets that listens to the controllers."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.state: ViewerState = state_of(napari_viewer)
        self._links = _Links(self.state)
        links = self._links
        # A lambda keeps the links alive until the widget is gone.
        self.destroyed.connect(lambda _=None: links.cut())
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        self.column.setSpacing(SPACE)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self.listen(self.state.viewer.events.theme, self._dress)

    @property
    def session(self) -> Session:
        """The session of the viewer."""
        return self.state.session

    def sizeHint(self) -> QSize:  # noqa: N802
        """Narrow enough for a laptop."""
        return QSize(370, 640)

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """Paint the icons, also of buttons that came later."""
        self._dress()
        super().showEvent(event)

    def _dress(self, _: Any = None) -> None:
        if self.state.viewer is not None:
            icons.dress(self, self.state.viewer)

    def listen(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal for as long as this panel lives."""
        self._links.add(signal, slot)


def text(words: str = "", *, dim: bool = False) -> QLabel:
    """A paragraph that wraps."""
    label = QLabel(words)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(_wrapping())
    label.setMinimumWidth(80)
    if dim:
        label.setStyleSheet("QLabel { font-size: 11px; }")
    return label


def _wrapping() -> QSizePolicy:
    """As wide as there is room, and as high as the words need at that width."""
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    return policy


def heading(words: str) -> QLabel:
    """The title of a group."""
    label = QLabel(words)
    label.setStyleSheet("QLabel { font-weight: bold; padding-top: 4px; }")
    return label


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
    icons.mark(made, icon)
    made.clicked.connect(lambda _=False: act())
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made


def _shown(key: str) -> str:
    return {"Escape": "Esc", "Backspace": "Bksp"}.get(key, key)


def folded(title: str, *widgets: QWidget) -> QCollapsible:
    """A section that is closed until somebody opens it."""
    section = QCollapsible(title, expandedIcon="▾", collapsedIcon="▸")
    section.layout().setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        section.addWidget(widget)
    # As high as its contents; else the layout would squeeze them.
    section.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    section.collapse(animate=False)
    return section


def line() -> QFrame:
    """A thin rule."""
    rule = QFrame()
    rule.setFrameShape(QFrame.Shape.HLine)
    rule.setMaximumHeight(1)
    return rule


class Notice(QLabel):
    """The last message, with a sign for its weight; takes no room while empty."""

    _SIGNS: ClassVar[dict[str, str]] = {"info": "✓", "warning": "⚠", "error": "✕"}

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setSizePolicy(_wrapping())
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.hide()
        self._fade = QTimer(self)
        self._fade.setSingleShot(True)
        self._fade.timeout.connect(self.hide)

    def say(self, level: str, words: str) -> None:
        """Show a message; what is no problem goes by itself, and is told in view only."""
        panel = self.parentWidget()
        if level == "info" and words and panel is not None and not panel.isVisible():
            return
        self._fade.stop()
        if level == "info":
            self._fade.start(_FADE)
        self.setText(f"{self._SIGNS.get(level, '')} {words}" if words else "")
        self.setVisible(bool(words))


class Work(QWidget):
    """Progress of named work with a Cancel button; hidden while nothing is done."""

    def __init__(self, panel: Panel, *names: str, cancel: bool = True) -> None:
        super().__init__()
        self._names, self._session = names, panel.session
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        self.bar.setTextVisible(True)
        box.addWidget(self.bar, 1)
        self.stop = button("Cancel", "Stop; nothing is changed", self._cancel, icon="stop")
        self.stop.setVisible(cancel)
        box.addWidget(self.stop)
        self.hide()
        panel.listen(panel.session.progress, self._on_progress)

    def _on_progress(self, name: str, step: Any) -> None:
        if name not in self._names:
            return
        self.setVisible(step is not None)
        if step is not None:
            self.bar.setValue(round(100 * min(max(float(getattr(step, "done", 0.0)), 0.0), 1.0)))
            self.bar.setFormat(f"{getattr(step, 'stage', '')} %p %")

    def _cancel(self) -> None:
        for name in self._names:
            self._session.cancel(name)
