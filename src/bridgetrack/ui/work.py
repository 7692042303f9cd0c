"""Named work in the background that says how far it is and what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psygnal import Signal

from bridgetrack.errors import BridgetrackError
from bridgetrack.pipeline.progress import Steps
from bridgetrack.ui.jobs import Runner


class NamedWork:
    """Runs named work; see `Session` for the signals."""

    message = Signal(str, str)
    progress = Signal(str, object)

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def run(
        self,
        name: str,
        work: Callable[[], Steps[Any]],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Do named work in the background, reporting through `progress` and `message`."""

        def on_done(result: Any) -> None:
            self.progress.emit(name, None)
            done(result)

        def on_failed(error: Exception) -> None:
            self.progress.emit(name, None)
            if failed is not None:
                failed(error)
            if not isinstance(error, BridgetrackError):
                raise error
            self.message.emit("error", str(error))

        def on_step(step: Any) -> None:
            self.progress.emit(name, step)

        self._runner.start(name, work, on_done, on_failed, on_step)

    def cancel(self, name: str) -> None:
        """End named work at once as far as the session is concerned."""
        if self._runner.running(name):
            self._runner.cancel(name)
            self.progress.emit(name, None)

    def busy(self, *names: str) -> bool:
        """Whether any of the named work is under way."""
        return any(self._runner.running(n) for n in names)
