"""What clicks on cells and keys of events mean while a question is in view.

The question in view, and the way from one to the next.

The model asks and people answer: the controller behind *Suggest next*, without Qt.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from psygnal import Signal

from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation
from bridgetrack.pipeline.scene import Scene
from bridgetrack.session.questions import (
    JOB,
    AskingWork,
    Give,
    Replies,
    Standing,
    settled_by,
    standing_of,
)
from bridgetrack.session.session import Session
from bridgetrack.session.training import Trainer
from bridgetrack.ui import question_queue
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.picking import Mode

_FATE = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.MERGE, Mode.SPLIT, Mode.FALSE)
_HISTORY = (Mode.APPEAR, Mode.FALSE)


def number_of(asked: Suggestion, cell: tuple[int, int]) -> int | None:
    """Number of the first listed event that a cell takes part in, from 1; None without one."""
    for number, event in enumerate((asked.event, *asked.alternatives), 1):
        if cell in [c.cell for c in event.cells]:
            return number
    return None


def subject_row(scene: Scene, asked: Suggestion, mode: Mode) -> int:
    """Row of the cell asked about, where an event of this kind can begin with it; else -1."""
    fits = _HISTORY if asked.slot[0] == "history" else _FATE
    return scene.detections.row_of(*asked.slot[1]) if mode in fits else -1


Later = Callable[[Callable[[], None]], None]
"""Does something when the window has drawn what it shows."""


class Questioning:
    """Goes from question to question, and learns meanwhile.

    Signals: `changed` when there is something to show, `look` with the suggestion that is to be
    brought into view, `settling` with True before and False after an answer is written down and
    the next question is found.

    Attributes
    ----------
    current
        The question in view, None while there is none.
    engaged
        Whether people are answering questions (also while they click the answer).
    away
        Whether they look elsewhere meanwhile; the view sets this.
    """

    changed = Signal()
    look = Signal(object)
    settling = Signal(bool)

    def __init__(
        self, session: Session, annotator: Annotator, work: AskingWork, later: Later | None = None
    ) -> None:
        self._session, self._annotator, self._work = session, annotator, work
        self._later: Later = later or (lambda act: act())
        self._replies = Replies(session)
        self._standing: Standing | None = None
        self.current: Suggestion | None = None
        self.engaged = self.away = False

    # ------------------------------------------------------------------ state

    @property
    def active(self) -> ActiveSession | None:
        """The library's session; None until it could begin."""
        return self._work.active

    @property
    def asking(self) -> bool:
        """Whether keys answer questions."""
        return self._annotator.picking.mode == Mode.SUGGEST

    @property
    def busy(self) -> bool:
        """Whether it is learning."""
        return self._work.busy

    @property
    def problem(self) -> str:
        """Why learning failed last, empty where it did not."""
        return self._work.problem

    @property
    def path(self) -> Path | None:
        """Where the state is kept: beside the annotations."""
        return self._work.path

    @property
    def standing(self) -> Standing:
        """How far it is, in words."""
        if self._standing is None:
            self._standing = standing_of(self.active)
        return self._standing

    # ------------------------------------------------------------------ from one to the next

    def _begin(self) -> None:
        """Compute the first questions ahead, where that is possible by now."""
        if self.active is None and self._work.begin():
            self._replies.begin()
            self._announce()
            self._work.update()

    def _show(self) -> None:
        """Bring the question into view, the next one where there is none."""
        active = self.active
        if active is not None and self.current is None:
            self.current = question_queue.next_of(active)
        if self.current is not None:
            self.away = False
            self._replies.start_clock()
            self.look.emit(self.current)
        elif active is not None and not self._work.exhausted:
            self._work.update()
        self._announce()

    def _advance(self) -> None:
        """Go to the next question at once; everything else comes after."""
        self.current = None
        if self.asking:
            self._show()
        elif self.engaged:
            self._annotator.set_mode(Mode.SUGGEST)
        else:
            self._announce()
        self._keep()

    def _pass_on(self) -> None:
        """Ask the present question later."""
        active, asked = self.active, self.current
        if active is None or asked is None:
            return
        if question_queue.ask_later(active, asked):
            self.current = None
        else:
            self._session.message.emit("info", "This is the only question at the moment.")

    def _ask_again(self, active: ActiveSession, asked: Suggestion) -> None:
        """An answer was taken back."""
        question_queue.ask_again(active, asked, self.current)
        self.current = asked if self.engaged else None
        if self.engaged:
            self._show()
        self._keep()
        self._announce()

    # ------------------------------------------------------------------ answers

    def _reply(self, active: ActiveSession, asked: Suggestion, give: Give) -> None:
        self.settling.emit(True)
        try:
            if self._replies.give(active, asked, give):
                self._advance()
        finally:
            self.settling.emit(False)

    def _follow_answers(self) -> None:
        """Follow answers: own ones, those given by other ways, undo and redo."""
        self._work.note_change()
        active, asked = self.active, self.current
        if active is None or self._replies.writing:
            return
        back = self._replies.taken_back(active)
        found = None
        if asked is not None and not asked.again:
            found = settled_by(active.annotations, asked)
        if back is not None:
            self._ask_again(active, back)
        elif found is not None and asked is not None:
            self._take_over(active, asked, found)
        else:
            self._keep()
            self._announce()

    def _take_over(self, active: ActiveSession, asked: Suggestion, found: Annotation) -> None:
        """The question was answered by another way, or its answer was redone."""
        self._replies.take_over(active, asked, found)
        question_queue.drop(active, asked)
        self._advance()

    # ------------------------------------------------------------------ afterwards

    def _keep(self) -> None:
        """Save and learn, once the next question is in view."""
        self._work.touch()
        self._later(self._catch_up)

    def _catch_up(self) -> None:
        self._work.save()
        self._work.update_if_due()

    def _announce(self) -> None:
        self._standing = None
        self.changed.emit()


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
