"""Entry point of the command line: runs a command and turns what happens into an exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from bridgetrack.cli.app import app

SUCCESS, FAILURE, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
_NAME = "bridgetrack"
_OF_THE_DISK = (errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Words after the program's name; those of this process where None.

    Returns
    -------
    int
        Exit status: 0 for success, 1 for a failure, 2 for wrong use, 130 after Ctrl-C. A failure
        writes one line to the standard error, with ``--debug`` after the traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        status = _status(lambda: app(words, prog_name=_NAME, standalone_mode=False), debug)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left; the interpreter must not complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FAILURE
    return status


def _status(command: Callable[[], Any], debug: bool) -> int:
    """Run a command; the exit status, after a line on the standard error where it failed."""
    try:
        result = command()
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILURE
    except BrokenPipeError:
        raise
    except Exception as error:
        return _failed(error, debug)
    return _interrupted() if result == INTERRUPTED else result if type(result) is int else SUCCESS


def _interrupted() -> int:
    _say("interrupted; nothing incomplete was left behind")
    return INTERRUPTED


def _failed(error: Exception, debug: bool) -> int:
    from bridgetrack.cli.console import Stopped
    from bridgetrack.errors import BridgetrackError

    if isinstance(error, Stopped):
        _say(str(error))
        return INTERRUPTED
    if type(error).__name__ == "Abort":
        return _interrupted()
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _wrong_use(error)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, BridgetrackError):
        _say(f"error: {_one_line(error)}")
    elif isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        from bridgetrack.files import cure

        where = f"{error.filename}: " if error.filename else ""
        _say(f"error: {where}{error.strerror}; {cure(error)}")
    elif isinstance(error, MemoryError):
        _say("error: not enough memory; close other programs or track fewer frames at a time")
    else:
        what = f"{type(error).__name__}: {_one_line(error)}"
        _say(f"unexpected error: {what} (run with --debug for details)")
    return FAILURE


def _wrong_use(error: Any) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _NAME
    message = _one_line(error.format_message()).rstrip(".")
    _say(f"error: {message or 'no command was given'}; see {command} --help")
    return WRONG_USE


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - the one line that a failure leaves
