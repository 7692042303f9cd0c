"""Answers to questions: written down, counted as effort, and followed through undo and redo."""

from __future__ import annotations

import time
from collections.abc import Callable

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.words import describe_event
from bridgetrack.errors import BridgetrackError
from bridgetrack.ui.session import Session
from bridgetrack.ui.trail import Trail

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

    def begin(self, active: ActiveSession | None) -> None:
        """Start with what a session holds already."""
        records = () if active is None else active.records
        self._trail = Trail(self._session.annotations, records)

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
        # After an undo the same id may have been given again.
        *older, last = active.records
        active.records = (*(r for r in older if r.id != last.id), last)
        self._session.message.emit("info", f"Noted: {words_of(noted)}. Z takes it back.")
        return True

    def taken_back(self, active: ActiveSession) -> Suggestion | None:
        """Follow an undo; the question whose answer is gone, None where all are there."""
        have = active.annotations
        active.records = self._trail.true_records(have, active.records)
        return self._trail.taken_back(have)

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
