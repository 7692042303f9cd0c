"""What an active session remembers of every answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from bridgetrack.annotations.annotation import Kind, Slot
from bridgetrack.schema import Count, Share
from bridgetrack.training.estimate import ErrorEstimate

Seconds = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Record:
    """One answered suggestion."""

    id: str  # the annotation; records whose annotation is gone (undone, replaced) do not count
    kind: Kind  # what was answered
    # slots of the event that holds, or the slot asked where that is not known
    slots: tuple[Slot, ...]
    # whether the proposal was right, as the model was before the answer; None for "cannot tell"
    right: bool | None
    random: bool  # whether the suggestion was drawn at random
    doubt: Share  # the model's belief that its proposal was wrong, 0 to 1
    seconds: Seconds  # time that the answer took
    looks: Annotated[int, Field(ge=1)] = 1  # answers that led to it: 2 after a second look

    def after(self, before: Record) -> Record:
        """This answer, where it repeats or corrects one given before: the work of both counts."""
        return replace(
            self,
            random=self.random or before.random,
            doubt=before.doubt,
            seconds=before.seconds + self.seconds,
            looks=before.looks + self.looks,
        )

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {
            "id": self.id,
            "kind": str(self.kind),
            "slots": [[what, *cell] for what, cell in self.slots],
            "right": self.right,
            "random": self.random,
            "doubt": self.doubt,
            "seconds": self.seconds,
            "looks": self.looks,
        }


@dataclass(frozen=True)
class Clicking:
    """Work put in so far."""

    clicks: int  # answers, "cannot tell" included
    seconds: float  # time that they took

    @property
    def minutes(self) -> float:
        """Time in minutes."""
        return self.seconds / 60.0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Clicking:
        """The work that some records took; a second look is a click of its own."""
        listed = list(records)
        return cls(sum(r.looks for r in listed), sum(r.seconds for r in listed))


@dataclass(frozen=True)
class Point:
    """Where a session stood after some answers: one point of the progress curve.

    Parameters
    ----------
    clicks
        Answers so far, "cannot tell" included.
    seconds
        Time spent on them.
    accuracy, low, high
        Estimated share of right events and its 95 % interval, 0 to 1; None while there are no
        random answers.
    changed
        Events of the movie that the last update explains otherwise than the one before.
    """

    clicks: Count
    seconds: Seconds
    accuracy: Share | None
    low: Share | None
    high: Share | None
    changed: Count

    @property
    def minutes(self) -> float:
        """Time spent, in minutes."""
        return self.seconds / 60.0

    @classmethod
    def of(cls, effort: Clicking, estimate: ErrorEstimate | None, changed: int) -> Point:
        """Where a session stands."""
        clicks, seconds = effort.clicks, effort.seconds
        if estimate is None:
            return cls(clicks, seconds, None, None, None, changed)
        return cls(clicks, seconds, estimate.accuracy, estimate.low, estimate.high, changed)
