"""The program: all commands, their errors and exit status."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from bridgetrack.cli.console import printable
from bridgetrack.cli.evaluate import check, evaluate, explain
from bridgetrack.cli.options import command
from bridgetrack.cli.track import batch, demo, run, segment, track
from bridgetrack.cli.train import annotate, models, suggest, train
from bridgetrack.errors import INTERRUPTION, BridgetrackError, DependencyError
from bridgetrack.files import REMEDY, program_version
from bridgetrack.schema import in_words

SUCCESS, FAILURE, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
_NAME = "bridgetrack"
_SEVERAL = "--candidates"
"""An option that takes several values."""
_OF_THE_DISK = (
    errno.ENOSPC, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP
)  # fmt: skip
_NO_THREAD = "can't start new thread"
"""Python's message if the system has no memory for a thread."""

app = typer.Typer(
    name="bridgetrack",
    help="Track dividing cells in movies, and improve the tracking with a few annotations.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bridgetrack {program_version()}")
        raise typer.Exit()


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere.")
    ] = False,
) -> None:
    pass


def open_(image: Path | None = None, labels: Path | None = None, /) -> None:
    """Open the plugin in napari."""
    for path in (image, labels):
        if path is not None and not path.exists():
            raise typer.BadParameter(f"{path}: no such file or folder")
    if find_spec("napari") is None or find_spec("superqt") is None:
        raise DependencyError(
            'napari is not installed; install it with: pip install "bridgetrack[gui,qt]"'
        )
    _check_display()
    # By name: the layers below the plugin do not depend on it.
    importlib.import_module("bridgetrack.ui.workflow").launch(image, labels)


def _check_display() -> None:
    """Refuse where Qt would abort the program: on Linux without any display."""
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in wanted):
        raise BridgetrackError(
            "no display was found (DISPLAY and WAYLAND_DISPLAY are not set), and a window needs "
            "one: run this on a desktop, log in with ssh -X, or start it with xvfb-run; to track "
            "without a window, use bridgetrack track"
        )


for each in (
    demo, segment, track, annotate, train, explain, evaluate, run, suggest, check, batch, models
):  # fmt: skip
    app.command()(command(each))
app.command(name="open")(command(open_, "open"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on `arguments`, those of this process if None; the exit status.

    0 for success, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C. A failure writes one line
    to standard error, with ``--debug`` after the traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = _each_named([word for word in words if word != "--debug"])
    try:
        status = _status(lambda: app(words, prog_name=_NAME, standalone_mode=False), debug)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reading process has ended; the interpreter must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FAILURE
    return status


def _each_named(words: list[str]) -> list[str]:
    """``--candidates a b`` as ``--candidates a --candidates b``: the parser takes one at a time."""
    named, several = list[str](), False
    for word in words:
        first = word == _SEVERAL
        if several and not word.startswith("-") and named[-1] != _SEVERAL:
            named.append(_SEVERAL)
        several = first or (several and not word.startswith("-"))
        named.append(word)
    return named


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
    _say(INTERRUPTION)
    return INTERRUPTED


def _failed(error: Exception, debug: bool) -> int:
    if type(error).__name__ == "Abort":
        return _interrupted()
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _wrong_use(error)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, BridgetrackError):
        _say(f"error: {_one_line(error)}")
    elif isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        where = f"{error.filename}: " if error.filename else ""
        _say(f"error: {where}{error.strerror}; {REMEDY}")
    elif isinstance(error, MemoryError) or _NO_THREAD in str(error):
        _say("error: not enough memory; close other programs or track fewer frames at a time")
    else:
        what = f"{type(error).__name__}: {_one_line(error)}"
        _say(f"unexpected error: {what} (run with --debug for details)")
    return FAILURE


def _wrong_use(error: Any) -> int:
    if isinstance(error.__cause__, ValidationError):  # the parser's own words name no value
        error.message = in_words(error.__cause__)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _NAME
    message = _one_line(error.format_message()).rstrip(".").replace("Value error, ", "")
    message = message.removeprefix("Invalid value: ")
    _say(f"error: {message or 'no command was given'}; see {command} --help")
    return WRONG_USE


def _one_line(message: object) -> str:
    return printable(" ".join(str(message).split()))


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - the one line that a failure leaves
