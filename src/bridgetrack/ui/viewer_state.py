"""What all panels of one viewer share: the session, and what is drawn in the viewer."""

from __future__ import annotations

import weakref
from typing import Any

from qtpy.QtCore import QTimer

from bridgetrack.annotations.annotation import CellRef
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import ThreadRunner
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.question_view import QuestionView
from bridgetrack.ui.tracks_layer import ResultLayer

_states: weakref.WeakKeyDictionary[Any, ViewerState] = weakref.WeakKeyDictionary()


class ViewerState:
    """The session of one viewer, and its layers."""

    def __init__(self, viewer: Any) -> None:
        self.session = Session(runner=ThreadRunner())
        self.session.questions.later = lambda act: QTimer.singleShot(40, act)
        self.annotator = Annotator(self.session)
        self.canvas = Canvas(viewer, self.session, self.annotator)
        self.question_view = QuestionView(self.session, self.annotator, self.canvas)
        self.result_layer = ResultLayer(viewer, self.session)
        self._panels = 0
        self.session.run("warm up", _warm_up, lambda _: None)

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self.canvas.viewer

    def visit(self, cell: CellRef) -> None:
        """Bring a cell into view, ready for an answer."""
        self.canvas.activate()
        self.annotator.go_to(cell)

    def attach(self) -> None:
        """A panel uses this."""
        self._panels += 1

    def detach(self) -> None:
        """A panel is gone; with the last one all work ends."""
        self._panels -= 1
        if self._panels == 0:
            self.session.close()
            self.question_view.close()
            self.result_layer.close()
            self.canvas.close()
            viewer = self.viewer
            if viewer is not None:
                _states.pop(viewer, None)


def state_of(viewer: Any) -> ViewerState:
    """What the panels of a viewer share, made at the first call."""
    viewer = getattr(viewer, "__wrapped__", viewer)
    if viewer not in _states:
        _states[viewer] = ViewerState(viewer)
    return _states[viewer]


def _warm_up() -> Steps[None]:
    """Import in the background what napari imports when it draws its first tracks."""
    yield Progress("Getting ready", 0.0)
    import matplotlib  # noqa: F401
    import scipy.spatial  # noqa: F401
