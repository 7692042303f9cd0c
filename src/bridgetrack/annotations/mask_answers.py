"""Answers about masks: which sets of pixels are exactly one cell, and which are not.

A later answer counts where two cannot both hold. They are kept in a file of their own beside the
annotations, which is written at every answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bridgetrack.annotations.annotation import now
from bridgetrack.annotations.store import KeptFile
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.notes import plural
from bridgetrack.regions.mend import Mend, MendKind
from bridgetrack.schema import Count, FileFormat, FilePart, made_by

Index = NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]
"""Pixels of a frame as first places and lengths of runs in the flat frame, ascending."""

ChangedRuns = tuple[tuple[int, int, int, int], ...]
"""Runs of pixels whose label changed: first place, length, label before and after."""

HIGHEST = 2**32 - 1
_MENDING = (MendKind.CUT, MendKind.JOIN, MendKind.GROW, MendKind.REMOVE, MendKind.PAINT)


@dataclass(frozen=True)
class MaskAnswer:
    """One answer about the masks of a frame.

    Parameters
    ----------
    id
        Never given twice.
    frame
        Number of the frame.
    kind
        What was done.
    created
        Time in ISO 8601 with the zone.
    right
        Sets of pixels that are exactly one cell.
    wrong
        Sets of pixels that are not one cell.
    change
        What it changed in the labels.

    Raises
    ------
    InputError
        Where runs overlap, or a number is out of range.
    """

    id: str
    frame: int
    kind: MendKind
    created: str
    right: tuple[Runs, ...] = ()
    wrong: tuple[Runs, ...] = ()
    change: ChangedRuns = ()

    def __post_init__(self) -> None:
        if self.frame < 0:
            raise InputError(f"mask answer {self.id}: frame {self.frame} must be 0 or more")
        for runs in (*self.right, *self.wrong, self.change):
            end = 0
            for start, length, *labels in runs:
                if start < end or length < 1 or not all(0 <= k <= HIGHEST for k in labels):
                    raise InputError(f"mask answer {self.id}: its runs of pixels are not in order")
                end = start + length
        if not all(self.right) or not all(self.wrong):
            raise InputError(f"mask answer {self.id}: a set of pixels is empty")
        try:
            known = datetime.fromisoformat(self.created).tzinfo is not None
        except ValueError:
            known = False
        if not known:
            raise InputError(f"mask answer {self.id}: created is {self.created[:80]!r}, not a time")

    @property
    def end(self) -> int:
        """The place after the last pixel that it speaks of."""
        runs = (*self.right, *self.wrong, self.change)
        return max((r[-1][0] + r[-1][1] for r in runs if r), default=0)

    @property
    def pixels(self) -> Index:
        """Places in the flat frame that it is about, ascending."""
        sets = [pixels_of(runs) for runs in (*self.right, *self.wrong)]
        changed = pixels_of(run[:2] for run in self.change)
        return np.unique(np.concatenate([changed, *sets]))

    @property
    def highest(self) -> int:
        """The highest label that it changed or gave."""
        return max((max(run[2:]) for run in self.change), default=0)

    @property
    def mend(self) -> Mend:
        """The change of the labels, for doing it again; `Mend.inverse` takes it back."""
        pixels = pixels_of([run[:2] for run in self.change])
        length = [run[1] for run in self.change]
        before, after = (
            np.repeat(np.array([run[k] for run in self.change], dtype=np.int64), length)
            for k in (2, 3)
        )
        cells = tuple(np.unique(after[after > 0]).tolist())
        sets = (tuple(map(pixels_of, side)) for side in (self.right, self.wrong))
        return Mend(self.kind, self.frame, (), pixels, before, after, cells, *sets)


def pixels_of(runs: Iterable[tuple[int, int]]) -> Index:
    """Places of the pixels of some runs, ascending."""
    parts = [np.arange(start, start + length, dtype=np.int64) for start, length in runs]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def runs_of(pixels: Index) -> Runs:
    """Runs of pixels given by their places, ascending."""
    return tuple(run[:2] for run in change_of(pixels, pixels * 0, pixels * 0))


def change_of(pixels: Index, before: Index, after: Index) -> ChangedRuns:
    """Runs of pixels with one label before and one after."""
    if not len(pixels):
        return ()
    breaks = np.diff(pixels) != 1
    breaks |= (np.diff(before) != 0) | (np.diff(after) != 0)
    first = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    length = np.diff(np.append(first, len(pixels)))
    columns = (pixels[first], length, before[first], after[first])
    return tuple(zip(*(c.tolist() for c in columns), strict=True))


@dataclass(frozen=True)
class MaskAnswers:
    """All answers about the masks of a movie, in the order in which they were given.

    Parameters
    ----------
    geometry
        Extent of the movie.
    past
        The answers that count.
    last_id, last_label
        Highest number of an id and highest label ever given, also by answers that are gone.
    held
        What answers about events say of the masks as they are now, see `with_events`; it is never
        written down. What somebody said of masks goes before what is right by these.

    Raises
    ------
    InputError
        Where an id is there twice, or an answer speaks of pixels beyond the movie.
    """

    geometry: Geometry
    past: tuple[MaskAnswer, ...] = ()
    last_id: int = 0
    last_label: int = 0
    held: tuple[MaskAnswer, ...] = ()

    def __post_init__(self) -> None:
        n_pixels = int(np.prod(self.geometry.shape or (), dtype=object))
        seen: set[str] = set()
        for a in self.past:
            if a.id in seen:
                raise InputError(f"there are two mask answers with the id {a.id!r}")
            seen.add(a.id)
            if a.frame >= self.geometry.n_frames or a.end > n_pixels:
                raise InputError(f"mask answer {a.id} speaks of pixels beyond the movie")
            if a.id != f"m{_number(a.id)}":
                raise InputError(f"the mask answer id {a.id[:80]!r} must be m and a number")
        numbers = [_number(i) for i in seen]
        labels = [a.highest for a in self.past]
        object.__setattr__(self, "last_id", max([self.last_id, *numbers]))
        object.__setattr__(self, "last_label", max([self.last_label, *labels]))

    def __len__(self) -> int:
        return len(self.past)

    def __iter__(self) -> Iterator[MaskAnswer]:
        return iter(self.past)

    @property
    def checked(self) -> int:
        """Cells in areas that somebody looked at and found right."""
        return sum(len(a.right) for a in self.past if a.kind == MendKind.CHECK)

    @property
    def mended(self) -> int:
        """Answers by which a cell came, went, was cut or joined."""
        return sum(a.kind in _MENDING for a in self.past)

    def added(self, mend: Mend) -> MaskAnswers:
        """With what a change of masks says."""
        return replace(self, past=(*self.past, *self.next_for([mend])))

    def next_for(self, mends: Sequence[Mend]) -> tuple[MaskAnswer, ...]:
        """What changes of masks say, with the next free ids."""
        return tuple(
            MaskAnswer(
                f"m{number}",
                mend.frame,
                mend.kind,
                now(),
                tuple(runs_of(p) for p in mend.right if len(p)),
                tuple(runs_of(p) for p in mend.wrong if len(p)),
                change_of(mend.pixels, mend.before, mend.after),
            )
            for number, mend in enumerate(mends, self.last_id + 1)
        )

    def exchanged(self, gone: Iterable[MaskAnswer], come: Iterable[MaskAnswer]) -> MaskAnswers:
        """Without some answers and with others, which come where they stood before."""
        ids = {a.id for a in gone}
        past = [*(a for a in self.past if a.id not in ids), *come]
        return replace(self, past=tuple(sorted(past, key=lambda a: _number(a.id))))


def _number(answer_id: str) -> int:
    """The number of an id; -1 where it has none."""
    digits = answer_id[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else -1


MASKS = {
    MendKind.CUT: "these are two cells",
    MendKind.JOIN: "this is one cell",
    MendKind.GROW: "here is a cell",
    MendKind.REMOVE: "this is no cell",
    MendKind.OUTLINE: "this is its outline",
    MendKind.PAINT: "these masks are right",
    MendKind.KEEP: "these masks are right",
    MendKind.CHECK: "all that was in view is right",
}
"""What an answer says of masks."""


def describe_masks(frame: int, kind: MendKind) -> str:
    """An answer about masks as one line, e.g. ``frame 3: these are two cells``."""
    return f"frame {frame}: {MASKS[kind]}"


# ---------------------------------------------------------------------- files

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
    undone: _Listed  # of earlier versions, in which answers could be repeated from the file
    last_id: Count
    last_label: Annotated[int, Field(ge=0, le=HIGHEST)]

    def made(self) -> MaskAnswers:
        if self.movie.shape is None:
            raise InputError("movie: answers about masks need the extent of its frames")
        return MaskAnswers(self.movie, tuple(self.answers), self.last_id, self.last_label)


MASK_FILE = FileFormat(
    "bridgetrack-masks",
    1,
    "a file of answers about masks",
    _Content,
    _Content.made,
    largest=1_000_000_000,
)
"""Files of answers about masks, as `MaskAnswers`; `encode_masks` writes them."""


def encode_masks(answers: MaskAnswers) -> str:
    """Answers about masks as the text of their file, one a line."""
    past = ",\n".join("  " + _line(a) for a in answers.past)
    movie = json.dumps(geometry_to_json(answers.geometry), allow_nan=False)
    return (
        f'{{\n "format": "{MASK_FILE.name}",\n "version": {MASK_FILE.version},\n'
        f' "movie": {movie},\n "answers": [\n{past}\n ],\n "undone": [],\n'
        f' "last_id": {answers.last_id},\n "last_label": {answers.last_label}\n}}\n'
    )


def _line(answer: MaskAnswer) -> str:
    def flat(runs: Iterable[tuple[int, ...]]) -> list[int]:
        return [number for run in runs for number in run]

    entry = {
        "id": answer.id,
        "frame": answer.frame,
        "kind": str(answer.kind),
        "created": answer.created,
        "right": [flat(runs) for runs in answer.right],
        "wrong": [flat(runs) for runs in answer.wrong],
        "change": flat(answer.change),
    }
    return json.dumps(entry, separators=(",", ":"))


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
    known = MASK_FILE.read(Path(path))
    if geometry is None:
        return known
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

    Raises
    ------
    InputError
        Where the file is there but not valid, or belongs to frames of another extent.
    """

    def __init__(
        self, path: Path | None, geometry: Geometry, what: str = "the answers about masks"
    ) -> None:
        self._file = KeptFile(path, what)
        self._answers = MaskAnswers(geometry)
        if path is not None and self._file.there:
            self._answers = load_mask_answers(path, geometry)

    @property
    def path(self) -> Path | None:
        """Where the answers are kept; None where they are in memory alone."""
        return self._file.path

    @property
    def answers(self) -> MaskAnswers:
        """The present answers."""
        return self._answers

    def keep(self, answers: MaskAnswers) -> None:
        """Write other answers down in place of the present ones.

        Raises
        ------
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        self._file.write(lambda: encode_masks(answers))
        self._answers = answers


def masks_path(answers: Path) -> Path:
    """Where answers about masks are kept: beside the file of answers about events."""
    return answers.with_name(f"{answers.name.removesuffix('.annotations.json')}.masks.json")
