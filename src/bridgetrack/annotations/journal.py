"""Files that are appended to: the state on the first line, and a line for each later change.

A change is on the disk when the call returns, and nothing is rewritten. Of a file that ends within
a line, because the program was killed while it wrote, the whole lines count. Earlier versions kept
one JSON object, which was written anew at every change; it is read, too.
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
    """What a file holds: its content, and what is wrong with its end, if anything.

    ``end`` is how many bytes of it a further line comes after; None where it is to be written anew.
    """

    content: T
    end: int | None
    notice: str = ""


@dataclass(frozen=True)
class JournalFormat(Generic[T]):
    """A format of journals.

    Parameters
    ----------
    document
        The object of version 1; with version 2 it is the first line of a journal.
    change
        Schema of the other lines.
    after
        Content after a change; an `InputError` where it does not fit.
    to_json
        Content as the entries of the first line.
    """

    document: FileFormat[Any, T]
    change: type[FilePart]
    after: Callable[[T, Any], T]
    to_json: Callable[[T], dict[str, Any]]

    def first_line(self, content: T) -> str:
        """A journal without changes."""
        head = {"format": self.document.name, "version": 2}
        return json.dumps({**head, **self.to_json(content)}, allow_nan=False) + "\n"

    def read(self, path: Path) -> Read[T]:
        """Read a journal or a document.

        Raises
        ------
        InputError
            Where the file is missing or not valid; the message names the entry.
        """
        what = self.document.what
        text = read_text(path, what, largest=self.document.largest)
        first, _, rest = text.partition("\n")
        head = self._object(first)
        if head is None or head.get("version") == self.document.version:
            return Read(self.document.parse(text, str(path)), None)
        content = replace(self.document, version=2).check(head, str(path))
        *lines, torn = rest.split("\n")
        if complete := self._object(torn) is not None:
            lines.append(torn)  # an editor has taken its end away
        for number, line in enumerate(lines, 2):
            where = f"{path}, line {number}"
            change = check(self.change, parse_json(line, what, where), where)
            try:
                content = self.after(content, change)
            except InputError as error:
                raise InputError(f"{where}: {error}; take the file from a backup") from None
        notice = ""
        if torn and not complete:
            notice = (
                f"{path}: its last line is not whole (the program was ended while it wrote it) and "
                f"is left out; the {len(lines)} changes before it are there"
            )
        end = path.stat().st_size - len(torn.encode())
        return Read(content, None if complete or len(lines) >= MANY_LINES else end, notice)

    def _object(self, line: str) -> dict[str, Any] | None:
        """A line as a JSON object; None where it is none."""
        try:
            content = parse_json(line, self.document.what, "")
        except InputError:
            return None
        return content if isinstance(content, dict) else None


class Journal(Generic[T]):
    """A file that only one program at a time changes.

    Parameters
    ----------
    path
        The file; read where it is there, made at the first change where not. None to keep the
        content in memory alone.
    form
        Its format.
    begin
        The content where there is no file yet.
    what
        What it holds, for messages.

    Attributes
    ----------
    content
        The present content.
    notice
        What was wrong with the end of the file; empty where nothing was.

    Raises
    ------
    InputError
        Where the file is there but not valid.
    """

    def __init__(self, path: Path | None, form: JournalFormat[T], begin: T, what: str) -> None:
        self.path, self._form, self._what = path, form, what
        self._seen = _stamp(path)
        found = Read(begin, None)
        if path is not None and self._seen is not None:
            found = form.read(path)
        self.content, self._end, self.notice = found.content, found.end, found.notice

    def keep(self, content: T, change: dict[str, Any]) -> None:
        """Write a change down, then take the content that it leads to.

        Raises
        ------
        OutputError
            Where it cannot be written, or another program changed the file meanwhile; then nothing
            has changed.
        """
        if self.path is not None:
            if self._end is None or not self.path.exists():
                self._begin(self.path, self._form.first_line(content).encode())
            else:
                line = json.dumps(change, allow_nan=False) + "\n"
                self._append(self.path, line.encode(), self._end)
        self.content = content

    def _begin(self, path: Path, text: bytes) -> None:
        self._refuse_changed()
        with staged(path, self._what, last=self._refuse_changed) as spare:
            with writing(path, self._what):
                spare.write_bytes(text)
            # Of the file itself, another program might have changed it before it is looked at.
            written = _stamp(spare)
        self._seen, self._end = written, len(text)

    def _append(self, path: Path, line: bytes, end: int) -> None:
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
            self._seen, self._end = _stamp(path), end + len(line)

    def _refuse_changed(self) -> None:
        if _stamp(self.path) not in (self._seen, None):
            raise OutputError(
                f"{self.path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Marks that change when a file does; None where there is none."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
