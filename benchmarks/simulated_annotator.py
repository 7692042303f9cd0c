"""A simulated annotator who answers suggestions from ground truth."""

from __future__ import annotations

import numpy as np

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Slot
from bridgetrack.annotations.truth import Mistakes, check_rates
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Events
from bridgetrack.progress import Progress, Steps


class SimulatedAnnotator:
    """Answers questions about slots from the true events of a movie.

    Parameters
    ----------
    events
        True events in rows of the detections (`bridgetrack.annotations.truth.read_events`).
    detections
        The detections.
    wrong
        Rate of wrong answers: a plausible other event of the cell that is asked about, see
        `bridgetrack.annotations.truth.Mistakes`.
    seed
        Of wrong answers. An answer depends on the question and the seed only, not
        on what was asked before; a second look is as likely to be wrong as the first, and does
        not depend on it.

    Raises
    ------
    InputError
        Where a rate is out of range.
    """

    def __init__(
        self,
        events: Events,
        detections: Detections,
        wrong: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_rates(wrong, 0.0)
        self._events, self._detections = events, detections
        self._refs = event_refs(detections, events)
        self._of: dict[Slot, int] = {
            slot: k for k, ref in enumerate(self._refs) for slot in ref.slots
        }
        rng = np.random.default_rng(seed)
        self._moods = rng.random(len(events)), rng.random(len(events))
        self._wrong = wrong
        nothing = events.take(np.zeros(0, dtype=np.int64))
        self._mistakes = Mistakes(detections, nothing)

    def truth(self, slot: Slot) -> EventRef | None:
        """The true event of a slot; None where the truth says nothing."""
        k = self._of.get(slot)
        return None if k is None else self._refs[k]

    def _row(self, slot: Slot) -> int:
        """A slot as the detections number it: fates first, then histories."""
        what, cell = slot
        return self._detections.row_of(*cell) + len(self._detections) * (what == "history")

    def reply(self, suggestion: Suggestion) -> EventRef | None:
        """The event that is said to hold; None where the truth says nothing."""
        k = self._of.get(suggestion.slot)
        if k is None:
            return None
        if self._moods[bool(suggestion.again)][k] < self._wrong:
            false = self._mistakes.instead_of(self._events, k, self._row(suggestion.slot))
            if false is not None:
                return event_refs(self._detections, false)[0]
        return self._refs[k]


def answer_by(
    session: ActiveSession,
    annotator: SimulatedAnnotator,
    suggestion: Suggestion,
    seconds: float = 3.0,
) -> Annotation:
    """Let a simulated annotator answer one suggestion."""
    event = annotator.reply(suggestion)
    if event is None:
        return session.cannot_tell(suggestion, seconds=seconds)
    return session.answer(suggestion, event, seconds=seconds)


def simulate_session(
    session: ActiveSession, annotator: SimulatedAnnotator, clicks: int
) -> Steps[int]:
    """Answer up to a number of suggestions, updating the model whenever the session asks for it.

    Returns
    -------
    int
        How many were answered: fewer where nothing is left to ask.
    """
    session.adopt((yield from session.update()))
    for done in range(clicks):
        suggestion = session.next()
        if suggestion is None:
            session.adopt((yield from session.update()))
            suggestion = session.next()
            if suggestion is None:
                return done
        answer_by(session, annotator, suggestion)
        yield Progress("Answering", (done + 1) / clicks)
        if session.wants_update and done + 1 < clicks:
            session.adopt((yield from session.update()))
    session.adopt((yield from session.update()))
    return clicks


def true_accuracy(session: ActiveSession, events: Events) -> float:
    """Share of the true events, in rows of the detections, that a session's tracking holds.

    The session must have been updated.
    """
    assert session.tracking_solution is not None
    column = session.scene.hypotheses.find(events)
    right = (column >= 0) & session.tracking_solution.chosen[np.maximum(column, 0)]
    return float(right.mean()) if len(right) else float("nan")
