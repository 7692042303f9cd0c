"""What controllers need of background work; the Qt side is in `workers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bridgetrack.pipeline.progress import Steps

Factory = Callable[[], Steps[Any]]
Done = Callable[[Any], None]
Failed = Callable[[Exception], None]
Report = Callable[[Any], None]


class Runner(Protocol):
    """Runs named work; a name runs once at a time, and only its latest start reports back."""

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        """Begin work; what ran under this name before is cancelled and its result dropped."""

    def cancel(self, name: str) -> None:
        """End work; nothing of it is reported afterwards."""

    def running(self, name: str) -> bool:
        """Whether work of this name is under way."""

    def close(self) -> None:
        """End all work."""


class InlineRunner:
    """Does work at once, in the calling thread."""

    def __init__(self) -> None:
        self._active: dict[str, Steps[Any]] = {}

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        """Run to the end, then report."""
        steps = work()
        self._active[name] = steps
        try:
            while True:
                step = next(steps)
                report(step)
                if self._active.get(name) is not steps:
                    steps.close()
                    return
        except StopIteration as stop:
            self._active.pop(name, None)
            done(stop.value)
        except Exception as error:
            self._active.pop(name, None)
            failed(error)

    def cancel(self, name: str) -> None:
        """Stop at the next step."""
        self._active.pop(name, None)

    def running(self, name: str) -> bool:
        """Whether the named work is being done further up the stack."""
        return name in self._active

    def close(self) -> None:
        """Stop everything at its next step."""
        self._active.clear()
