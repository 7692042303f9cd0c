"""The program: it takes a second or two until it can begin, and may be ended meanwhile."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bridgetrack.freed import keep_together
from bridgetrack.limits import TO_BEGIN, address_space

_ENDINGS, _BY_SIGNAL, _FAILURE = ("SIGINT", "SIGTERM", "SIGHUP"), 128, 1
_USUAL = (signal.SIG_DFL, signal.default_int_handler)
_SAID = b"interrupted; nothing was begun\n"
_SAID_LATER = b"interrupted; nothing incomplete was left behind\n"


def main() -> int:
    """Run the command line on the arguments of this process; see `bridgetrack.cli.main.main`."""
    if not _has_room():
        return _FAILURE
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


def _has_room() -> bool:
    """Whether the limit of the shell on memory lets the libraries be loaded; says so if not."""
    limit = address_space()
    if limit < TO_BEGIN:
        os.write(
            2,
            f"error: the shell limits a program to {limit / 1e6:,.0f} MB of memory (ulimit -v), "
            f"and Bridgetrack needs {TO_BEGIN / 1e6:,.0f} MB to begin; raise the limit, for "
            "instance by ulimit -v unlimited\n".encode(),
        )
        return False
    if limit < math.inf:
        # every thread takes addresses whether it works or not; read where numpy is loaded
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        # pandas holds text by pyarrow, which takes the addresses of a gigabyte beforehand
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        keep_together()
    return True


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
