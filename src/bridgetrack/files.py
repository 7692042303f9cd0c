"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
        raise OutputError(f"{path}: {what} cannot be written ({error.strerror})") from error
    finally:
        if spare:
            with suppress(OSError):
                Path(spare).unlink(missing_ok=True)


def write_text(path: Path, text: str, what: str) -> Path:
    """Write a text file in one step; see `replacing`."""
    with replacing(path, what) as file:
        file.write(text)
    return path
