"""One desk per viewer: the controllers that all its panels share."""

from __future__ import annotations

import weakref
from typing import Any

from qtpy.QtCore import QTimer

from bridgetrack.annotations.annotation import CellRef
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.keep_model import Keeper
from bridgetrack.session.session import Session
from bridgetrack.session.start_choice import Librarian
from bridgetrack.session.training import Trainer
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.canvas import Canvas
from bridgetrack.ui.question_view import QuestionView
from bridgetrack.ui.suggester import Suggester
from bridgetrack.ui.workers import ThreadRunner

_desks: weakref.WeakKeyDictionary[Any, Desk] = weakref.WeakKeyDictionary()


class Desk:
    """Session, annotator and canvas of one viewer."""

    def __init__(self, viewer: Any) -> None:
        self.session = Session(ThreadRunner())
        self.annotator = Annotator(self.session)
        self.canvas = Canvas(viewer, self.session, self.annotator)
        self.trainer = Trainer(self.session)
        self.librarian = Librarian(self.session, self.trainer)
        self.keeper = Keeper(self.session, self.trainer, self.librarian)
        self.suggester = Suggester(
            self.session, self.annotator, self.trainer, later=lambda act: QTimer.singleShot(40, act)
        )
        self.questions = QuestionView(self.session, self.annotator, self.canvas, self.suggester)
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
        """A panel uses this desk."""
        self._panels += 1

    def detach(self) -> None:
        """A panel is gone; with the last one all work ends."""
        self._panels -= 1
        if self._panels == 0:
            self.suggester.close()
            self.session.close()
            self.questions.close()
            self.canvas.close()
            viewer = self.viewer
            if viewer is not None:
                _desks.pop(viewer, None)


def desk_of(viewer: Any) -> Desk:
    """The desk of a viewer, made at the first call."""
    viewer = getattr(viewer, "__wrapped__", viewer)
    if viewer not in _desks:
        _desks[viewer] = Desk(viewer)
    return _desks[viewer]


def _warm_up() -> Steps[None]:
    """Import in the background what napari imports when it draws its first tracks."""
    yield Progress("Getting ready", 0.0)
    import matplotlib  # noqa: F401
    import scipy.spatial  # noqa: F401
