"""The model asks and people answer: the controller behind *Suggest next*, without Qt."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from psygnal import Signal

from bridgetrack.active.session import ActiveSession, SessionOptions, Update
from bridgetrack.active.session_file import load_session, save_session
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.answers import SUFFIX as ANSWERS
from bridgetrack.ui.answers import Answers
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.session import Session
from bridgetrack.ui.standing import Standing, standing_of
from bridgetrack.ui.trail import Trail, settled_by
from bridgetrack.ui.trainer import Trainer

JOB = "suggest"
"""Name of the background work: learning and looking for questions."""

SUFFIX = ".suggestions.json"
LOW = 4
"""Questions ahead below which new ones are looked for."""

PAUSE = 60.0
"""Seconds that an answer counts at most: more is a break."""

_FATE = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.MERGE, Mode.SPLIT, Mode.FALSE)
_HISTORY = (Mode.APPEAR, Mode.FALSE)


class Suggester:
    """Asks question after question, learns from the answers, and knows when it is enough.

    Signals: `changed` when there is something to show, `look` with the suggestion that is to be
    brought into view, `turned` when its other frame is wanted.

    Attributes
    ----------
    active
        The library's session; None until `prepare` could begin.
    current
        The question in view, None while there is none.
    engaged
        Whether people are answering questions (also while they click the answer).
    away
        Whether they look elsewhere meanwhile; the view sets this.
    problem
        Why learning failed last, empty where it did not.
    """

    changed = Signal()
    look = Signal(object)
    turned = Signal()

    def __init__(
        self,
        session: Session,
        annotator: Annotator,
        trainer: Trainer,
        options: SessionOptions | None = None,
    ) -> None:
        self._session, self._annotator, self._trainer = session, annotator, trainer
        self._options = options
        self.active: ActiveSession | None = None
        self.current: Suggestion | None = None
        self.engaged = self.away = False
        self.problem = ""
        self._wanted = self._replying = self._exhausted = False
        self._mode = annotator.picking.mode
        self._changes = 0
        self._given: Model | None = None
        self._standing: Standing | None = None
        self._since = 0.0
        annotator.asker = self
        annotator.mode_changed.connect(self._on_mode)
        session.source_changed.connect(self._on_source)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._on_answers)
        session.model_changed.connect(self._on_model)
        session.tracking_changed.connect(self._on_tracking)
        session.progress.connect(self._on_progress)

    # ------------------------------------------------------------------ state

    @property
    def asking(self) -> bool:
        """Whether keys answer questions."""
        return self._annotator.picking.mode == Mode.SUGGEST

    @property
    def busy(self) -> bool:
        """Whether it is learning."""
        return self._session.busy(JOB)

    @property
    def standing(self) -> Standing:
        """How far it is, in words."""
        if self._standing is None:
            self._standing = standing_of(self.active)
        return self._standing

    @property
    def path(self) -> Path | None:
        """Where the state is kept: beside the annotations."""
        answers = self._session.answers
        if answers is None:
            return None
        return answers.path.with_name(answers.path.name.removesuffix(ANSWERS) + SUFFIX)

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
        session = self._session
        if self.active is not None or session.tracking is None:
            return
        scene, answers = session.scene, session.answers
        if scene is None or answers is None:
            return
        try:
            self.active = self._resumed(scene, answers)
        except BridgetrackError as error:
            self.problem = str(error)
            session.message.emit("error", str(error))
            return
        self._trail = Trail(answers.annotations, self.active.records)
        self._announce()
        self._update()

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
        if self.active is not None:
            self._given = self.active.model
            self._session.set_model(self._given)

    def cancel(self) -> None:
        """End learning; what was learned before stays."""
        self._session.cancel(JOB)

    def subject(self, mode: Mode) -> int:
        """Row of the cell asked about, where an event of this kind can begin with it."""
        scene, asked = self._session.scene, self.current
        if scene is None or asked is None:
            return -1
        fits = _HISTORY if asked.slot[0] == "history" else _FATE
        return scene.detections.row_of(*asked.slot[1]) if mode in fits else -1

    # ------------------------------------------------------------------ answers

    def _asked(self) -> Suggestion | None:
        """The question in view; says so where there is none."""
        if self.current is None:
            self._session.message.emit("info", self.hint)
        return self.current

    def _reply(self, asked: Suggestion, give: Callable[[float], Annotation]) -> None:
        seconds = round(min(time.monotonic() - self._since, PAUSE), 2)
        if self._noting(asked, lambda: give(seconds)):
            self._advance()

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

    def _advance(self) -> None:
        """Go to the next question at once; everything else comes after."""
        self.current = None
        if self.engaged and not self.asking:
            self._annotator.set_mode(Mode.SUGGEST)
        else:
            self._show()
        self._save()
        self._update_if_due()

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

    def _show(self) -> None:
        """Bring the question into view, the next one where there is none."""
        active = self.active
        if active is not None and self.current is None:
            have = active.annotations
            self.current = next((s for s in active.queue if settled_by(have, s) is None), None)
        if self.current is not None:
            self.away = False
            self._since = time.monotonic()
            self.look.emit(self.current)
        elif active is not None and not self._exhausted:
            self._update()
        self._announce()

    def _on_answers(self) -> None:
        """Follow answers: own ones, those given by other ways, undo and redo."""
        self._changes += 1
        self._exhausted = False
        active = self.active
        if active is None or self._replying:
            return
        have = active.annotations
        active.records = self._trail.true_records(have, active.records)
        back = self._trail.taken_back(have)
        if back is not None:
            self._ask_again(back)
            return
        found = None if self.current is None else settled_by(have, self.current)
        if found is not None and self.current is not None:
            self._take_over(self.current, found)
        else:
            self._save()
            self._update_if_due()
            self._announce()

    def _ask_again(self, asked: Suggestion) -> None:
        """An answer was taken back."""
        active, before = self.active, self.current
        if active is None:
            return
        rest = tuple(s for s in active.queue if s.slot != asked.slot)
        if before is not None and all(s.slot != before.slot for s in rest):
            rest = (before, *rest)
        active.queue = (asked, *rest)
        self.current = asked if self.engaged else None
        if self.engaged:
            self._show()
        self._save()
        self._announce()

    def _take_over(self, asked: Suggestion, found: Annotation) -> None:
        """The question was answered by another way, or its answer was redone."""
        active = self.active
        assert active is not None
        known = any(r.id == found.id for r in active.records)
        if known:
            self._trail.add(asked, found)
        elif found.kind == Kind.CONFIRM:
            event, seconds = found.events[0], found.seconds
            self._noting(asked, lambda: active.answer(asked, event, seconds=seconds))
        elif found.kind == Kind.REJECT:
            self._noting(asked, lambda: active.reject(asked, seconds=found.seconds))
        elif found.kind == Kind.CANNOT_TELL:
            self._noting(asked, lambda: active.cannot_tell(asked, seconds=found.seconds))
        self._drop(asked)
        self._advance()

    def _drop(self, asked: Suggestion) -> None:
        if self.active is not None:
            self.active.queue = tuple(s for s in self.active.queue if s.slot != asked.slot)

    # ------------------------------------------------------------------ learning

    def _update(self) -> None:
        """Learn in the background, from what is known now."""
        active = self.active
        if active is None or self.busy:
            return
        self.problem, self._changes = "", 0
        try:
            steps = active.update()
        except BridgetrackError as error:
            self._failed(error)
            return
        self._session.run(JOB, lambda: steps, lambda u: self._updated(active, u), self._failed)

    def _update_if_due(self) -> None:
        active = self.active
        if active is None or not self._changes:
            return
        few = len(active.queue) < LOW
        if few or active.wants_update or self._changes >= active.options.update_every:
            self._update()

    def _updated(self, active: ActiveSession, update: Update) -> None:
        if active is not self.active:
            return
        clicks = active.effort.clicks
        active.points = tuple(p for p in active.points if p.clicks <= clicks)
        active.adopt(update)
        self._exhausted = not active.queue
        if self.engaged and self.asking and self.current is None:
            self._show()
        self._save()
        self._update_if_due()
        self._announce()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self._exhausted = True
        self._announce()

    def _on_progress(self, name: str, step: object) -> None:
        if name == JOB and step is None:
            self._announce()

    # ------------------------------------------------------------------ keeping

    def _resumed(self, scene: Scene, answers: Answers) -> ActiveSession:
        path = self.path
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
        return ActiveSession(scene, self._session.model, answers, self._options)

    def _save(self) -> None:
        active, path = self.active, self.path
        if active is None or path is None or not active.records:
            return
        try:
            save_session(active, path)
        except OutputError as error:
            self._session.message.emit("error", str(error))

    # ------------------------------------------------------------------ the rest of the desk

    def _announce(self) -> None:
        self._standing = None
        self.changed.emit()

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
            self._save()
        self._announce()

    def _forget(self) -> None:
        self._session.cancel(JOB)
        self.active = self.current = None
        self.problem, self._exhausted = "", False

    def _on_source(self) -> None:
        self._forget()
        self.stop()
        self._announce()

    def _on_scene(self) -> None:
        self._forget()
        self._announce()

    def _on_tracking(self) -> None:
        if self._wanted and self.active is None:
            self.prepare()
        self._announce()

    def _on_model(self) -> None:
        """Start from another model, unless it was learned from these very answers."""
        model, training = self._session.model, self._trainer.training
        learned = model is self._given or (training is not None and model is training.model)
        old, scene, answers = self.active, self._session.scene, self._session.answers
        if learned or old is None or scene is None or answers is None:
            return
        self.cancel()
        new = ActiveSession(scene, model, answers, old.options)
        new.skipped, new.records, new.points = old.skipped, old.records, old.points
        self.active = new
        self._update()


def _words(noted: Annotation) -> str:
    words = describe_event(noted.events[0])
    if noted.kind == Kind.CANNOT_TELL:
        return "you cannot tell"
    return f"not {words}" if noted.kind == Kind.REJECT else words
