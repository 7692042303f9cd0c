"""A panel of the plugin, its messages, and the progress of its work."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from typing import Any, ClassVar

from qtpy.QtCore import QEvent, QSize, Qt, Signal
from qtpy.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from superqt.utils import qdebounced

from bridgetrack.errors import plural
from bridgetrack.session.session import Session
from bridgetrack.ui.background import Links
from bridgetrack.ui.canvas import shortcut
from bridgetrack.ui.state import ViewerState, state_of
from bridgetrack.ui.widgets import SPACE, Column, button, wrapping

_OVER = 1.0
"""Seconds after which an error does not belong to the work that has just succeeded."""

_KNOWN = 12
"""Percent from which the remaining time of a search is shown."""


class Panel(Column):
    """A panel of one viewer's state: a column of widgets that listens to the controllers.

    `notice` shows messages of the session if `add_notice` was called.
    """

    notice: Notice

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.state: ViewerState = state_of(napari_viewer)
        links, state = Links(), self.state
        self._links = links
        state.attach()

        def gone(_: Any = None) -> None:
            # As a closure it keeps the links alive until the widget is deleted.
            links.cut()
            state.detach()

        self.destroyed.connect(gone)
        self._stale: dict[Callable[[], None], None] = {}
        self.column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._fit_soon = qdebounced(self._fit, timeout=0, parent=self)

    @property
    def session(self) -> Session:
        """The session of the viewer."""
        return self.state.session

    @property
    def viewer_window(self) -> Any:
        """The window of the viewer, also if the steps float above it."""
        window = self.window()
        return window.parentWidget() if isinstance(window, QDockWidget) else window

    def sizeHint(self) -> QSize:  # noqa: N802
        """Narrow enough for a laptop."""
        return QSize(370, 640)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """As wide as its parts need; the height depends on the width, see below."""
        return QSize(super().minimumSizeHint().width(), 0)

    def heightForWidth(self, width: int) -> int:  # noqa: N802
        """The least height that its parts need: in a scroll area Qt would use the preferred one."""
        return int(self.column.minimumHeightForWidth(width))

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """Follow changes that were made while the panel was hidden."""
        self.state.guard.watch(self.viewer_window)
        self.state.canvas.look_from(self.viewer_window)
        stale, self._stale = self._stale, {}
        for refresh in stale:
            refresh()
        super().showEvent(event)
        self._fit_soon()

    def changeEvent(self, event: Any) -> None:  # noqa: N802
        """Another theme has other fonts."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange and self.isVisible():
            self._fit_soon()

    def _fit(self) -> None:
        """Make room for words in the style of the window, which is set after the first layout."""
        for each in self.findChildren(QPushButton):
            each.updateGeometry()

    def follow(self, refresh: Callable[[], None], *signals: Any) -> None:
        """Call `refresh` now and after each of some signals, once the panel is in view."""

        def changed(*_: Any) -> None:
            if self.isVisible():
                refresh()
            else:
                self._stale[refresh] = None

        for signal in signals:
            self.listen(signal, changed)
        refresh()

    def key_button(self, name: str, words: str, *, checkable: bool = False) -> QPushButton:
        """A button that does what a key on the image does."""
        key = shortcut(name)

        def act() -> None:
            self.state.canvas.activate()
            key.act(self.state.annotator)

        shown = key.keys[0] if key.keys else ""
        return button(words, key.words, act, key=shown, checkable=checkable)

    def listen(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal for as long as this panel lives."""
        self._links.add(signal, slot)

    def beside_movie(self, name: str = "") -> str:
        """First path of a file dialog: in the folder of the open movie, with a name for a file."""
        movie = self.session.movie
        path = None if movie is None else movie.path
        return name if path is None else str(path.parent / name)

    def add_notice(self) -> None:
        """Show messages of the session below the present widgets."""
        self.notice = self.add(Notice())
        session = self.session
        self.listen(session.message, self.notice.say)
        for worked in (session.answers_changed, session.model_changed, session.tracking_changed):
            self.listen(worked, self.notice.outlived)


class Notice(QLabel):
    """The last message, with a sign for its level; takes no room while empty."""

    _SIGNS: ClassVar[dict[str, str]] = {"info": "✓", "warning": "⚠", "error": "✕"}

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setSizePolicy(wrapping())
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.hide()
        self._level, self._since = "", 0.0

    def say(self, level: str, words: str) -> None:
        """Show a message until the next one."""
        self._level, self._since = level, time.monotonic()
        self.setText(f"{self._SIGNS.get(level, '')} {words}".strip() if words else "")
        self.setVisible(bool(words))

    def outlived(self, *_: Any) -> None:
        """Some work succeeded: remove earlier errors, but not those of this work."""
        if self._level == "error" and time.monotonic() - self._since > _OVER:
            self.say("", "")


class WorkBar(QWidget):
    """Progress of the latest work of a panel's viewer, with a button to cancel it.

    Emits `shown` with whether there is any work to show.
    """

    shown = Signal(bool)

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._state, self._steps = panel.state, dict[str, Any]()
        self._begun: dict[str, float] = {}  # when each began
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        box.addWidget(self.bar, 1)
        self.stop = button("Cancel", "Stop the running work", self.cancel)
        box.addWidget(self.stop)
        for doer in (panel.session, self._state.elsewhere):
            panel.listen(doer.progress, self._on_progress)

    def _on_progress(self, name: str, step: Any) -> None:
        if name not in _SHOWN:
            return
        if step is None:
            self._steps.pop(name, None)
            self._begun.pop(name, None)
        else:
            self._steps[name] = step
        self.shown.emit(bool(self._steps))
        if not self._steps:
            return
        name, step = list(self._steps.items())[-1]
        begun = self._begun.setdefault(name, time.monotonic())
        # Updates are blocked so that the bar is not painted at once together with the whole window.
        self.bar.setUpdatesEnabled(False)
        self.bar.setValue(round(100 * min(max(float(getattr(step, "done", 0.0)), 0.0), 1.0)))
        # Work without known progress stays at 0, which would look as if it had stopped.
        share = " %p %" if self.bar.value() else "…"
        if name == "segment" and self.bar.value() > _KNOWN:  # of other work only the stage is known
            left = (time.monotonic() - begun) * (100 / self.bar.value() - 1) / 60
            share += f", about {plural(ceil(left), 'minute')} left"
        self.bar.setFormat(f"{getattr(step, 'stage', '')}{share}")
        self.bar.setUpdatesEnabled(True)
        self.stop.setEnabled(_SHOWN[name])

    def cancel(self) -> None:
        """Cancel the work that is shown."""
        if not self._steps:
            return
        name, state = list(self._steps)[-1], self._state
        for doer in (state.session, state.elsewhere):
            doer.cancel(name)
        state.session.message.emit("info", "Cancelled. Earlier results are unchanged.")


_SHOWN = {
    "open": True, "measure": False, "segment": True, "settings": True, "choose": True,
    "take over": True, "train": True, "track": True, "export": False, "batch": True,
    "project": False,
}  # fmt: skip
"""Work that is shown, and whether it can be cancelled."""
