"""How long work reports and stops: generators that yield where it stands, and return the result.

Also how it is divided where it takes much memory.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

Step = TypeVar("Step")
Told = TypeVar("Told")
Result = TypeVar("Result")


def run(
    work: Generator[Step, None, Result], report: Callable[[Step], object] | None = None
) -> Result:
    """Drive long work to its end and return its result; `report` sees each step."""
    while True:
        try:
            step = next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        if report is not None:
            report(step)


def relayed(
    work: Generator[Step, None, Result], told: Callable[[Step], Told]
) -> Generator[Told, None, Result]:
    """The same work, each of its steps told in other words."""
    while True:
        try:
            step = next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        yield told(step)


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

    def __str__(self) -> str:
        return f"{self.stage}: {self.done:.0%}"


def begin(stage: str) -> Progress:
    """The first step of a stage; what the one before freed has gone back to the system."""
    give_back()
    return Progress(stage, 0.0)


def give_back() -> None:
    """Hand memory that was freed back to the system, where libraries keep it for later.

    Solvers run in short-lived threads, and glibc keeps what each of them freed; pandas holds text
    by pyarrow, which keeps what a table took that was read.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(AttributeError, KeyError):
        sys.modules["pyarrow"].default_memory_pool().release_unused()


Steps = Generator[Progress, None, Result]
"""Long work: yields progress, returns its result; closing it ends the work."""


ROWS_AT_ONCE = 1 << 16
"""Rows of a table that are worked on at once, where each takes much memory."""


def in_parts(rows: int) -> Iterator[slice]:
    """Slices of so many rows, a part at a time."""
    return (slice(k, k + ROWS_AT_ONCE) for k in range(0, rows, ROWS_AT_ONCE))
