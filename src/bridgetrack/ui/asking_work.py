"""Learning while people answer: the library's session, kept going and kept on disk."""

from __future__ import annotations

from pathlib import Path

from psygnal import Signal

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.session_file import load_session, save_session
from bridgetrack.active.update import SessionOptions, Update
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.models.model import Model
from bridgetrack.pipeline.progress import Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.ui.answers import Answers, questions_path
from bridgetrack.ui.session import Session
from bridgetrack.ui.trainer import Trainer

JOB = "suggest"
"""Name of the background work: learning and looking for questions."""

LOW = 4
"""Questions ahead below which new ones are looked for."""


class AskingWork:
    """Background work behind the questions; emits `updated` after each, also when it failed.

    Attributes
    ----------
    active
        The library's session; None until `begin` succeeded.
    changes
        Changes of the answers since the last update began.
    exhausted
        Whether the last update found nothing to ask.
    problem
        Why the last update failed, empty where it did not.
    """

    updated = Signal()

    def __init__(
        self, session: Session, trainer: Trainer, options: SessionOptions | None = None
    ) -> None:
        self._session, self._trainer, self._options = session, trainer, options
        self.active: ActiveSession | None = None
        self.changes = 0
        self.exhausted = False
        self.problem = ""
        self._path: Path | None = None
        self._unsaved = False
        self._given: Model | None = None

    @property
    def busy(self) -> bool:
        """Whether it is learning."""
        return self._session.busy(JOB)

    @property
    def path(self) -> Path | None:
        """Where the state is kept: beside the annotations."""
        answers = self._session.answers
        if answers is None:
            return None
        return questions_path(answers.path)

    # ------------------------------------------------------------------ beginning and ending

    def begin(self) -> bool:
        """Resume, or begin anew, once the movie is tracked; whether there is a session now."""
        session = self._session
        scene, answers = session.scene, session.answers
        if self.active is not None or scene is None or answers is None or session.tracking is None:
            return self.active is not None
        self._path = self.path
        try:
            self.active = self._resumed(scene, answers, self._path)
        except BridgetrackError as error:
            self.problem = str(error)
            session.message.emit("error", str(error))
        return self.active is not None

    def _resumed(self, scene: Scene, answers: Answers, path: Path | None) -> ActiveSession:
        if path is not None and path.exists():
            try:
                found = load_session(path, scene, answers)
                found.records = found.counted
                return found
            except InputError as error:
                aside = path.with_name(path.name + ".old")
                path.replace(aside)
                self._session.message.emit(
                    "warning", f"{error}. Questions begin anew; the file is now {aside.name}."
                )
        return ActiveSession(scene, self._session.start, answers, self._options)

    def forget(self) -> None:
        """End it; what is on disk stays."""
        self.save()
        self._session.cancel(JOB)
        self.active, self._path = None, None
        self.problem, self.exhausted = "", False

    # ------------------------------------------------------------------ learning

    def note_change(self) -> None:
        """The answers changed."""
        self.changes += 1
        self.exhausted = False

    def update(self) -> None:
        """Learn in the background, from what is known now."""
        active = self.active
        if active is None or self.busy:
            return
        self.problem, self.changes = "", 0
        try:
            steps = active.update()
        except BridgetrackError as error:
            self._failed(error)
            return

        def work() -> Steps[Update]:
            # The estimate needs it at once afterwards, and the window should not wait for it.
            import scipy.stats  # noqa: F401

            return steps

        self._session.run(JOB, work, lambda u: self._adopt(active, u), self._failed)

    def update_if_due(self) -> None:
        """Learn where there are enough new answers or few questions left."""
        active = self.active
        if active is None or not self.changes:
            return
        few = len(active.queue) < LOW
        if few or active.wants_update or self.changes >= active.options.update_every:
            self.update()

    def cancel(self) -> None:
        """End learning; what was learned before stays."""
        self._session.cancel(JOB)

    def _adopt(self, active: ActiveSession, update: Update) -> None:
        if active is not self.active:
            return
        clicks = active.effort.clicks
        active.points = tuple(p for p in active.points if p.clicks <= clicks)
        active.adopt(update)
        self.exhausted = not active.queue
        self.touch()
        self.updated.emit()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.exhausted = True
        self.updated.emit()

    # ------------------------------------------------------------------ keeping

    def touch(self) -> None:
        """There is something to save."""
        self._unsaved = True

    def save(self) -> None:
        """Save what is not saved yet."""
        active, path = self.active, self._path
        if not self._unsaved or active is None or path is None or not active.records:
            return
        self._unsaved = False
        try:
            save_session(active, path)
        except OutputError as error:
            self._session.message.emit("error", str(error))

    # ------------------------------------------------------------------ models

    def use_model(self) -> None:
        """Track with what was learned so far."""
        if self.active is not None:
            self._given = self.active.model
            self._session.set_model(self._given, self.active.prior)

    def follow_model(self) -> None:
        """Start from another model, unless it was learned from these very answers."""
        model, training = self._session.model, self._trainer.training
        learned = model is self._given or (training is not None and model is training.model)
        old, scene, answers = self.active, self._session.scene, self._session.answers
        if learned or old is None or scene is None or answers is None:
            return
        self.cancel()
        new = ActiveSession(scene, self._session.start, answers, old.options)
        new.skipped, new.records, new.points = old.skipped, old.records, old.points
        self.active = new
        self.touch()
        self.update()
