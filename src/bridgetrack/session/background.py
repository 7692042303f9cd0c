"""Named background work, which reports its progress and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from psygnal import Signal

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.errors import BridgetrackError, ContradictionError
from bridgetrack.movie import Movie
from bridgetrack.progress import Steps

Factory = Callable[[], Steps[Any]]
Report = Callable[[Any], None]


class BackgroundWork:
    """Does named work at once, in the calling thread; the version of the window uses other threads.

    A name runs once at a time, and only its latest start reports back.

    Signals: `message` with (level, words) for people, where level is ``"info"`` (it is done),
    ``"hint"`` (nothing is done), ``"warning"`` or ``"error"``; `progress` with the work's name and
    what it yielded, None when it ends.
    """

    message = Signal(str, str)
    progress = Signal(str, object)

    def __init__(self) -> None:
        self.words_of: Callable[[Annotation], str] = str  # of an answer that is named to people
        # Work under way: an event that stops it, and its words.
        self._active: dict[str, tuple[Event, str]] = {}

    def run(
        self,
        name: str,
        work: Factory,
        done: Report,
        failed: Report | None = None,
        *,
        what: str = "",
    ) -> None:
        """Do work; earlier work of this name is cancelled and its result dropped.

        `what` names it in the message if it ends before it is done.
        """
        if name in self._active:
            self._active[name][0].set()
        stopped = Event()
        self._active[name] = stopped, what

        def on_step(step: Any) -> None:
            if not stopped.is_set():
                self.progress.emit(name, step)

        def ends() -> bool:
            """Whether this is the latest of its name, which is over then."""
            latest = not stopped.is_set()
            if latest:
                self.cancel(name)
            return latest

        def on_done(result: Any) -> None:
            if ends():
                done(result)

        def on_failed(error: Exception) -> None:
            if not ends():
                return
            if failed is not None:
                failed(error)
            if not isinstance(error, BridgetrackError):
                raise error
            self.tell(error)

        self.do(name, work, stopped, on_step, on_done, on_failed)

    def do(
        self, name: str, work: Factory, stopped: Event, step: Report, done: Report, failed: Report
    ) -> None:
        """Do work until it is stopped, and report."""
        steps = work()
        try:
            while not stopped.is_set():
                step(next(steps))
            steps.close()
        except StopIteration as stop:
            done(stop.value)
        except Exception as error:
            failed(error)

    def cancel(self, name: str) -> None:
        """End named work; no more reports of it arrive."""
        if name in self._active:
            stopped, _ = self._active.pop(name)
            stopped.set()
            self.progress.emit(name, None)

    @property
    def unfinished(self) -> list[str]:
        """Work under way, in words."""
        return list(dict.fromkeys(what for _, what in self._active.values() if what))

    def close(self) -> None:
        """End all work."""
        for name in list(self._active):
            self.cancel(name)

    def busy(self, *names: str) -> bool:
        """Whether any of the named work is under way."""
        return any(name in self._active for name in names)

    def tell(self, error: Exception) -> None:
        """Show an error; if nobody listens (in a script), raise it."""
        if not len(self.message):
            raise error
        words = error.words(self.words_of) if isinstance(error, ContradictionError) else str(error)
        # A movie without a file is called an array, which means nothing in a window.
        self.message.emit("error", words.removeprefix(f"{Movie.source}: "))

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Show errors that occur inside."""
        try:
            yield
        except BridgetrackError as error:
            self.tell(error)
