"""A panel of the plugin, its messages, the progress of its work, and what all panels share."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.mask_answers import MaskAnswer
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.kept import KeptCells, KeptSettings
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import EventLoopQueue, ThreadRunner, Turns
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.closing import CloseGuard
from bridgetrack.ui.coloured_cells import ColouredCells
from bridgetrack.ui.layer_scale import fit_in
from bridgetrack.ui.layers import LayerData
from bridgetrack.ui.looks import Looks
from bridgetrack.ui.opening import Opening
from bridgetrack.ui.question_view import QuestionView
from bridgetrack.ui.responsive import Responsive
from bridgetrack.ui.shortcuts import shortcut
from bridgetrack.ui.tracks_layer import ResultLayer
from bridgetrack.ui.widgets import SPACE, Column, button, dress_icons, wrapping

Answer = Annotation | MaskAnswer
"""What people say: of events, or of masks."""

_states: weakref.WeakKeyDictionary[Any, ViewerState] = weakref.WeakKeyDictionary()


class ViewerState:
    """The session of one viewer, and its layers."""

    def __init__(self, viewer: Any) -> None:
        self.turns = Turns()
        self.session = Session(runner=ThreadRunner(self.turns))
        self.files = Opening(ThreadRunner(), self.session)
        # Work that goes on when another movie is opened: on many movies, and writing files.
        self.elsewhere = BackgroundWork(ThreadRunner())
        self.elsewhere.message.connect(self.session.message.emit)
        self.kept = KeptCells(self.session)
        self._keep_soon = QTimer()
        self._keep_soon.setSingleShot(True)
        self._keep_soon.setInterval(_KEEP)
        self._keep_soon.timeout.connect(self.kept.keep)
        self.kept.aging.connect(self._on_aging)
        self.settings = KeptSettings(self.session)
        self.guard = CloseGuard(self.kept, self.session, self.elsewhere)
        self._afterwards = EventLoopQueue(self.turns, patient=True)
        self.session.questions.later = self._afterwards.then
        self.annotator = Annotator(self.session)
        self.responsive = Responsive(viewer.layers)
        self.canvas = Canvas(viewer, self.session, self.annotator, self.turns)
        self.question_view = QuestionView(self.session, self.annotator, self.canvas)
        self.looks = Looks()
        self.result_layer = ResultLayer(viewer, self.session, self.looks, self.turns)
        self.coloured_cells = ColouredCells(viewer, self.session, self.looks, self.turns)
        self._panels = 0
        self.session.run("warm up", _warm_up, lambda _: None)

    def _on_aging(self) -> None:
        """The cells changed: keep them once they rest."""
        self._keep_soon.start()

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self.canvas.viewer

    def visit(self, answer: Answer) -> None:
        """Bring what an answer is about into view, ready for another one."""
        self.canvas.activate()
        if isinstance(answer, Annotation):
            scene, cell = self.session.scene, answer.cells[0]
            row = -1 if scene is None else scene.detections.row_of(*cell.cell)
            if row >= 0:
                self.annotator.select(row, history=not answer.events[0].sources)
            else:
                self.annotator.go_to(cell)
        elif self.session.masks is not None:
            shape = self.session.masks.labels.geometry.shape or ()
            where = np.unravel_index(answer.pixels, shape)
            place = tuple(float(axis.mean()) for axis in where) if len(answer.pixels) else None
            self.canvas.show(answer.frame, place)

    def attach(self) -> None:
        """A panel uses this."""
        self._panels += 1

    @property
    def used(self) -> bool:
        """Whether a panel is there."""
        return self._panels > 0

    def add_layers(self, found: Sequence[LayerData], image: Any = None) -> list[Any]:
        """Add what a file holds; nothing where the viewer was closed meanwhile.

        `image` is the movie of cells among it, unless their movie comes along.
        """
        from napari.layers import Layer

        viewer, made = self.viewer, [Layer.create(*data) for data in found]
        if viewer is None:
            return []
        fit_in(viewer.layers, made, image)
        return [viewer.add_layer(layer) for layer in made]

    def detach(self) -> None:
        """A panel is gone; with the last one all work ends."""
        self._panels -= 1
        if self._panels == 0:
            # At the end of the program Qt may be gone before this is called.
            with contextlib.suppress(RuntimeError):
                self._keep_soon.stop()
                self.kept.keep_now()
            self._afterwards.stop()
            self.files.close()
            self.elsewhere.close()
            self.session.close()
            self.question_view.close()
            self.result_layer.close()
            self.coloured_cells.close()
            self.canvas.close()
            self.responsive.close()
            viewer = self.viewer
            if viewer is not None:
                _states.pop(viewer, None)


def state_of(viewer: Any) -> ViewerState:
    """What the panels of a viewer share, made at the first call."""
    viewer = getattr(viewer, "__wrapped__", viewer)
    if viewer not in _states:
        _states[viewer] = ViewerState(viewer)
    return _states[viewer]


def shared_state(viewer: Any) -> ViewerState | None:
    """What the panels of a viewer share, None where it has no panel."""
    state = _states.get(getattr(viewer, "__wrapped__", viewer))
    return state if state is not None and state.used else None


def _warm_up() -> Steps[None]:
    """Import in the background what napari imports when it draws its first tracks."""
    yield Progress("Getting ready", 0.0)
    import matplotlib  # noqa: F401
    import scipy.spatial  # noqa: F401


_KEEP = 20_000
"""Milliseconds after a change of the cells until they are kept, if nothing else changes them."""

_FADE = 8000
"""Milliseconds that a message without weight stays."""


class _Links:
    """Connections of a panel, cut when its widget is gone."""

    def __init__(self, state: ViewerState) -> None:
        self._state = state
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
        self._state.detach()


class Panel(Column):
    """A panel of one viewer's state: a column of widgets that listens to the controllers.

    `notice` shows what the session has to say, where `add_notice` was called.
    """

    notice: Notice

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.state: ViewerState = state_of(napari_viewer)
        self._links = _Links(self.state)
        links = self._links
        # A lambda keeps the links alive until the widget is gone.
        self.destroyed.connect(lambda _=None: links.cut())
        self._stale: dict[Callable[[], None], None] = {}
        self.column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
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
        """Paint the icons, also of buttons that came later; follow what was not followed."""
        window: QWidget = self
        while window.parentWidget() is not None:
            window = window.parentWidget()
        self.state.guard.watch(window)
        self.state.canvas.look_from(window)
        self._dress()
        stale, self._stale = self._stale, {}
        for refresh in stale:
            refresh()
        super().showEvent(event)

    def _dress(self, _: Any = None) -> None:
        if self.state.viewer is not None:
            dress_icons(self, self.state.viewer)

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

    def key_button(
        self, name: str, words: str, icon: str = "", *, checkable: bool = False
    ) -> QPushButton:
        """A button that does what a key on the image does."""
        key = shortcut(name)

        def act() -> None:
            key.act(self.state.annotator)

        return button(words, key.words, act, key=key, icon=icon, checkable=checkable)

    def listen(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal for as long as this panel lives."""
        self._links.add(signal, slot)

    def beside_movie(self, name: str = "") -> str:
        """Where a file dialog begins: in the folder of the open movie, with a name for a file."""
        movie = self.session.movie
        path = None if movie is None else movie.path
        return name if path is None else str(path.parent / name)

    def add_notice(self) -> None:
        """Show what the session has to say at the end of the panel as it is so far."""
        self.notice = self.add(Notice())
        self.listen(self.session.message, self.notice.say)


