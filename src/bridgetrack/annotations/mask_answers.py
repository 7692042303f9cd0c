"""Answers about masks: which sets of pixels are exactly one cell, and which are not.

A later answer counts where two cannot both hold. Masks that the program chose anew are kept in the
same list, as changes that say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from bridgetrack.annotations.annotation import is_time, now
from bridgetrack.annotations.annotation_set import AnswerSet
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.regions.mend import Mend, MendKind

Runs = tuple[tuple[int, int], ...]
"""Pixels of a frame as first places and lengths of runs in the flat frame, ascending."""

ChangedRuns = tuple[tuple[int, int, int, int], ...]
"""Runs of pixels whose label changed: first place, length, label before and after."""


def _grouped(size: int) -> BeforeValidator:
    """Runs as lists of so many numbers, which files keep one after another."""

    def group(flat: Any) -> Any:
        if not isinstance(flat, list) or len(flat) % size:
            raise InputError(f"a list of runs must have {size} numbers for each")
        return tuple(zip(*[iter(flat)] * size, strict=True))

    return BeforeValidator(group)


_FLAT = PlainSerializer(lambda runs: [number for run in runs for number in run])
_RunsField = Annotated[Runs, _grouped(2), _FLAT]
_ChangeField = Annotated[ChangedRuns, _grouped(4), _FLAT]

HIGHEST = 2**32 - 1
_ID = re.compile(r"m(0|[1-9]\d{0,14})", re.ASCII)
_MENDING = (MendKind.CUT, MendKind.JOIN, MendKind.GROW, MendKind.REMOVE, MendKind.PAINT)


@dataclass(frozen=True)
class MaskAnswer:
    """One answer about the masks of a frame.

    Raises
    ------
    InputError
        Where runs overlap, or a number is out of range.
    """

    id: str  # never given twice
    frame: int  # number of the frame
    kind: MendKind  # what was done
    created: str  # time in ISO 8601 with the zone
    right: tuple[_RunsField, ...] = ()  # sets of pixels that are exactly one cell
    wrong: tuple[_RunsField, ...] = ()  # sets of pixels that are not one cell
    change: _ChangeField = ()  # what it changed in the labels

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
        if not is_time(self.created):
            raise InputError(f"mask answer {self.id}: created is {self.created[:80]!r}, not a time")

    @property
    def says_nothing(self) -> bool:
        """Whether this is no answer, but masks that were chosen anew."""
        return self.kind == MendKind.PAINT and not (self.right or self.wrong)

    @cached_property
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

    @cached_property
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


class MaskAnswers(AnswerSet[MaskAnswer]):
    """All answers about the masks of a movie, in the order in which they were given.

    Iteration goes over the answers alone, without masks that were chosen anew, which are in `past`
    and are found by id, too.

    Parameters
    ----------
    geometry, answers, last_ids
        As of `AnswerSet`.
    last_label
        Highest label ever given, also by answers that are gone.

    Attributes
    ----------
    held
        What answers about events say of the masks as they are now, see `with_events`; it is never
        written down. What somebody said of masks goes before what is right by these.

    Raises
    ------
    InputError
        Where an id is there twice, or an answer speaks of pixels beyond the movie.
    """

    noun, prefix = "answer about masks", "m"

    def __init__(
        self,
        geometry: Geometry,
        answers: Iterable[MaskAnswer] = (),
        last_ids: Mapping[str, int] | None = None,
        last_label: int = 0,
    ) -> None:
        self.last_label = last_label
        self.held: tuple[MaskAnswer, ...] = ()
        super().__init__(geometry, answers, last_ids)

    def _check(self, answer: MaskAnswer) -> None:
        n_pixels = int(np.prod(self.geometry.shape or (), dtype=object))
        if answer.frame >= self.geometry.n_frames or answer.end > n_pixels:
            raise InputError(f"mask answer {answer.id} speaks of pixels beyond the movie")
        if not _ID.fullmatch(answer.id):
            raise InputError(f"the mask answer id {answer.id[:80]!r} must be m and a number")
        self.last_label = max(self.last_label, answer.highest)

    @property
    def past(self) -> tuple[MaskAnswer, ...]:
        """The answers, and changes of masks without an answer."""
        return tuple(self._items.values())

    def __iter__(self) -> Iterator[MaskAnswer]:
        return (a for a in self._items.values() if not a.says_nothing)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def checked(self) -> int:
        """Cells in areas that somebody looked at and found right."""
        return sum(len(a.right) for a in self if a.kind == MendKind.CHECK)

    @property
    def mended(self) -> int:
        """Answers by which a cell came, went, was cut or joined."""
        return sum(a.kind in _MENDING for a in self)

    def holding(self, held: Iterable[MaskAnswer]) -> MaskAnswers:
        """The same with other `held`."""
        made = copy(self)
        made.held = tuple(held)
        return made

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
            for number, mend in enumerate(mends, 1 + self.last_ids.get("m", 0))
        )


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
