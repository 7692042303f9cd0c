"""The model asks and people answer: the controller behind *Suggest next*, without Qt."""

from __future__ import annotations

from psygnal import Signal

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.active.update import SessionOptions
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.asking_work import JOB, AskingWork
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.question_cells import number_of, subject_row
from bridgetrack.ui.questioning import Later, Questioning
from bridgetrack.ui.session import Session
from bridgetrack.ui.trainer import Trainer


class Suggester(Questioning):
    """What keys, clicks and changes elsewhere mean while the model asks.

    Signals: those of `Questioning`, and `turned` when the question's other frame is wanted.
    """

    turned = Signal()

    def __init__(
        self,
        session: Session,
        annotator: Annotator,
        trainer: Trainer,
        options: SessionOptions | None = None,
        later: Later | None = None,
    ) -> None:
        super().__init__(session, annotator, AskingWork(session, trainer, options), later)
        self._wanted = False
        self._mode = annotator.picking.mode
        annotator.asker = self
        annotator.mode_changed.connect(self._on_mode)
        session.source_changed.connect(self._on_source)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._follow_answers)
        session.model_changed.connect(self._work.follow_model)
        session.tracking_changed.connect(self._on_tracking)
        session.progress.connect(self._on_progress)
        self._work.updated.connect(self._on_update)

    @property
    def hint(self) -> str:
        """What to do next, in plain words."""
        session = self._session
        if session.source is None:
            return "Choose a movie with its cells first; see the step Cells."
        if session.scene is None or session.tracking is None:
            return "The cells are being measured; the first question comes after that."
        if self.problem:
            return f"It could not learn from these answers: {self.problem}"
        if not self.engaged:
            asked = "go on" if self.active is not None and self.active.records else "be asked"
            return f"Press G to {asked}: the model asks about the events whose answer helps most."
        if not self.asking:
            return f"{self._annotator.hint} G goes back to the question."
        if self.current is not None:
            return self._annotator.hint
        if self.busy:
            return "Looking for the next question; this takes a moment."
        return "Nothing is left to ask: every event that could be otherwise is answered."

    def _asked(self) -> tuple[ActiveSession, Suggestion] | None:
        """The question in view with its session; says so where there is none."""
        if self.current is None:
            self._session.message.emit("info", self.hint)
        if self.active is None or self.current is None:
            return None
        return self.active, self.current

    # ------------------------------------------------------------------ intents

    def prepare(self) -> None:
        """Compute the first questions ahead, as soon as the movie is tracked."""
        self._wanted = True
        self._begin()

    def next(self) -> None:
        """G: go to the question, or, where it is in view, to another one."""
        if self._session.source is None:
            self._session.message.emit("info", self.hint)
            return
        if self.engaged and self.asking and not self.away:
            self._pass_on()
        self.engaged = True
        self.prepare()
        if self.asking:
            self._show()
        else:
            self._annotator.set_mode(Mode.SUGGEST)

    def choose(self, number: int) -> None:
        """The event with this number holds."""
        found = self._asked()
        if found is None or not 1 <= number <= 1 + len(found[1].alternatives):
            return
        active, asked = found
        event = None if number == 1 else asked.alternatives[number - 2]
        self._reply(*found, lambda seconds: active.answer(asked, event, seconds=seconds))

    def point(self, row: int) -> None:
        """A click on a cell means the first listed event that leads there."""
        scene, found = self._session.scene, self._asked()
        if scene is None or found is None or row < 0:
            return
        asked = found[1]
        cell = int(scene.detections.frame[row]), int(scene.detections.label[row])
        if cell == asked.slot[1]:
            return
        number = number_of(asked, cell)
        if number is not None:
            self.choose(number)
            return
        self._session.message.emit(
            "info", "That cell is in none of the events listed; C, Y or M lets you click others."
        )

    def reject(self) -> None:
        """Not this."""
        found = self._asked()
        if found is not None:
            active, asked = found
            self._reply(*found, lambda seconds: active.reject(asked, seconds=seconds))

    def cannot_tell(self) -> None:
        """Somebody looked and could not say."""
        found = self._asked()
        if found is not None:
            active, asked = found
            self._reply(*found, lambda seconds: active.cannot_tell(asked, seconds=seconds))

    def turn(self) -> None:
        """Show the other frame."""
        if self._asked() is not None:
            self.turned.emit()

    def stop(self) -> None:
        """Stop asking; everything is kept."""
        self.engaged = False
        if self.asking:
            self._annotator.set_mode(Mode.REVIEW)

    def use_model(self) -> None:
        """Track with what was learned so far."""
        self._work.use_model()

    def close(self) -> None:
        """Keep what is not kept yet; the suggester is not used afterwards."""
        self._work.save()

    def subject(self, mode: Mode) -> int:
        """Row of the cell asked about, where an event of this kind can begin with it."""
        scene, asked = self._session.scene, self.current
        return -1 if scene is None or asked is None else subject_row(scene, asked, mode)

    # ------------------------------------------------------------------ the rest of the desk

    def _on_update(self) -> None:
        if self.engaged and self.asking and self.current is None and not self.problem:
            self._show()
        self._later(self._catch_up)
        self._announce()

    def _on_mode(self) -> None:
        before, self._mode = self._mode, self._annotator.picking.mode
        if self.asking:
            self.engaged = True
            self._show()
        elif self._mode == Mode.REVIEW and self.engaged:
            # Esc while the answer is clicked goes back to the question; at the question it ends.
            if before not in (Mode.SUGGEST, Mode.REVIEW) and self.current is not None:
                self._annotator.set_mode(Mode.SUGGEST)
                return
            self.engaged = False
        self._announce()

    def _on_progress(self, name: str, step: object) -> None:
        if name == JOB and step is None:
            self._announce()

    def _on_source(self) -> None:
        self._on_scene()
        self.stop()

    def _on_scene(self) -> None:
        self._work.forget()
        self.current = None
        self._announce()

    def _on_tracking(self) -> None:
        if self._wanted and self.active is None:
            self.prepare()
        self._announce()
