"""The controllers of one viewer's questions, without the viewer."""

from __future__ import annotations

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator


class Table:
    """Everything that takes part while a model asks."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.annotator = Annotator(session)
        self.trainer = session.trainer
        self.questions = session.questions
        self.looked: list[Suggestion] = []
        self.questions.look.connect(self.looked.append)
        session.scene_changed.emit()

    @property
    def answers(self) -> list[Annotation]:
        """What was answered."""
        return list(self.session.annotations or ())

    def until(self, wanted) -> Suggestion:
        """Pass questions on until one is wanted."""
        for _ in range(40):
            current = self.questions.current
            if current is not None and wanted(current):
                return current
            self.annotator.suggest()
        raise AssertionError("the sample asks no such question")
