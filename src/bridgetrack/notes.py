"""Remarks for people, of which a program can tell what kind they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