class Notice(QLabel):
    """The last message, with a sign for its weight; takes no room while empty."""

    _SIGNS: ClassVar[dict[str, str]] = {"info": "✓", "warning": "⚠", "error": "✕"}

    def __init__(self) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setSizePolicy(wrapping())
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
    """Progress of named work with a Cancel button; hidden while nothing is done.

    It is work of the session, or of another `doer`; `beside` says whether people do something else
    just now, and are not to be told.
    """

    def __init__(
        self,
        panel: Panel,
        *names: str,
        cancel: bool = True,
        cancelled: Callable[[], str] | None = None,
        doer: BackgroundWork | None = None,
        beside: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self._cancelled, self._beside = cancelled, beside
        self._names, self._session = names, doer or panel.session
        box = QHBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.bar = QProgressBar()
        self.bar.setRange(0, 100)
        self.bar.setTextVisible(True)
        box.addWidget(self.bar, 1)
        self.stop = button(
            "Cancel",
            "Stop; what was there stays as it is",
            self._cancel,
            icon="stop",
        )
        self.stop.setVisible(cancel)
        box.addWidget(self.stop)
        self.hide()
        panel.listen(self._session.progress, self._on_progress)

    def _on_progress(self, name: str, step: Any) -> None:
        if name not in self._names:
            return
        self.setVisible(step is not None and not self._beside())
        if step is not None:
            # A bar that may not be painted is not painted at once, with all else in the window.
            self.bar.setUpdatesEnabled(False)
            self.bar.setValue(round(100 * min(max(float(getattr(step, "done", 0.0)), 0.0), 1.0)))
            # What cannot tell how far it is begins and stays at 0: that would look as if it hung.
            share = " %p %" if self.bar.value() else "…"
            self.bar.setFormat(f"{getattr(step, 'stage', '')}{share}")
            self.bar.setUpdatesEnabled(True)

    def _cancel(self) -> None:
        running = [name for name in self._names if self._session.busy(name)]
        for name in running:
            self._session.cancel(name)
        if running:
            kept = "" if self._cancelled is None else self._cancelled()
            told = kept or "Cancelled: everything is as it was before."
            self._session.message.emit("info", told)
