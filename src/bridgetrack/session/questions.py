"""Questions answered, in order, so that undo can ask them again.

How far active learning is, in plain words.

Answers to questions: written down, counted as effort, and followed through undo and redo.

Learning while people answer: the library's session, kept going and kept on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from psygnal import Signal

from bridgetrack.active.options import SessionOptions
from bridgetrack.active.records import Point
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.session_file import load_session, save_session
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.active.update import Update
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError, InputError, OutputError
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Steps
from bridgetrack.session.answers import Answers, questions_path
from bridgetrack.session.session import Session
from bridgetrack.session.training import Trainer


class Trail:
    """What was answered, and by which annotation."""

    def __init__(self) -> None:
        self._steps: list[tuple[Suggestion, Annotation]] = []

    def add(self, suggestion: Suggestion, annotation: Annotation) -> None:
        """A question was answered."""
        self._steps.append((suggestion, annotation))

    def taken_back(self, have: AnnotationSet) -> Suggestion | None:
        """The question whose answer is gone since, the latest; None where all are there."""
        back = None
        while self._steps and self._steps[-1][1].id not in have:
            back, _ = self._steps.pop()
        return back


def settled_by(have: AnnotationSet, suggestion: Suggestion) -> Annotation | None:
    """The annotation that answers a question; None where it is open.

    A rejection answers only the question about the very event that it rejects.
    """
    slots = set(suggestion.event.slots)
    for cell in dict.fromkeys(c.cell for c in suggestion.cells):
        for a in have.at(*cell):
            if a.kind == Kind.REJECT:
                if any(e.key == suggestion.event.key for e in a.events):
                    return a
            elif any(slots.intersection(e.slots) for e in a.events):
                return a
    return None


ROUGH = 0.2
"""Width of the interval from which on the estimate is called rough."""


@dataclass(frozen=True)
class Standing:
    """What the progress panel shows.

    Parameters
    ----------
    effort
        Clicks and minutes so far.
    accuracy
        The estimate with its interval, or what is missing for one.
    verdict
        The expected gain of more clicks, and whether to stop.
    stop
        Whether more answers are hardly worth the effort.
    points
        The progress curve, by rising clicks.
    """

    effort: str = "No answers yet."
    accuracy: str = "An estimate of accuracy appears after the first random questions."
    verdict: str = ""
    stop: bool = False
    points: tuple[Point, ...] = ()


def standing_of(active: ActiveSession | None) -> Standing:
    """Where a session stands."""
    if active is None:
        return Standing()
    effort = active.effort
    if not effort.clicks:
        return Standing()
    words = f"{effort.clicks} answer{'s' if effort.clicks != 1 else ''}"
    words = f"{words} in {_duration(effort.seconds)}."
    estimate = active.estimate()
    accuracy = Standing.accuracy if estimate is None else _sentence(estimate.words)
    verdict = active.verdict()
    advice = _sentence(verdict.words)
    if verdict.stop and (estimate is None or estimate.high - estimate.low > ROUGH):
        advice = f"{advice} The estimate below is still rough."
    return Standing(words, accuracy, advice, verdict.stop, curve(active))


def curve(active: ActiveSession) -> tuple[Point, ...]:
    """One point for each number of clicks, the latest, without those that were undone since."""
    clicks = active.effort.clicks
    latest = {p.clicks: p for p in active.points if p.clicks <= clicks}
    return tuple(latest[k] for k in sorted(latest))


def _duration(seconds: float) -> str:
    if seconds < 59.5:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.1f} minutes"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


PAUSE = 60.0
"""Seconds that an answer counts at most: more is a break."""

Give = Callable[[float], Annotation]
"""Gives an answer, told the seconds that it took."""


class Replies:
    """What was answered to which question.

    Attributes
    ----------
    writing
        Whether an answer is being written down just now.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._trail = Trail()
        self._since = 0.0
        self.writing = False

    def begin(self) -> None:
        """Start anew."""
        self._trail = Trail()

    def start_clock(self) -> None:
        """A question comes into view."""
        self._since = time.monotonic()

    def give(self, active: ActiveSession, asked: Suggestion, give: Give) -> bool:
        """Write an answer to the question in view down; whether that worked."""
        seconds = round(min(time.monotonic() - self._since, PAUSE), 2)
        return self._note(active, asked, lambda: give(seconds))

    def _note(
        self, active: ActiveSession, asked: Suggestion, give: Callable[[], Annotation]
    ) -> bool:
        self.writing = True
        try:
            noted = give()
        except BridgetrackError as error:
            self._session.message.emit("error", str(error))
            return False
        finally:
            self.writing = False
        self._trail.add(asked, noted)
        self._session.message.emit("info", f"Noted: {words_of(noted)}. Z takes it back.")
        return True

    def taken_back(self, active: ActiveSession) -> Suggestion | None:
        """Follow an undo; the question whose answer is gone, None where all are there."""
        return self._trail.taken_back(active.annotations)

    def take_over(self, active: ActiveSession, asked: Suggestion, found: Annotation) -> None:
        """Count an answer that came by another way, or that was redone."""
        seconds, event = found.seconds, found.events[0]
        if any(r.id == found.id for r in active.records):
            self._trail.add(asked, found)
        elif found.kind == Kind.CONFIRM:
            self._note(active, asked, lambda: active.answer(asked, event, seconds=seconds))
        elif found.kind == Kind.REJECT:
            self._note(active, asked, lambda: active.reject(asked, seconds=seconds))
        elif found.kind == Kind.CANNOT_TELL:
            self._note(active, asked, lambda: active.cannot_tell(asked, seconds=seconds))


def words_of(noted: Annotation) -> str:
    """An answer, as it is said back."""
    words = describe_event(noted.events[0])
    if noted.kind == Kind.CANNOT_TELL:
        return "you cannot tell"
    return f"not {words}" if noted.kind == Kind.REJECT else words


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
                return load_session(path, scene, answers)
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
