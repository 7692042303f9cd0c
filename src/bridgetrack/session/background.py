"""Named work beside the window, which says how far it is and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from psygnal import Signal

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import Movie
from bridgetrack.progress import Steps

Factory = Callable[[], Steps[Any]]
Done = Callable[[Any], None]
Failed = Callable[[Exception], None]
Report = Callable[[Any], None]


class Runner:
    """Does named work at once, in the calling thread; the window's does it in others.

    A name runs once at a time, and only its latest start reports back.
    """

    def __init__(self) -> None:
        self._steps: dict[str, Steps[Any]] = {}

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        """Do work; what ran under this name before is cancelled and its result dropped."""
        self._steps[name] = steps = work()
        try:
            while True:
                step = next(steps)
                report(step)
                if self._steps.get(name) is not steps:
                    steps.close()
                    return
        except StopIteration as stop:
            self._steps.pop(name, None)
            done(stop.value)
        except Exception as error:
            self._steps.pop(name, None)
            failed(error)

    def cancel(self, name: str) -> None:
        """End work at its next step; nothing of it is reported afterwards."""
        self._steps.pop(name, None)

    def running(self, name: str) -> bool:
        """Whether work of this name is under way."""
        return name in self._steps

    def close(self) -> None:
        """End all work."""
        self._steps.clear()


class BackgroundWork:
    """Runs named work and tells people what it says.

    Signals: `message` with (level, words) for people, where level is ``"info"``, ``"warning"`` or
    ``"error"``; `progress` with the work's name and what it yielded, None when it ends.
    """

    message = Signal(str, str)
    progress = Signal(str, object)

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._begun: dict[str, str] = {}  # what each is, in words

    def run(
        self,
        name: str,
        work: Factory,
        done: Done,
        failed: Failed | None = None,
        *,
        what: str = "",
    ) -> None:
        """Do named work, reporting through `progress` and `message`.

        `what` names it to people where it ends before it is done.
        """

        def on_done(result: Any) -> None:
            self.progress.emit(name, None)
            done(result)

        def on_failed(error: Exception) -> None:
            self.progress.emit(name, None)
            if failed is not None:
                failed(error)
            if not isinstance(error, BridgetrackError):
                raise error
            self.tell(error)

        self._begun[name] = what
        self._runner.start(
            name, work, on_done, on_failed, lambda step: self.progress.emit(name, step)
        )

    def cancel(self, name: str) -> None:
        """End named work at once as far as anybody can see."""
        if self._runner.running(name):
            self._runner.cancel(name)
            self.progress.emit(name, None)

    @property
    def unfinished(self) -> list[str]:
        """What is under way, in words."""
        told = (what for name, what in self._begun.items() if what and self.busy(name))
        return list(dict.fromkeys(told))

    def close(self) -> None:
        """End all work."""
        under_way = [name for name in sorted(self._begun) if self._runner.running(name)]
        self._runner.close()
        for name in under_way:
            self.progress.emit(name, None)

    def busy(self, *names: str) -> bool:
        """Whether any of the named work is under way."""
        return any(self._runner.running(n) for n in names)

    def tell(self, error: Exception) -> None:
        """Tell people of an error; where nobody listens (in a script), it is raised."""
        if not len(self.message):
            raise error
        # A movie without a file is called an array, which says nothing in a window.
        words = str(error).removeprefix(f"{Movie.source}: ")
        self.message.emit("error", words)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Errors for people that come up inside are told."""
        try:
            yield
        except BridgetrackError as error:
            self.tell(error)

    @contextmanager
    def hearing(self) -> Iterator[list[str]]:
        """Collects the warnings and errors that people are told inside."""
        heard: list[str] = []

        def hear(level: str, words: str) -> None:
            if level != "info":
                heard.append(words)

        self.message.connect(hear)
        try:
            yield heard
        finally:
            self.message.disconnect(hear)
