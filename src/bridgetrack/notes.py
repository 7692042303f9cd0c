"""Remarks for people, of which a program can tell what kind they are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bridgetrack.errors import BridgetrackWarning


class NoteKind(StrEnum):
    """What a remark is about."""

    REMARK = "remark"
    """Something worth knowing."""
    WARNING = "warning"
    """Something that is probably wrong."""
    UNUSED = "unused annotation"
    """An annotation that was not used, and why; there may be many."""


@dataclass(frozen=True)
class Note:
    """A remark.

    Parameters
    ----------
    kind
        What it is about.
    words
        The remark as a sentence without a full stop.
    """

    kind: NoteKind
    words: str

    def __str__(self) -> str:
        return f"warning: {self.words}" if self.kind == NoteKind.WARNING else self.words


def plural(count: int, noun: str, many: str | None = None) -> str:
    """A number with its noun, e.g. ``"1 cell"`` or ``"1,204 cells"``."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def note_texts(notes: Sequence[Note]) -> list[str]:
    """Notes for machines, each once."""
    return list(dict.fromkeys(map(str, notes)))


@contextmanager
def collecting_warnings(notes: list[Note]) -> Iterator[None]:
    """Keep the warnings of the library as notes; others stay off the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = (str(w.message) for w in caught if issubclass(w.category, BridgetrackWarning))
    notes += [Note(NoteKind.REMARK, words) for words in dict.fromkeys(found)]
