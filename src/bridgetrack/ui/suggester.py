"""The model asks and people answer: the controller behind *Suggest next*, without Qt."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from psygnal import Signal

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.active.update import SessionOptions
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.asking_work import JOB, AskingWork
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.session import Session
from bridgetrack.ui.standing import Standing, standing_of
from bridgetrack.ui.trail import Trail, settled_by
from bridgetrack.ui.trainer import Trainer

Later = Callable[[Callable[[], None]], None]
"""Does something when the window has drawn what it shows."""

PAUSE = 60.0
"""Seconds that an answer counts at most: more is a break."""

_FATE = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.MERGE, Mode.SPLIT, Mode.FALSE)
_HISTORY = (Mode.APPEAR, Mode.FALSE)


class Suggester:
    """Asks question after question, learns from the answers, and knows when it is enough.

    Signals: `changed` when there is something to show, `look` with the suggestion that is to be
    brought into view, `turned` when its other frame is wanted, `settling` with True before and
    False after an answer is written down and the next question is found.

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
    turned = Signal()
    settling = Signal(bool)

    def __init__(
        self,
        session: Session,
        annotator: Annotator,
        trainer: Trainer,
        options: SessionOptions | None = None,
        later: Later | None = None,
    ) -> None:
        self._session, self._annotator = session, annotator
        self._work = AskingWork(session, trainer, options)
        self._later: Later = later or (lambda act: act())
        self.current: Suggestion | None = None
        self.engaged = self.away = False
        self._wanted = self._replying = False
        self._mode = annotator.picking.mode
        self._standing: Standing | None = None
        self._trail = Trail()
        self._since = 0.0
        annotator.asker = self
        annotator.mode_changed.connect(self._on_mode)
        session.source_changed.connect(self._on_source)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._on_answers)
        session.model_changed.connect(self._work.follow_model)
        session.tracking_changed.connect(self._on_tracking)
        session.progress.connect(self._on_progress)
        self._work.updated.connect(self._on_update)

    # ------------------------------------------------------------------ state

    @property
    def active(self) -> ActiveSession | None:
        """The library's session; None until `prepare` could begin."""
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

    # ------------------------------------------------------------------ intents

    def prepare(self) -> None:
        """Compute the first questions ahead, as soon as the movie is tracked."""
        self._wanted = True
        if self.active is None and self._work.begin():
            active, have = self.active, self._session.annotations
            self._trail = Trail(have, () if active is None else active.records)
            self._announce()
            self._work.update()

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
        active, asked = self.active, self._asked()
        if active is None or asked is None or not 1 <= number <= 1 + len(asked.alternatives):
            return
        event = None if number == 1 else asked.alternatives[number - 2]
        self._reply(asked, lambda seconds: active.answer(asked, event, seconds=seconds))

    def point(self, row: int) -> None:
        """A click on a cell means the first listed event that leads there."""
        scene, asked = self._session.scene, self._asked()
        if scene is None or asked is None or row < 0:
            return
        cell = int(scene.detections.frame[row]), int(scene.detections.label[row])
        if cell == asked.slot[1]:
            return
        for number, event in enumerate((asked.event, *asked.alternatives), 1):
            if cell in [c.cell for c in event.cells]:
                self.choose(number)
                return
        self._session.message.emit(
            "info", "That cell is in none of the events listed; C, Y or M lets you click others."
        )

    def reject(self) -> None:
        """Not this."""
        active, asked = self.active, self._asked()
        if active is not None and asked is not None:
            self._reply(asked, lambda seconds: active.reject(asked, seconds=seconds))

    def cannot_tell(self) -> None:
        """Somebody looked and could not say."""
        active, asked = self.active, self._asked()
        if active is not None and asked is not None:
            self._reply(asked, lambda seconds: active.cannot_tell(asked, seconds=seconds))

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
        if scene is None or asked is None:
            return -1
        fits = _HISTORY if asked.slot[0] == "history" else _FATE
        return scene.detections.row_of(*asked.slot[1]) if mode in fits else -1

    # ------------------------------------------------------------------ questions

    def _show(self) -> None:
        """Bring the question into view, the next one where there is none."""
        active = self.active
        if active is not None and self.current is None:
            self.current = next_of(active)
        if self.current is not None:
            self.away = False
            self._since = time.monotonic()
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
        others = tuple(s for s in active.queue if s.slot != asked.slot)
        if not others:
            self._session.message.emit("info", "This is the only question at the moment.")
            return
        active.queue = (*others, asked)
        self.current = None

    def _ask_again(self, asked: Suggestion) -> None:
        """An answer was taken back."""
        active, before = self.active, self.current
        assert active is not None
        rest = tuple(s for s in active.queue if s.slot != asked.slot)
        if before is not None and all(s.slot != before.slot for s in rest):
            rest = (before, *rest)
        active.queue = (asked, *rest)
        self.current = asked if self.engaged else None
        if self.engaged:
            self._show()
        self._keep()
        self._announce()

    # ------------------------------------------------------------------ answers

    def _asked(self) -> Suggestion | None:
        """The question in view; says so where there is none."""
        if self.current is None:
            self._session.message.emit("info", self.hint)
        return self.current

    def _reply(self, asked: Suggestion, give: Callable[[float], Annotation]) -> None:
        seconds = round(min(time.monotonic() - self._since, PAUSE), 2)
        self.settling.emit(True)
        try:
            if self._noting(asked, lambda: give(seconds)):
                self._advance()
        finally:
            self.settling.emit(False)

    def _noting(self, asked: Suggestion, give: Callable[[], Annotation]) -> bool:
        """Record an answer; whether that worked."""
        self._replying = True
        try:
            noted = give()
        except BridgetrackError as error:
            self._session.message.emit("error", str(error))
            return False
        finally:
            self._replying = False
        self._trail.add(asked, noted)
        if self.active is not None:
            # After an undo the same id may have been given again.
            *older, last = self.active.records
            self.active.records = (*(r for r in older if r.id != last.id), last)
        self._session.message.emit("info", f"Noted: {_words(noted)}. Z takes it back.")
        return True

    def _on_answers(self) -> None:
        """Follow answers: own ones, those given by other ways, undo and redo."""
        self._work.changes += 1
        self._work.exhausted = False
        active = self.active
        if active is None or self._replying:
            return
        have = active.annotations
        active.records = self._trail.true_records(have, active.records)
        back = self._trail.taken_back(have)
        found = None if self.current is None else settled_by(have, self.current)
        if back is not None:
            self._ask_again(back)
        elif found is not None and self.current is not None:
            self._take_over(self.current, found)
        else:
            self._keep()
            self._announce()

    def _take_over(self, asked: Suggestion, found: Annotation) -> None:
        """The question was answered by another way, or its answer was redone."""
        active = self.active
        assert active is not None
        seconds = found.seconds
        if any(r.id == found.id for r in active.records):
            self._trail.add(asked, found)
        elif found.kind == Kind.CONFIRM:
            event = found.events[0]
            self._noting(asked, lambda: active.answer(asked, event, seconds=seconds))
        elif found.kind == Kind.REJECT:
            self._noting(asked, lambda: active.reject(asked, seconds=seconds))
        elif found.kind == Kind.CANNOT_TELL:
            self._noting(asked, lambda: active.cannot_tell(asked, seconds=seconds))
        active.queue = tuple(s for s in active.queue if s.slot != asked.slot)
        self._advance()

    def _keep(self) -> None:
        """Save and learn, once the next question is in view."""
        self._work.touch()
        self._later(self._catch_up)

    def _catch_up(self) -> None:
        self._work.save()
        self._work.update_if_due()

    # ------------------------------------------------------------------ the rest of the desk

    def _announce(self) -> None:
        self._standing = None
        self.changed.emit()

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


def next_of(active: ActiveSession) -> Suggestion | None:
    """The first open question of the queue, or its first random one where one is owed.

    Answers given while an update was under way would else keep their share below what it should be.
    """
    have, counted = active.annotations, active.counted
    left = [s for s in active.queue if settled_by(have, s) is None]
    due = int((len(counted) + 1) * active.options.suggest.random_share + 1e-9)
    if sum(r.random for r in counted) < due:
        left.sort(key=lambda s: not s.random)
    return left[0] if left else None


def _words(noted: Annotation) -> str:
    words = describe_event(noted.events[0])
    if noted.kind == Kind.CANNOT_TELL:
        return "you cannot tell"
    return f"not {words}" if noted.kind == Kind.REJECT else words
