"""Questions about the open movie, their answers, and learning in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from psygnal import Signal

from bridgetrack.active.session import ActiveSession, Update
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.pipeline.tracking import known_solution
from bridgetrack.session.cells import CellNames
from bridgetrack.session.check import SampleCheck
from bridgetrack.session.training import Trainer
from bridgetrack.training.estimate import ErrorEstimate

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "suggest"
"""Name of the background work: learning and looking for questions."""

_REPLIES = {"yes": Kind.CONFIRM, "no": Kind.REJECT, "cannot tell": Kind.CANNOT_TELL}
"""Answers of a script to a question."""

PAUSE = 60.0
"""Most seconds that are counted for an answer: more is a break."""


class Questions:
    """Goes from question to question, and learns in between.

    Signals: `changed` when there is something to show, `look` with the question to bring into view,
    `wanted` when the next one should be shown while the user does something else.
    """

    changed = Signal()
    look = Signal(object)
    wanted = Signal()

    def __init__(self, movie: Session, trainer: Trainer) -> None:
        self._movie, self._trainer = movie, trainer
        # Calls something once the window has drawn.
        self.later: Callable[[Callable[[], None]], None] = lambda act: act()
        self.active: ActiveSession | None = None  # None before it began
        self.current: Suggestion | None = None  # the question in view
        # A sample of the tracks to be judged; while it runs, its questions come and no others.
        self.check = SampleCheck(movie)
        # The question for which cells were named, and how.
        self._named: tuple[Suggestion | None, CellNames] = None, CellNames(None)
        self.engaged = False  # whether questions are asked, also while an answer is clicked
        self.asking = False  # whether keys answer the question, see `take_keys`
        self.away = False  # whether the user went to other frames; set by the window
        self.problem = ""  # why learning failed last, empty where it did not
        self._prepared = self._writing = False
        self._since = 0.0
        movie.movie_changed.connect(self._on_movie)
        movie.scene_changed.connect(self._forget)
        movie.answers_changed.connect(self._follow_answers)
        movie.model_changed.connect(self._follow_model)
        movie.tracking_changed.connect(self._on_tracking)
        movie.progress.connect(self._on_progress)

    @property
    def busy(self) -> bool:
        """Whether it is learning."""
        return self._movie.busy(JOB)

    @property
    def report(self) -> str:
        """Its progress, in words."""
        return "" if self.active is None else self.active.report

    @property
    def curve(self) -> Mapping[int, ErrorEstimate]:
        """Estimates of accuracy by the number of questions answered, if narrow enough."""
        return {} if self.active is None else self.active.curve

    @property
    def ended(self) -> bool:
        """Whether no question is left."""
        return self.engaged and self.current is None and self._exhausted and not self.busy

    @property
    def _exhausted(self) -> bool:
        """Whether learning would find no more questions now."""
        return self.active is not None and (bool(self.problem) or self.active.exhausted)

    @property
    def denied(self) -> bool:
        """Whether no was said to the question in view, and not yet what happened instead."""
        active, asked = self.active, self.current
        if active is None or asked is None or asked.sampled:
            return False
        said = active.settled_by(asked)
        return said is not None and said.kind == Kind.REJECT

    def name(self, cell: CellRef) -> str:
        """Name of a cell: the same during a question and its follow-up."""
        if self.current is None or not self.engaged:
            return self._movie.names(cell)
        if self._named[0] is not self.current:
            self._named = self.current, self._movie.names
        return self._named[1](cell)

    @property
    def in_view(self) -> float:
        """Seconds since the question came into view."""
        return time.monotonic() - self._since

    # ------------------------------------------------------------------ from one to the next

    def prepare(self) -> None:
        """Compute the first questions ahead, as soon as the movie is tracked."""
        self._prepared = True
        movie = self._movie
        scene, answers = movie.scene, movie.answers
        if scene is None or answers is None or movie.tracking is None:
            return
        if self.active is None:
            self.active = ActiveSession(scene, movie.settings.start, answers)
            self.changed.emit()
            self._update()

    def show(self) -> None:
        """Bring the question into view, the next one where there is none."""
        if self.current is None:
            self.current = self._next()
        if self.current is not None:
            self.away = False
            self._since = time.monotonic()
            self.look.emit(self.current)
        elif not self._exhausted:
            self._update()
        self.changed.emit()

    def _next(self) -> Suggestion | None:
        """The next question of the sample, or of the queue."""
        asker = self.check if self.check.running else self.active
        return None if asker is None else asker.next()

    def take_keys(self, asking: bool) -> None:
        """Set whether keys answer the question."""
        self.asking = asking
        if asking:
            self.engaged = True
            self.show()
            return
        if not self.engaged:
            if self.check.running or self.denied:
                self.current = None
            self.check.stop()
        self.changed.emit()

    def check_sample(self, count: int) -> None:
        """Ask about some events of the present tracks that are drawn at random.

        Raises
        ------
        InputError
            Where there are no tracks, or nothing is left to ask.
        """
        self.check.begin(count)
        self.current = None
        self.wanted.emit()

    def take_back(self) -> bool:
        """Ask again about the event of the sample that was judged last; whether there is one."""
        back = self.check.take_back()
        if back:
            self.current = None
            self.wanted.emit()
        return back

    def pass_on(self, asked: Suggestion) -> None:
        """Ask a question later."""
        if self.denied:
            self._advance()
        elif asked.sampled or self.active is None:
            words = "This is the next question. Press U if you cannot tell."
            self._movie.message.emit("hint", words)
        else:
            self.active.postpone(asked)
            self.current = self._next()
            if self.current is asked:
                self._movie.message.emit("hint", "This is the only question at the moment.")

    def _advance(self) -> None:
        """Go to the next question at once; everything else follows."""
        self.current = None
        if self.check.running and self.check.next() is None:
            self._movie.message.emit("info", self.check.words)
            self.engaged = False
            self.check.stop()
            self.changed.emit()
        elif self.asking:
            self.show()
        elif self.engaged:
            self.wanted.emit()
        else:
            self.changed.emit()
        self.later(self._catch_up)

    # ------------------------------------------------------------------ answers

    def answered_by(self, kind: Kind, event: EventRef) -> bool:
        """Take an answer given elsewhere as that to the question in view; returns whether it is."""
        asked = self.current
        if asked is None or asked.sampled:
            return False
        if kind == Kind.CONFIRM and asked.slot in event.slots:
            self.reply(asked, kind, event)
        elif kind != Kind.CONFIRM and event.key == asked.event.key:
            self.reply(asked, kind)
        else:
            return False
        return True

    def reply(self, asked: Suggestion, kind: Kind, event: EventRef | None = None) -> None:
        """Answer that an event holds, does not hold, or cannot be told.

        `event` is one that holds in place of the proposed one.
        """
        if (self.denied and kind != Kind.CONFIRM) or self._write(asked, kind, event):
            self._advance()

    def say(self, asked: Suggestion, answer: str | int | EventRef) -> None:
        """Answer a question in the words of a script, see `Session.answer`."""
        if isinstance(answer, bool):  # which is an int, too
            answer = "yes" if answer else "no"
        if answer == "skip":
            self.pass_on(asked)
        elif isinstance(answer, EventRef):
            self.reply(asked, Kind.CONFIRM, answer)
        elif isinstance(answer, str) and answer in _REPLIES:
            self.reply(asked, _REPLIES[answer])
        elif isinstance(answer, int) and 0 <= answer < len(asked.alternatives):
            self.reply(asked, Kind.CONFIRM, asked.alternatives[answer])
        else:
            raise InputError(
                f"{answer!r} is not an answer to this question: say 'yes', 'no', 'cannot tell' or "
                f"'skip', a number below {len(asked.alternatives)} for one of its "
                "alternatives, or the event that is right"
            )

    def deny(self, asked: Suggestion) -> None:
        """Answer that an event is wrong; then ask what happened instead.

        That is not asked if the question has no alternatives, or if it was asked already.
        """
        if self.denied or not asked.alternatives:
            self.reply(asked, Kind.REJECT)
        elif self._write(asked, Kind.REJECT, None):
            self._since = time.monotonic()
            self.changed.emit()

    def _write(self, asked: Suggestion, kind: Kind, event: EventRef | None) -> bool:
        """Save an answer; returns whether that worked."""
        active = self.active
        seconds = round(min(self.in_view, PAUSE), 2)
        self._writing = True
        try:
            if asked.sampled:
                self.check.judge(asked, kind)
            elif active is not None:
                noted = active.answer(asked, event, kind, seconds=seconds)
                self._movie.message.emit("info", f"Saved: {self._movie.words_of(noted)}.")
        except BridgetrackError as error:
            self._movie.tell(error)
            return False
        finally:
            self._writing = False
        return True

    def _follow_answers(self) -> None:
        """Follow answers: own ones, those given by other ways, undo and redo."""
        if self._writing:
            return
        self.problem = ""
        active, asked = self.active, self.current
        if active is not None and not self.check.running:
            if (back := active.reopened()) is not None:
                self.current = back if self.engaged else None
                if self.engaged:
                    self.show()
            elif asked is not None and active.settled_by(asked) is not None:
                active.remember(asked)
                self._advance()
                return
        self._settle()
        if self.check.running and not self.asking:
            self.wanted.emit()

    # ------------------------------------------------------------------ learning

    def _update(self) -> None:
        """Learn in the background, from the present answers."""
        active = self.active
        if active is None or self.busy:
            return
        self.problem = ""
        steps = active.update(self._movie.tracking)
        self._movie.run(JOB, lambda: steps, lambda made: self._adopt(active, made), self._failed)

    def _adopt(self, active: ActiveSession, update: Update) -> None:
        active.adopt(update)
        tracking = self._movie.tracking
        if tracking and known_solution(tracking, update.scene, update.learned.weights):
            # The certainty of a question is that beside its cell.
            margins = tracking.margins.copy()
            for asked in update.suggestions:
                margins[asked.hypothesis] = asked.margin
            self._movie.tracking = replace(tracking, margins=margins)
        self._updated()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self._updated()

    def _updated(self) -> None:
        if self.asking and self.current is None and not self.problem:
            self.show()
        self._settle()

    def _settle(self) -> None:
        """Show the change, and learn once it is in view."""
        self.later(self._catch_up)
        self.changed.emit()

    def _catch_up(self) -> None:
        """Learn, once the next question is in view."""
        if self.active is not None and not self.problem and self.active.wants_update:
            self._update()

    # ------------------------------------------------------------------ models

    def _follow_model(self) -> None:
        """Start from another model, unless it was learned from these very answers."""
        movie, old, training = self._movie, self.active, self._trainer.training
        learned = training is not None and movie.model is training.model
        if learned or old is None or movie.scene is None or movie.answers is None:
            return
        movie.cancel(JOB)
        old.begin_anew(movie.scene, movie.settings.start)
        self._update()

    # ------------------------------------------------------------------ what happens elsewhere

    def _on_movie(self) -> None:
        self.engaged = False
        self._forget()

    def _forget(self) -> None:
        """End it; the answers stay."""
        self._movie.cancel(JOB)
        self.active = self.current = None
        self._named = None, CellNames(None)
        self.problem = ""
        self.changed.emit()

    def _on_tracking(self) -> None:
        if self._prepared and self.active is None:
            self.prepare()
        self.changed.emit()

    def _on_progress(self, name: str, step: object) -> None:
        if name == JOB and step is None:
            self.changed.emit()
