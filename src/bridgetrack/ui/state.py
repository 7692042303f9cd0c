"""State that the panels of a viewer share, from the first panel to closing the window."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QMessageBox, QWidget
from superqt.utils import qdebounced

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.errors import Note, collecting_warnings
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import MaskAnswer
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.project import ProjectFolder
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import ThreadWork
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.layers import LayerData, kind_of, share_scale
from bridgetrack.ui.looks import Looks
from bridgetrack.ui.result_layers import ResultLayers

Answer = Annotation | MaskAnswer
"""An answer about events or about masks."""

_KEEP = 20_000
"""Milliseconds after a change of the cells until they are saved, if nothing else changes them."""

READING = "open"
"""Name of the work that reads files."""

Read = TypeVar("Read")

_states: weakref.WeakKeyDictionary[Any, ViewerState] = weakref.WeakKeyDictionary()


class ViewerState:
    """The session of one viewer, and its layers."""

    def __init__(self, viewer: Any) -> None:
        self.session = Session(work=ThreadWork())
        # Work that continues when another movie is opened: on many movies, and on files.
        self.elsewhere = ThreadWork()
        self.elsewhere.message.connect(self.session.message.emit)
        self._to_read: deque[tuple[str, Callable[[], Any], Callable[[Any], object]]] = deque()
        self._keep_soon = qdebounced(self.session.project.keep, timeout=_KEEP)
        self.session.project.aging.connect(self._keep_soon)
        self.guard = CloseGuard(self.session.project, self.session.work, self.elsewhere)
        self.session.questions.later = lambda act: QTimer.singleShot(0, act)
        self.annotator = Annotator(self.session)
        self.canvas = Canvas(viewer, self.session, self.annotator)
        self.looks = Looks()
        self.results = ResultLayers(viewer, self.session, self.looks)
        self._panels = 0

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self.canvas.viewer

    def read(self, name: str, read: Callable[[], Read], done: Callable[[Read], object]) -> None:
        """Read something in the background, after earlier requests, and pass it on."""
        self._to_read.append((name, read, done))
        if not self.elsewhere.busy(READING):
            self._read_next()

    def _read_next(self) -> None:
        if not self._to_read:
            return
        name, read, done = self._to_read.popleft()
        notes: list[Note] = []

        def work() -> Steps[Any]:
            yield Progress(f"Reading {name}", 0.0)
            with collecting_warnings(notes):
                return read()

        def ended(found: Any) -> None:
            with self.session.telling():
                done(found)
                if notes:
                    self.session.message.emit("warning", "\n".join(f"{note}." for note in notes))
            self._read_next()

        self.elsewhere.run(READING, work, ended, lambda _: self._read_next())

    def visit(self, answer: Answer) -> None:
        """Bring the cells of an answer into view, ready for another one."""
        self.canvas.activate()
        if isinstance(answer, Annotation):
            scene, cell = self.session.scene, answer.cells[0]
            row = -1 if scene is None else scene.detections.row_of(*cell.cell)
            if row >= 0:
                self.annotator.select(row)
            else:
                self.annotator.go_to(cell)
        elif self.session.masks is not None:
            shape = self.session.masks.labels.geometry.shape or ()
            where = np.unravel_index(answer.pixels, shape)
            place = tuple(float(axis.mean()) for axis in where) if len(answer.pixels) else None
            self.canvas.show(answer.frame, place)

    def add_layers(self, found: Sequence[LayerData], image: Any = None) -> list[Any]:
        """Add the layers of a file; none if the viewer was closed meanwhile.

        `image` is the movie of cells among it, unless their movie comes along.
        """
        from napari.layers import Layer

        viewer, made = self.viewer, [Layer.create(*data) for data in found]
        if viewer is None:
            return []
        movie = next((layer for layer in made if kind_of(layer) == "image"), image)
        for layer in made:
            if layer is not movie:
                share_scale(movie, layer)  # before napari warns that they differ
        return [viewer.add_layer(layer) for layer in made]

    def attach(self) -> None:
        """Note that a panel uses this."""
        self._panels += 1

    @property
    def used(self) -> bool:
        """Whether a panel uses this."""
        return self._panels > 0

    def detach(self) -> None:
        """Note that a panel was closed; with the last one all work ends."""
        self._panels -= 1
        if self._panels == 0:
            # At the end of the program Qt may end before this is called.
            with contextlib.suppress(RuntimeError):
                self._keep_soon.cancel()
                self.session.project.keep_now()
            self._to_read.clear()
            for part in (self.elsewhere, self.session, self.results, self.canvas):
                part.close()
            viewer = self.viewer
            if viewer is not None:
                _states.pop(viewer, None)


def state_of(viewer: Any) -> ViewerState:
    """The state that the panels of a viewer share, made at the first call."""
    viewer = getattr(viewer, "__wrapped__", viewer)
    if viewer not in _states:
        _states[viewer] = ViewerState(viewer)
    return _states[viewer]


def shared_state(viewer: Any) -> ViewerState | None:
    """The state that the panels of a viewer share, None if it has no panel."""
    state = _states.get(getattr(viewer, "__wrapped__", viewer))
    return state if state is not None and state.used else None


class CloseGuard(QObject):
    """Saves the cells before a window closes, and asks if something cannot be saved."""

    def __init__(self, kept: ProjectFolder, *doers: BackgroundWork) -> None:
        super().__init__()
        self._kept, self._doers = kept, doers
        self._watched: weakref.ref[QWidget] | None = None

    def watch(self, window: QWidget) -> None:
        """Watch a window."""
        if self._watched is None or window is not self._watched():
            self._watched = weakref.ref(window)
            window.installEventFilter(self)

    @property
    def losses(self) -> list[str]:
        """Losses if the window were closed now, a sentence each."""
        found = [f"{what} is not done yet." for doer in self._doers for what in doer.unfinished]
        if self._kept.problem:
            found.append(
                f"The project cannot be saved: {self._kept.problem}. Save it elsewhere, or save "
                "the layer of the cells."
            )
        return found

    def eventFilter(self, watched: Any, event: Any) -> bool:  # noqa: N802
        """Keep the window open if the user says so."""
        if event.type() != QEvent.Type.Close or self._watched is None:
            return False
        if watched is not self._watched():
            return False
        self._kept.keep_now()
        losses = self.losses
        if losses and not may_close(watched, losses):
            event.ignore()
            return True
        return False


def may_close(window: QWidget, losses: list[str]) -> bool:
    """Ask whether to close although something is lost."""
    box = QMessageBox(window)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle("Close Bridgetrack?")
    box.setText("\n".join(losses))
    box.setInformativeText("Everything else is saved: your answers, and the cells of this movie.")
    close = box.addButton("Close and lose it", QMessageBox.ButtonRole.DestructiveRole)
    stay = box.addButton("Stay", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.exec()
    return box.clickedButton() is close
