"""Widgets put together: columns, rows, buttons and sections that all look alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from qtpy.QtCore import QEvent, QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import (
    QApplication,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

AnyLayout = TypeVar("AnyLayout", bound=QLayout)
AnyWidget = TypeVar("AnyWidget", bound=QWidget)

SPACE = 6
"""Pixels between widgets."""


class Column(QWidget):
    """Widgets one below the other."""

    def __init__(self) -> None:
        super().__init__()
        self.column = _plain(QVBoxLayout(self))

    def add(self, widget: AnyWidget) -> AnyWidget:
        """Put a widget below the others; returns it."""
        self.column.addWidget(widget)
        return widget


def form_in(box: QWidget) -> QFormLayout:
    """Words and widgets side by side, line by line, that fill a widget."""
    return _plain(QFormLayout(box))


def row(*widgets: QWidget, wide: QWidget | None = None) -> QWidget:
    """Widgets side by side, of equal width except one that may be twice as wide."""
    box = QWidget()
    line = _plain(QHBoxLayout(box))
    for widget in widgets:
        line.addWidget(widget, 2 if widget is wide else 1)
    return box


def grid(widgets: Iterable[QWidget], columns: int) -> QWidget:
    """Widgets in rows of some `columns`."""
    box = QWidget()
    cells = _plain(QGridLayout(box))
    for k, widget in enumerate(widgets):
        cells.addWidget(widget, k // columns, k % columns)
    return box


def _plain(layout: AnyLayout) -> AnyLayout:
    """The layout without margins, and with the usual space between its parts."""
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(SPACE)
    return layout


def text(words: str = "", *, style: str = "", lines: int = 0) -> QLabel:
    """A paragraph that wraps, in a style of Qt's.

    It has room for some `lines` at least, so that widgets below it do not move.
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


def bring_into_view(widget: QWidget) -> None:
    """Scroll to a widget, once it has the size that its words need."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None and widget.isVisible():
        for _ in range(3):  # the layouts around it, from the inner to the outer
            QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        area.ensureWidgetVisible(widget, 0, SPACE)
        area.horizontalScrollBar().setValue(0)


DIM = "font-size: 11px;"
"""The style of less important words."""


def wrapping() -> QSizePolicy:
    """A policy: as wide as there is room, and as high as the words need at that width."""
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    return policy


def heading(words: str, *, lines: int = 0) -> QLabel:
    """The title of a group; with room for some `lines`, words that change."""
    return text(words, style="font-weight: bold; padding-top: 4px;", lines=lines)


def tell(label: QLabel, words: str) -> None:
    """Show words in a label; without words it takes no room."""
    label.setText(words)
    label.setVisible(bool(words))


def fitted(choice: QComboBox) -> QComboBox:
    """A combo box that cuts long words rather than make its panel wider."""
    policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
    choice.setSizeAdjustPolicy(policy)
    choice.setMinimumContentsLength(10)
    return choice


def button(
    words: str, tip: str, act: Callable[[], None], *, key: str = "", checkable: bool = False
) -> QPushButton:
    """A button with its tooltip, and its key on the image if it has one."""
    name = {"Escape": "Esc", "Backspace": "Bksp"}.get(key, key)
    made = QPushButton(f"{words} [{name}]" if name else words)
    made.setToolTip(f"{tip} (key {name})" if name else tip)
    made.setCheckable(checkable)
    made.clicked.connect(lambda _=False: act())
    made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return made


class Section(Column):
    """A section that is closed until the user opens it."""

    def __init__(self, title: str, *widgets: QWidget) -> None:
        super().__init__()
        self._title = title
        self.head = self.add(button(title, "Show or hide", self._show, checkable=True))
        self.head.setFlat(True)
        self.head.setStyleSheet("QPushButton { text-align: left; }")
        self.content = self.add(Column())
        for widget in widgets:
            self.content.add(widget)
        self.open(False)

    def open(self, opened: bool = True) -> None:
        """Open or close it."""
        self.head.setChecked(opened)
        self._show()

    def _show(self) -> None:
        opened = self.head.isChecked()
        self.head.setText(f"{'▾' if opened else '▸'} {self._title}")
        self.content.setVisible(opened)


class LayerChoice(QComboBox):
    """Chooses one of some layers, or none; emits `chosen` with it when that changes."""

    chosen = Signal(object)

    def __init__(self, none: str, tip: str) -> None:
        super().__init__()
        self.addItem(none, None)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(100)
        self.setToolTip(tip)
        self.currentIndexChanged.connect(lambda _: self.chosen.emit(self.layer))

    @property
    def layer(self) -> Any:
        """The layer chosen, None if none is."""
        return self.currentData()

    def _place(self, layer: Any) -> int:
        return next((k for k in range(1, self.count()) if self.itemData(k) is layer), 0)

    def __contains__(self, layer: Any) -> bool:
        """Whether a layer can be chosen."""
        return self._place(layer) > 0

    def choose(self, layer: Any | None) -> None:
        """Choose a layer."""
        self.setCurrentIndex(self._place(layer))

    def offer(self, words: Mapping[Any, str]) -> None:
        """List these layers by their words; the one that is chosen stays."""
        kept = self.layer
        with QSignalBlocker(self):
            while self.count() > 1:
                self.removeItem(1)
            for layer, said in words.items():
                self.addItem(said, layer)
            self.choose(kept)
        if self.layer is not kept:
            self.chosen.emit(self.layer)
