"""Files are written whole or not at all.

The version of the program, for files and messages.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from bridgetrack.errors import OutputError


@contextmanager
def replacing(path: Path, what: str, *, text: bool = True) -> Iterator[IO[Any]]:
    """Write a file under a spare name beside its own, and put it in place at the end.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    what
        What it holds, for messages: ``"the model"``.
    text
        UTF-8 text with plain line ends, or bytes.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    spare = ""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, spare = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
        how: dict[str, Any] = (
            {"mode": "w", "encoding": "utf-8", "newline": "\n"} if text else {"mode": "wb"}
        )
        with os.fdopen(handle, **how) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(spare).chmod(0o644)
        Path(spare).replace(target)
        spare = ""
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{path}: {what} cannot be written ({why}); {cure(error)}") from error
    finally:
        if spare:
            with suppress(OSError):
                Path(spare).unlink(missing_ok=True)


def cure(error: OSError) -> str:
    """What to do about a failure to write."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return "the disk is full: make room, or write to another disk"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "there is no permission to write there: choose another folder"
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST):
        return "a file and a folder are in each other's place: choose another name"
    return "choose another place"


def unreadable(text: str, kind: str, error: Exception) -> str:
    """What is wrong with a text that is no JSON: damaged, where it begins like JSON."""
    if text.lstrip()[:1] in ("{", "["):
        cause = f"this is {kind} that is damaged or cut off ({error})"
        return f"{cause}; copy it again or take it from a backup"
    return f"this is not {kind} ({error})"


def write_text(path: Path, text: str, what: str) -> Path:
    """Write a text file in one step; see `replacing`."""
    with replacing(path, what) as file:
        file.write(text)
    return path


def program_version() -> str:
    """Version of the installed package, ``"unknown"`` where it runs from a bare folder."""
    try:
        return version("bridgetrack")
    except PackageNotFoundError:
        return "unknown"
