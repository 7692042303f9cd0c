"""A simulated annotator who answers suggestions from ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, EventRef, Kind, Slot
from bridgetrack.annotations.truth import Mistakes, check_rates
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Events
from bridgetrack.inference.solve import solve
from bridgetrack.progress import Progress, Steps


@dataclass(frozen=True)
class Reply:
    """What the annotator says."""

    kind: Kind  # ``confirm`` or ``cannot_tell``
    event: EventRef | None  # the event that is said to hold; None for ``cannot_tell``
    wrong: bool = False  # whether this is a mistake


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
    cannot_tell
        Rate of "cannot tell". Cells that the truth says nothing of are answered so as well.
    seed
        Of wrong and undecided answers. An answer depends on the question and the seed only, not
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
        cannot_tell: float = 0.0,
        seed: int = 0,
    ) -> None:
        check_rates(wrong, cannot_tell)
        self._events, self._detections = events, detections
        self._refs = event_refs(detections, events)
        self._of: dict[Slot, int] = {
            slot: k for k, ref in enumerate(self._refs) for slot in ref.slots
        }
        rng = np.random.default_rng(seed)
        self._moods = rng.random(len(events)), rng.random(len(events))
        self._limits = wrong, wrong + cannot_tell
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

    def reply(self, suggestion: Suggestion) -> Reply:
        """Answer a suggestion."""
        k = self._of.get(suggestion.slot)
        if k is None:
            return Reply(Kind.CANNOT_TELL, None)
        mood = self._moods[bool(suggestion.again)][k]
        if mood < self._limits[0]:
            false = self._mistakes.instead_of(self._events, k, self._row(suggestion.slot))
            if false is not None:
                return Reply(Kind.CONFIRM, event_refs(self._detections, false)[0], True)
        elif mood < self._limits[1]:
            return Reply(Kind.CANNOT_TELL, None)
        return Reply(Kind.CONFIRM, self._refs[k])


def answer_by(
    session: ActiveSession,
    annotator: SimulatedAnnotator,
    suggestion: Suggestion,
    seconds: float = 3.0,
) -> Annotation:
    """Let a simulated annotator answer one suggestion."""
    reply = annotator.reply(suggestion)
    if reply.event is None:
        return session.cannot_tell(suggestion, seconds=seconds)
    return session.answer(suggestion, reply.event, seconds=seconds)


def simulate_session(
    session: ActiveSession, annotator: SimulatedAnnotator, clicks: int, seconds: float = 3.0
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
        answer_by(session, annotator, suggestion, seconds)
        yield Progress("Answering", (done + 1) / clicks)
        if session.wants_update and done + 1 < clicks:
            session.adopt((yield from session.update()))
    session.adopt((yield from session.update()))
    return clicks


def true_accuracy(session: ActiveSession, events: Events, honoured: bool = True) -> float:
    """Share of the true events that a session's tracking holds.

    Parameters
    ----------
    session
        After an update.
    events
        True events in rows of the detections.
    honoured
        Whether the tracking honours the answers given; otherwise the model alone is judged.
    """
    scene, solution = session.scene, session.tracking_solution
    if solution is None or not honoured:
        weights = session.model.aligned(scene.matrix.features)
        solution = solve(scene.problem, scene.matrix.scores(weights))
    column = scene.hypotheses.find(events)
    right = (column >= 0) & solution.chosen[np.maximum(column, 0)]
    return float(right.mean()) if len(right) else float("nan")
