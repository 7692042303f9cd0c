"""What a training has reported so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from bridgetrack.generators import relayed
from bridgetrack.learning.result import Progress
from bridgetrack.learning.surrogate import Outcome, Step


@dataclass(frozen=True)
class Counts:
    """Bounds, inferences and seconds of inference so far, as `Progress` tells them."""

    n_bounds: int
    n_oracle_calls: int
    oracle_seconds: float = 0.0


class Record:
    """Turns the steps of the inner loops into progress, and remembers it."""

    def __init__(self) -> None:
        self.steps: list[Progress] = []
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since training began."""
        return time.perf_counter() - self._start

    def follow(
        self, inner: Generator[Step, None, Outcome], t: int, counts: Callable[[], Counts]
    ) -> Generator[Progress, None, Outcome]:
        """Pass on the inner loop of CCCP iteration t as progress; its outcome is the value.

        Every surrogate bounds the objective from above, so the least value so far does.
        """

        def told(step: Step) -> Progress:
            now, last = counts(), self.steps[-1].objective if self.steps else math.inf
            progress = Progress(
                iteration=len(self.steps) + 1,
                cccp_iteration=t,
                objective=min(step.objective, last),
                gap=step.gap,
                n_bounds=now.n_bounds,
                n_oracle_calls=now.n_oracle_calls,
                seconds=self.seconds,
                weights=step.w.copy(),
                oracle_seconds=now.oracle_seconds,
            )
            self.steps.append(progress)
            return progress

        return relayed(inner, told)
