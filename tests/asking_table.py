"""The controllers of one viewer's questions, without the viewer."""

from __future__ import annotations

import pytest

from bridgetrack.active.options import SessionOptions
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation
from bridgetrack.session.session import Session
from bridgetrack.session.training import Trainer
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.suggester import Suggester

OPTIONS = SessionOptions(queue=8, update_every=4, rejudge_every=1000)


class Table:
    """Everything that takes part while a model asks."""

    def __init__(self, session: Session, options: SessionOptions = OPTIONS) -> None:
        self.session = session
        self.annotator = Annotator(session)
        self.trainer = Trainer(session)
        self.asker = Suggester(session, self.annotator, self.trainer, options)
        self.looked: list[Suggestion] = []
        self.asker.look.connect(self.looked.append)
        session.scene_changed.emit()

    @property
    def answers(self) -> list[Annotation]:
        """What was answered."""
        return list(self.session.annotations or ())

    def until(self, wanted) -> Suggestion:
        """Pass questions on until one is wanted."""
        for _ in range(40):
            current = self.asker.current
            if current is not None and wanted(current):
                return current
            self.annotator.suggest()
        pytest.skip("the sample asks no such question")
