"""What a name leads to: links are followed, and what cannot be read as a file is refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from bridgetrack.errors import InputError

IN_CIRCLES = "links lead to each other: give another name"
"""What to do where the system has no end of links to follow."""


def resolved(path: Path) -> Path:
    """The place that a name stands for, all links followed.

    Raises
    ------
    InputError
        Where links lead to each other.
    """
    try:
        return path.resolve()
    except RuntimeError as error:  # of Python before 3.13, made of the error of the system
        raise _in_circles(path) from error


def check_readable(path: Path) -> None:
    """Refuse what is there, or seems to be, but cannot be read as a file is; all else may pass.

    Raises
    ------
    InputError
        Where a link leads nowhere or to itself, and where there is a pipe or a device: reading
        these may never end.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise InputError(
                f"{path}: a link to {path.readlink()}, where there is nothing; put the file there, "
                "or give another name"
            ) from None
        return
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _in_circles(path) from error
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(
            f"{path}: a pipe or a device, not a file; keep what comes out of it in a file, and "
            "give that"
        )


def _in_circles(path: Path) -> InputError:
    return InputError(f"{path}: {os.strerror(errno.ELOOP)}; {IN_CIRCLES}")
