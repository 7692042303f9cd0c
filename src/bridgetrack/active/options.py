"""What may be chosen about suggestions; the defaults are what measured best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bridgetrack.errors import InputError

Measure = Literal["margin", "entropy", "random"]


@dataclass(frozen=True)
class SuggestOptions:
    """How events are ranked.

    Parameters
    ----------
    measure
        What uncertainty means: ``"margin"`` is ``exp(-margin / temperature)``, the best against
        the second best at the level of single events (000, Table 1.2); ``"entropy"`` is the
        entropy of the beliefs at the slot; ``"random"`` ranks by chance.
    temperature
        Margin at which uncertainty has dropped to 1/e, in units of the task loss.
    rarity
        Exponent of the rarity of an event's kind: 0 ignores it, 1 values a kind in inverse
        proportion to how often it was answered and occurs.
    diversity
        Exponent of the novelty of an event's features: 0 ignores it.
    random_share
        Share of suggestions drawn at random from all cells.
    separation
        Suggestions of a batch keep this many cell diameters apart within neighbouring frames.
    alternatives
        How many alternatives a suggestion names at most.
    frames
        First and last frame whose cells are asked about; all where None.
    seed
        Of the order of the random ones.

    Raises
    ------
    InputError
        Where a number is out of range.
    """

    measure: Measure = "margin"
    temperature: float = 1.0
    rarity: float = 0.5
    diversity: float = 1.0
    random_share: float = 0.2
    separation: float = 4.0
    alternatives: int = 4
    frames: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.measure not in ("margin", "entropy", "random"):
            raise InputError(f"there is no uncertainty {self.measure!r}")
        if not 0 <= self.random_share <= 1:
            raise InputError(f"the share of random events is {self.random_share}, not 0 to 1")
        if not self.temperature > 0:
            raise InputError(f"the temperature must be positive, not {self.temperature}")
        if self.seed < 0 or self.alternatives < 0:
            raise InputError("the seed and the number of alternatives must be 0 or more")
        if self.frames is not None and not 0 <= self.frames[0] < self.frames[1]:
            raise InputError(f"the frames {self.frames} must rise, from 0 on")
        if not (self.rarity >= 0 and self.diversity >= 0 and self.separation >= 0):
            raise InputError("rarity, diversity and separation must be 0 or more")
