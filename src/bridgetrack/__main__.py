"""The program: it takes a second or two until it can begin, and may be ended meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ENDINGS, _BY_SIGNAL = ("SIGINT", "SIGTERM", "SIGHUP"), 128
_USUAL = (signal.SIG_DFL, signal.default_int_handler)
_SAID = b"interrupted; nothing was begun\n"
_SAID_LATER = b"interrupted; nothing incomplete was left behind\n"


def main() -> int:
    """Run the command line on the arguments of this process; see `bridgetrack.cli.main.main`."""
    try:
        with _ending_at_once():
            from bridgetrack.cli.main import main as command
        status = command()
        _hear_no_more()  # all is done, and written
    except KeyboardInterrupt:  # just before the command, after it, or for the second time
        _hear_no_more()
        os.write(2, _SAID_LATER)
        status = _BY_SIGNAL + signal.SIGINT
    return status


def _hear_no_more() -> None:
    for number in _heard():
        signal.signal(number, signal.SIG_IGN)


def _heard() -> list[int]:
    """Requests to end that nobody else looks after, and that are not ignored."""
    numbers = [getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)]
    return [n for n in numbers if signal.getsignal(n) in _USUAL]


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """End without a traceback where that is asked for: an import cannot be left half done."""
    before = {number: signal.getsignal(number) for number in _heard()}
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    os.write(2, _SAID)
    os._exit(_BY_SIGNAL + number)


if __name__ == "__main__":
    sys.exit(main())
