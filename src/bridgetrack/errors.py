"""Errors, warnings and notes for users.

Errors have one root, so that callers can catch everything at once. A message
says what was wrong, where (file, layer, frame, cell), and what to do about it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class BridgetrackError(Exception):
    """Root of every error that Bridgetrack raises on purpose."""


class InputError(BridgetrackError):
    """A file, an array or a table cannot be used as it is."""


class OutputError(BridgetrackError):
    """A result cannot be written where it was asked for."""


class ContradictionError(BridgetrackError):
    """Annotations or fixed events contradict each other.

    Parameters
    ----------
    message
        What contradicts what; the annotations follow, and then the `rest` of the message.
    annotations
        Those that it names.
    """

    def __init__(self, message: str, annotations: Sequence[Any] = (), rest: str = "") -> None:
        self._parts = message, tuple(annotations), rest
        super().__init__(self.words())

    def words(self, words_of: Callable[[Any], str] = str) -> str:
        """The message with annotations in other words, e.g. with the names of cells in a window."""
        message, annotations, rest = self._parts
        return f"{message}{'; '.join(map(words_of, annotations))}{rest}"


class ModelError(BridgetrackError):
    """A model file cannot be used with this program or this movie."""


class SolverError(BridgetrackError):
    """A solver is missing or returned something that is not a solution."""


class InfeasibleError(SolverError):
    """The allowed events cannot explain every cell exactly once."""


class DependencyError(BridgetrackError):
    """An optional package that a chosen option needs is not installed."""


class BridgetrackWarning(UserWarning):
    """Something in the input is unusual, but the work continues."""


class WrongInputWarning(BridgetrackWarning):
    """Something in the input is probably wrong."""


def warn(words: str, kind: type[BridgetrackWarning] = BridgetrackWarning) -> None:
    """Issue a warning about something unusual in the input."""
    warnings.warn(words, kind, stacklevel=3)


INTERRUPTION = "interrupted; no incomplete files were left behind"
"""What a command says that was ended by Ctrl-C."""

# ---------------------------------------------------------------------- notes


class NoteKind(StrEnum):
    """Kind of a note."""

    REMARK = "remark"
    """Something worth knowing."""
    WARNING = "warning"
    """Something that is probably wrong."""
    UNUSED = "unused annotation"
    """An annotation that was not used, and why; there may be many."""


@dataclass(frozen=True)
class Note:
    """A note for users."""

    kind: NoteKind
    words: str  # as a sentence without a full stop

    def __str__(self) -> str:
        return f"warning: {self.words}" if self.kind == NoteKind.WARNING else self.words


def plural(count: int, noun: str, many: str | None = None) -> str:
    """A number with a noun, e.g. ``"1 cell"`` or ``"1,204 cells"``."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def sentence(words: str) -> str:
    """The words with a capital and a full stop; empty words stay empty."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def note_texts(notes: Sequence[Note]) -> list[str]:
    """The texts of notes, each once."""
    return list(dict.fromkeys(map(str, notes)))


@contextmanager
def collecting_warnings(notes: list[Note]) -> Iterator[None]:
    """Collect the warnings of Bridgetrack as notes; other warnings are not shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        wrong = issubclass(one.category, WrongInputWarning)
        note = Note(NoteKind.WARNING if wrong else NoteKind.REMARK, str(one.message))
        if issubclass(one.category, BridgetrackWarning) and note not in notes:
            notes.append(note)
