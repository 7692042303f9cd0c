"""Files that are appended to: the state on the first line, and a line for each later change.

A change is on the disk when the call returns, and nothing is rewritten. Of a file that ends within
a line, because the program was killed while it wrote, the whole lines count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import locked, staged, writing
from bridgetrack.schema import FileFormat, FilePart, check, parse_json, read_text

T = TypeVar("T")

MANY_LINES = 1000
"""Changes from which on a journal becomes one line again when it was opened anew."""


@dataclass(frozen=True)
class Read(Generic[T]):
    """What a file holds, its version, and what is wrong with its end, if anything.

    ``end`` is how many bytes of it a further line comes after; None where it is to be written anew.
    """

    content: T
    version: int = 0
    end: int | None = None
    notice: str = ""


def read_journal(
    path: Path,
    document: FileFormat[Any, T],
    change: type[FilePart],
    after: Callable[[T, Any], T],
    version: int,
) -> Read[T]:
    """Read a journal, or the document that versions before them kept.

    Parameters
    ----------
    path
        The file.
    document
        The object of version 1; with later versions it is the first line.
    change
        Schema of the other lines.
    after
        Content after a change; an `InputError` where it does not fit.
    version
        The latest version.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    text = read_text(path, document.what, largest=document.largest)
    first, _, rest = text.partition("\n")
    head = _object(first, document.what)
    if head is None or head.get("version") == document.version:
        return Read(document.parse(text, str(path)), document.version)
    known = 2 if head.get("version") == 2 else version
    content = replace(document, version=known).check(head, str(path))
    *lines, torn = rest.split("\n")
    if complete := _object(torn, document.what) is not None:
        lines.append(torn)  # an editor has taken its end away
    for number, line in enumerate(lines, 2):
        where = f"{path}, line {number}"
        made = check(change, parse_json(line, document.what, where), where)
        try:
            content = after(content, made)
        except InputError as error:
            raise InputError(f"{where}: {error}; take the file from a backup") from None
    notice = ""
    if torn and not complete:
        notice = (
            f"{path}: its last line is not whole (the program was ended while it wrote it) and "
            f"is left out; the {len(lines)} changes before it are there"
        )
    end = path.stat().st_size - len(torn.encode())
    return Read(content, known, None if complete or len(lines) >= MANY_LINES else end, notice)


def _object(line: str, what: str) -> dict[str, Any] | None:
    """A line as a JSON object; None where it is none."""
    try:
        content = parse_json(line, what, "")
    except InputError:
        return None
    return content if isinstance(content, dict) else None


class Journal:
    """A file that only one program at a time changes.

    Parameters
    ----------
    path
        The file; it need not be there. Made before it is read, to notice later changes by others.
    what
        What it holds, for messages.

    Attributes
    ----------
    end
        How many bytes of it the next line comes after; None where it is written anew.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self._what = path, what
        self.end: int | None = None
        self._seen = _stamp(path)

    def write(self, line: dict[str, Any], whole: Callable[[], str]) -> None:
        """Write a change as one more line, or `whole` where the file is to be written anew.

        Raises
        ------
        OutputError
            Where it cannot be written, or another program changed the file meanwhile; then nothing
            has changed.
        """
        if self.end is None or not self.path.exists():
            self._begin(whole().encode())
        else:
            self._append((json.dumps(line, allow_nan=False) + "\n").encode(), self.end)

    def _begin(self, text: bytes) -> None:
        self._refuse_changed()
        with staged(self.path, self._what, last=self._refuse_changed) as spare:
            with writing(self.path, self._what):
                spare.write_bytes(text)
            # Of the file itself, another program might have changed it before it is looked at.
            written = _stamp(spare)
        self._seen, self.end = written, len(text)

    def _append(self, line: bytes, end: int) -> None:
        path = self.path
        with writing(path, self._what), locked(path.resolve().parent):
            self._refuse_changed()
            with path.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                try:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    with suppress(OSError):
                        file.truncate(end)
                    self._seen = _stamp(path)
                    raise
            self._seen, self.end = _stamp(path), end + len(line)

    def _refuse_changed(self) -> None:
        if _stamp(self.path) not in (self._seen, None):
            raise OutputError(
                f"{self.path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Marks that change when a file does; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
