"""Files of answers about masks: journals, as those of annotations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from bridgetrack.annotations.journal import Journal, JournalFormat
from bridgetrack.annotations.mask_answers import HIGHEST, MaskAnswer, MaskAnswers
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.notes import plural
from bridgetrack.regions.mend import MendKind
from bridgetrack.schema import Count, FileFormat, FilePart, made_by

_Flat = list[Count]
_HEAD = 256
"""Bytes at the beginning of a file in which its format stands."""


def _grouped(flat: list[int], size: int) -> Any:
    if len(flat) % size:
        raise InputError(f"a list of runs must have {size} numbers for each")
    return tuple(zip(*[iter(flat)] * size, strict=True))


class _Answer(FilePart):
    id: str
    frame: Count
    kind: Annotated[MendKind, Field(strict=False)]
    created: str
    right: list[_Flat]
    wrong: list[_Flat]
    change: _Flat

    def answer(self) -> MaskAnswer:
        right, wrong = (
            tuple(_grouped(flat, 2) for flat in side) for side in (self.right, self.wrong)
        )
        change = _grouped(self.change, 4)
        return MaskAnswer(self.id, self.frame, self.kind, self.created, right, wrong, change)


_Listed = list[Annotated[MaskAnswer, made_by(_Answer, _Answer.answer)]]


class _Content(FilePart):
    movie: GeometryField
    answers: _Listed
    undone: _Listed = Field(default_factory=list)  # of earlier versions, which are not repeated
    last_id: Count
    last_label: Annotated[int, Field(ge=0, le=HIGHEST)]

    def made(self) -> MaskAnswers:
        if self.movie.shape is None:
            raise InputError("movie: answers about masks need the extent of its frames")
        return MaskAnswers(self.movie, tuple(self.answers), self.last_id, self.last_label)


class _Change(FilePart):
    removed: list[str]
    added: _Listed


def _after(answers: MaskAnswers, change: _Change) -> MaskAnswers:
    removed = set(change.removed)
    gone = [a for a in answers if a.id in removed] if removed else []
    if len(gone) < len(change.removed):
        raise InputError("there is no such answer to remove")
    return answers.exchanged(gone, change.added)


def _to_json(answers: MaskAnswers) -> dict[str, Any]:
    return {
        "movie": geometry_to_json(answers.geometry),
        "answers": [_answer_to_json(a) for a in answers],
        "last_id": answers.last_id,
        "last_label": answers.last_label,
    }


def _answer_to_json(answer: MaskAnswer) -> dict[str, Any]:
    def flat(runs: Iterable[tuple[int, ...]]) -> list[int]:
        return [number for run in runs for number in run]

    return {
        "id": answer.id,
        "frame": answer.frame,
        "kind": str(answer.kind),
        "created": answer.created,
        "right": [flat(runs) for runs in answer.right],
        "wrong": [flat(runs) for runs in answer.wrong],
        "change": flat(answer.change),
    }


MASK_FILE = FileFormat(
    "bridgetrack-masks",
    1,
    "a file of answers about masks",
    _Content,
    _Content.made,
    largest=1_000_000_000,
)
MASK_JOURNAL = JournalFormat(MASK_FILE, _Change, _after, _to_json)
"""Files of answers about masks, as `MaskAnswers`."""


def load_mask_answers(
    path: str | os.PathLike[str], geometry: Geometry | None = None
) -> MaskAnswers:
    """Answers about masks from a file.

    Parameters
    ----------
    path
        The file.
    geometry
        Extent and scale of the movie that they must be about, which they then have; any where
        None.

    Raises
    ------
    InputError
        Where the file is missing or not valid, the message names the entry; or where it belongs
        to another movie.
    """
    known = MASK_JOURNAL.read(Path(path)).content
    return known if geometry is None else _about(known, geometry, path)


def _about(known: MaskAnswers, geometry: Geometry, path: str | os.PathLike[str]) -> MaskAnswers:
    """The same of a movie, which they must be about."""
    if known.geometry.shape != geometry.shape or known.geometry.n_frames > geometry.n_frames:
        here, there = (
            f"{plural(g.n_frames, 'frame')} of {g.shape} pixels" for g in (geometry, known.geometry)
        )
        raise InputError(
            f"{path}: these answers about masks are of another movie ({there}, not {here}); give "
            "those about this one, or put the file elsewhere"
        )
    return replace(known, geometry=geometry)


def is_mask_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file is said to hold answers about masks, by its first words."""
    if not Path(path).is_file():
        return False  # told when it is read; a pipe would be waited for
    try:
        with Path(path).open("rb") as file:
            return MASK_FILE.name.encode() in file.read(_HEAD)
    except OSError:
        return False  # told when it is read


class MaskStore:
    """Answers about masks kept in a file: a change is on disk when the call returns.

    Parameters
    ----------
    path
        The file; read where it is there, made at the first change where not. None to keep them
        in memory alone.
    geometry
        Extent and scale of the movie.
    what
        What it holds, for messages.

    Attributes
    ----------
    notice
        What was wrong with the end of the file; empty where nothing was.

    Raises
    ------
    InputError
        Where the file is there but not valid, or belongs to frames of another extent.
    """

    def __init__(
        self, path: Path | None, geometry: Geometry, what: str = "the answers about masks"
    ) -> None:
        journal = self._journal = Journal(path, MASK_JOURNAL, MaskAnswers(geometry), what)
        journal.content = _about(journal.content, geometry, path or "")
        self.notice = journal.notice

    @property
    def answers(self) -> MaskAnswers:
        """The present answers."""
        return self._journal.content

    def exchange(self, gone: Iterable[MaskAnswer] = (), come: Iterable[MaskAnswer] = ()) -> None:
        """Remove and add answers.

        Raises
        ------
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        removed, added = list(gone), list(come)
        change = {
            "removed": [a.id for a in removed],
            "added": [_answer_to_json(a) for a in added],
        }
        self._journal.keep(self.answers.exchanged(removed, added), change)


def masks_path(answers: Path) -> Path:
    """Where answers about masks are kept: beside the file of answers about events."""
    return answers.with_name(f"{answers.name.removesuffix('.annotations.json')}.masks.json")
