"""Long operations are generators that yield their progress and return the result.

Also how tables are divided into parts that need less memory.
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
    """Run a long operation to its end and return its result; `report` is called with each step."""
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
    """The same operation with each step converted by `told`."""
    while True:
        try:
            step = next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        yield told(step)


@dataclass(frozen=True)
class Progress:
    """A step of a long operation.

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
    """The first step of a stage; memory freed by the one before is returned to the system."""
    give_back()
    return Progress(stage, 0.0)


def give_back() -> None:
    """Return to the system the freed memory that libraries keep for later.

    Solvers run in short-lived threads, and glibc keeps the memory that each of them freed; pandas
    stores text with pyarrow, which keeps the memory of tables that were read.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(AttributeError, KeyError):
        sys.modules["pyarrow"].default_memory_pool().release_unused()


Steps = Generator[Progress, None, Result]
"""A long operation: yields progress, returns its result; closing it cancels the operation."""


ROWS_AT_ONCE = 1 << 16
"""Rows of a table that are processed together, if each takes much memory."""


def in_parts(rows: int) -> Iterator[slice]:
    """Slices of `ROWS_AT_ONCE` rows each."""
    return (slice(k, k + ROWS_AT_ONCE) for k in range(0, rows, ROWS_AT_ONCE))
