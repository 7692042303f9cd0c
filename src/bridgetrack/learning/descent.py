"""The loop of the concave-convex procedure, whatever its surrogates are made of.

Every surrogate bounds the objective J from above and touches it somewhere. Its best point becomes
the next w unless J is larger there, so J never increases. Surrogates touch J a little beyond w,
where the last move was going (see `schedule`); the loop ends only where the one that touches at w
itself leads nowhere either.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.record import Counts, Record
from bridgetrack.learning.result import Progress
from bridgetrack.learning.schedule import Schedule
from bridgetrack.learning.surrogate import Outcome, Step

S = TypeVar("S")


class Objective(Protocol[S]):
    """What can be bounded by convex surrogates of type S. Weights have the shape (d,) or (D, d)."""

    def touching(self, w: FloatArray, near: S | None) -> S:
        """The surrogate that touches at ``w``, made of outputs no worse there than another's."""
        ...

    def value(self, surrogate: S, w: FloatArray) -> float:
        """A surrogate where inference was asked; where it touches, J (an upper bound on it)."""
        ...

    def same(self, one: S, other: S) -> bool:
        """Whether two surrogates are equal everywhere."""
        ...

    def minimise(
        self, surrogate: S, w: FloatArray, precision: float
    ) -> Generator[Step, None, Outcome]:
        """Minimise a surrogate to a duality gap, starting from ``w``."""
        ...

    def counts(self) -> Counts:
        """Bounds and inferences so far."""
        ...


@dataclass(frozen=True)
class Descent(Generic[S]):
    """Where the loop ended.

    Parameters
    ----------
    w
        The last weights.
    surrogate
        The one that touches there.
    outcome
        Of the last surrogate that was minimised.
    objectives
        J at the start and after every iteration.
    schedule
        Says why it ended.
    """

    w: FloatArray
    surrogate: S
    outcome: Outcome
    objectives: FloatArray
    schedule: Schedule


def descend(
    objective: Objective[S], w: FloatArray, options: TrainingOptions, record: Record
) -> Generator[Progress, None, Descent[S]]:
    """Go down from ``w`` to where no surrogate leads any further."""
    surrogate = tight = objective.touching(w, None)
    schedule, values = Schedule(options), list[float]()
    for t in range(options.max_cccp_iterations):
        inner = objective.minimise(surrogate, w, schedule.precision)
        outcome = yield from record.follow(inner, t, objective.counts)
        if not values:
            values.append(objective.value(tight, w))
        before, plain, same = w, surrogate is tight, True
        if not np.array_equal(outcome.w, w):
            there = objective.touching(outcome.w, tight)
            if objective.value(there, outcome.w) <= values[-1]:
                same = objective.same(there, tight)
                w, tight = outcome.w, there
        values.append(objective.value(tight, w))
        if schedule.ends(outcome.reason, same, values, plain=plain):
            break
        point = schedule.ahead(before, w)
        surrogate = tight if point is None else objective.touching(point, None)
    return Descent(w, tight, outcome, np.array(values), schedule)
