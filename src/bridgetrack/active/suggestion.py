"""A question to the annotator, "is this what happens to this cell?", and options of choosing it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from bridgetrack.annotations.annotation import CellRef, EventRef, Slot, describe_event
from bridgetrack.hypotheses.events import Event
from bridgetrack.schema import Share, settings


@settings("suggestions:")
class SuggestOptions:
    """How events are ranked.

    Parameters
    ----------
    random_share
        Share drawn at random from all cells, to estimate the accuracy.
    separation
        Suggestions keep this many cell diameters apart within neighbouring frames.
    seed
        Random seed.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    random_share: Share = 0.2
    separation: Annotated[float, Field(ge=0)] = 4.0
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True)
class Suggestion:
    """An event that is worth an answer.

    The question is always about one *slot*: the fate of a cell or its history. `event` is what the
    model believes; `alternatives` are the other events that could explain the same slot.

    Parameters
    ----------
    event
        The proposed event, which the present tracking holds, with its cells (frame, label and
        position in pixels).
    slot
        ``("fate", (frame, label))`` or ``("history", (frame, label))``: what is asked, whatever the
        model.
    reason
        Why it is asked, as a sentence without a full stop, for people.
    random
        Whether it was drawn at random from all cells. Only answers to these tell how accurate
        the tracking is; their annotations have the source ``RANDOM``.
    alternatives
        Other events of the same slot, the most plausible first; at most a few.
    beliefs
        How probable `event` is, by its margin, and each of `alternatives`, summing to 1 at most.
    hypothesis
        Row of the event in ``scene.hypotheses`` of the scene that it was suggested for.
    margin
        How much worse the best tracking without the event scores, at least; infinite where
        nothing else is possible.
    number
        Of the event in a sample of the tracks, from 0: it is judged without a word on what the
        model thinks of it, and changes nothing. None where the model asks.
    """

    event: EventRef
    slot: Slot
    reason: str
    random: bool
    alternatives: tuple[EventRef, ...] = ()
    beliefs: tuple[float, ...] = (1.0,)
    hypothesis: int = -1
    margin: float = math.inf
    number: int | None = None

    @property
    def sampled(self) -> bool:
        """Whether it belongs to a random sample of the tracks."""
        return self.number is not None

    @property
    def listed(self) -> tuple[EventRef, ...]:
        """The proposed event and its alternatives, as they are numbered from 1 in the window."""
        return self.event, *self.alternatives

    @property
    def kind(self) -> Event:
        """Kind of the proposed event."""
        return self.event.event

    @property
    def cells(self) -> tuple[CellRef, ...]:
        """Cells of the proposed event: what the view should show."""
        return self.event.cells

    @property
    def frame(self) -> int:
        """Earlier frame of the pair of frames to look at."""
        if self.event.sources:
            return self.event.sources[0].frame
        return self.event.targets[0].frame - 1

    @property
    def last_frame(self) -> int:
        """Later frame to look at (for a move over a gap, more than one after `frame`)."""
        if self.event.targets:
            return self.event.targets[-1].frame
        return self.frame + 1

    @property
    def position(self) -> tuple[float, ...]:
        """Middle of the event's cells in pixels, ``(y, x)`` or ``(z, y, x)``."""
        places = [c.position for c in self.cells]
        return tuple(sum(p) / len(places) for p in zip(*places, strict=True))

    @property
    def asked(self) -> CellRef:
        """The cell whose fate or history is asked."""
        return next(c for c in self.cells if c.cell == self.slot[1])

    @property
    def question(self) -> str:
        """The question in plain words."""
        return f"Is this right? {describe_event(self.event)}."

    def to_json(self) -> dict[str, Any]:
        """The suggestion as JSON values."""
        return {
            "question": self.question,
            "reason": self.reason,
            "random": self.random,
            "frame": self.frame,
            "position": [round(p, 2) for p in self.position],
            "asked": {"about": self.slot[0], "frame": self.slot[1][0], "label": self.slot[1][1]},
            "event": _event_json(self.event),
            "alternatives": [_event_json(e) for e in self.alternatives],
            "beliefs": [round(b, 4) for b in self.beliefs],
            "margin_at_least": round(self.margin, 4) if math.isfinite(self.margin) else None,
        }


def _event_json(event: EventRef) -> dict[str, Any]:
    return {
        "event": event.event.key,
        "sources": [list(c.cell) for c in event.sources],
        "targets": [list(c.cell) for c in event.targets],
    }
