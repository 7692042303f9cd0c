"""How long work reports and stops."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from bridgetrack.generators import finish

Result = TypeVar("Result")


@dataclass(frozen=True)
class Progress:
    """A step of long work.

    Parameters
    ----------
    stage
        What is being done, in plain words.
    done
        Share of this stage, 0 to 1; every stage reports 0 when it begins.
    """

    stage: str
    done: float


Steps = Generator[Progress, None, Result]
"""Long work: yields progress, returns its result; closing it ends the work."""


def run(steps: Steps[Result], report: Callable[[Progress], None] | None = None) -> Result:
    """Drive long work to its end and return its result."""
    return finish(steps, report)
