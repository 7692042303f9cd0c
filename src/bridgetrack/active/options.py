"""What may be chosen about active learning; the defaults need no thought."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bridgetrack.errors import InputError
from bridgetrack.option import check_options, option

SuggestStrategy = Literal["uncertainty", "random"]


@dataclass(frozen=True)
class SuggestOptions:
    """How events are ranked.

    Parameters
    ----------
    strategy
        Ask about the events with the smallest margins of the best explanation over the best
        without them, or about events drawn at random.
    temperature
        Margin at which uncertainty has dropped to 1/e, in units of the task loss.
    random_share
        Share drawn at random from all cells, to estimate the accuracy.
    separation
        Suggestions keep this many cell diameters apart within neighbouring frames.
    alternatives
        How many alternatives a suggestion names at most.
    frames
        First and last frame whose cells are asked about; all where None.
    seed
        Seed of the random ones.

    Raises
    ------
    InputError
        Where a number is out of range.
    """

    strategy: SuggestStrategy = "uncertainty"
    temperature: float = option(1.0, above=0)
    random_share: float = option(0.2, least=0, most=1)
    separation: float = option(4.0, least=0)
    alternatives: int = option(4, least=0)
    frames: tuple[int, int] | None = None
    seed: int = option(0, least=0)

    def __post_init__(self) -> None:
        check_options(self, "the suggestion option")
        if self.frames is not None and not 0 <= self.frames[0] < self.frames[1]:
            raise InputError(f"the frames {self.frames} must rise, from 0 on")


@dataclass(frozen=True)
class SessionOptions:
    """How a session works; the defaults need no thought.

    Parameters
    ----------
    suggest
        How events are ranked.
    queue
        Suggestions computed ahead.
    update_every
        Answers after which `ActiveSession.wants_update` asks for an update.
    rejudge_every
        Answers after which random ones are judged anew by models that have not seen them.
    """

    suggest: SuggestOptions = field(default_factory=SuggestOptions)
    queue: int = 12
    update_every: int = 5
    rejudge_every: int = 10
