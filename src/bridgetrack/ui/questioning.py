"""The question in view, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from psygnal import Signal

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation
from bridgetrack.ui import question_queue
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.asking_work import AskingWork
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.replies import Give, Replies
from bridgetrack.ui.session import Session
from bridgetrack.ui.standing import Standing, standing_of
from bridgetrack.ui.trail import settled_by

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
            self._replies.begin(self.active)
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
