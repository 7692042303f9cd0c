"""Answers about the masks of one frame, and the changes that they make; see `acts`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer

from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.regions.regions import regions_of_labels
from bridgetrack.schema import Count

Place = tuple[float, ...]

Runs = tuple[tuple[int, int], ...]
"""Pixels of a frame as first places and lengths of runs in the flat frame, ascending."""

ChangedRuns = tuple[tuple[int, int, int, int], ...]
"""Runs of pixels whose label changed: first place, length, label before and after."""


class MendKind(StrEnum):
    """Kind of an answer about masks; painting gives the pixels, `KEEP` confirms some masks, `CHECK`
    confirms all within an area, and that no cell is missing there."""

    CUT = "cut"
    JOIN = "join"
    GROW = "grow"
    REMOVE = "remove"
    OUTLINE = "outline"
    PAINT = "paint"
    KEEP = "keep"
    CHECK = "check"

    @property
    def words(self) -> str:
        """The answer in words, e.g. ``these are two cells``."""
        return _WORDS[self]


_WORDS = {
    MendKind.CUT: "these are two cells",
    MendKind.JOIN: "this is one cell",
    MendKind.GROW: "here is a cell",
    MendKind.REMOVE: "this is not a cell",
    MendKind.OUTLINE: "this is its outline",
    MendKind.PAINT: "these masks are right",
    MendKind.KEEP: "these masks are right",
    MendKind.CHECK: "all masks in view are right",
}


def _grouped(size: int) -> BeforeValidator:
    """Runs as groups of so many numbers, which files store one after another."""

    def group(flat: Any) -> Any:
        if not isinstance(flat, list) or len(flat) % size:
            raise InputError(f"a list of runs must have {size} numbers for each")
        return tuple(zip(*[iter(flat)] * size, strict=True))

    return BeforeValidator(group)


_FLAT = PlainSerializer(lambda runs: [number for run in runs for number in run])
_RunsField = Annotated[Runs, _grouped(2), _FLAT]
_ChangeField = Annotated[ChangedRuns, _grouped(4), _FLAT]


@dataclass(frozen=True)
class MaskAnswer:
    """An answer about the masks of a frame, and the change that it makes."""

    frame: Count  # number of the frame
    kind: MendKind  # kind of the answer
    right: tuple[_RunsField, ...] = ()  # sets of pixels that are exactly one cell
    wrong: tuple[_RunsField, ...] = ()  # sets of pixels that are not one cell
    change: _ChangeField = ()  # the change of the labels
    # of those that are kept: a name that is never given twice; time in ISO 8601 with the zone
    id: str = ""
    created: str = ""

    @classmethod
    def of(
        cls,
        frame: int,
        kind: MendKind,
        right: Iterable[Index] = (),
        wrong: Iterable[Index] = (),
        change: tuple[Index, Index, Index] | None = None,
    ) -> MaskAnswer:
        """An answer from pixels given as ascending places in the flat frame.

        `change` has the pixels that change, and their labels before and after. Empty sets are left
        out.
        """
        cells, others = (tuple(runs_of(p) for p in side if len(p)) for side in (right, wrong))
        runs = () if change is None else _changed_runs(*change)
        return cls(frame, kind, cells, others, runs)

    @property
    def says_nothing(self) -> bool:
        """Whether this is a new choice of masks by the program, and no answer."""
        return self.kind == MendKind.PAINT and not (self.right or self.wrong)

    @property
    def words(self) -> str:
        """The answer as one line, e.g. ``frame 3: these are two cells``."""
        return f"frame {self.frame}: {self.kind.words}"

    @property
    def pixels(self) -> Index:
        """Places in the flat frame that it is about; some several times."""
        changed = tuple(run[:2] for run in self.change)
        return np.concatenate([pixels_of(runs) for runs in (*self.right, *self.wrong, changed)])

    @property
    def labels(self) -> set[int]:
        """Labels before and after of the pixels that it changes."""
        return {label for run in self.change for label in run[2:]}

    @property
    def changed(self) -> tuple[Index, Index, Index]:
        """Places in the flat frame whose label changes, ascending, and labels before and after."""
        start, length, before, after = np.array(self.change, dtype=np.int64).reshape(-1, 4).T
        pixels = pixels_of(zip(start, length, strict=True))
        return pixels, np.repeat(before, length), np.repeat(after, length)

    @property
    def inverse(self) -> MaskAnswer:
        """The change back."""
        back = tuple((start, length, after, before) for start, length, before, after in self.change)
        return replace(self, change=back)

    def fits(self, labels: NDArray[Any]) -> bool:
        """Whether a frame's labels are still what they were before."""
        pixels, before, _ = self.changed
        return bool(np.array_equal(labels.reshape(-1)[pixels], before))


def pixels_of(runs: Iterable[tuple[int, int]]) -> Index:
    """Places of the pixels of some runs, in their order."""
    parts = [np.arange(start, start + length, dtype=np.int64) for start, length in runs]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def runs_of(pixels: Index) -> Runs:
    """Runs of pixels given by their places, ascending."""
    return tuple(run[:2] for run in _changed_runs(pixels, pixels * 0, pixels * 0))


def _changed_runs(pixels: Index, before: Index, after: Index) -> ChangedRuns:
    """Runs of pixels with one label before and one after."""
    if not len(pixels):
        return ()
    breaks = np.diff(pixels) != 1
    breaks |= (np.diff(before) != 0) | (np.diff(after) != 0)
    first = np.concatenate([[0], np.flatnonzero(breaks) + 1])
    length = np.diff(np.append(first, len(pixels)))
    columns = (pixels[first], length, before[first], after[first])
    return tuple(zip(*(c.tolist() for c in columns), strict=True))


def cell_pixels(labels: NDArray[Any], cells: NDArray[Any] | Sequence[int]) -> list[Index]:
    """Pixels of some cells of a label frame, of those that are there, as places in it."""
    found = regions_of_labels(np.where(np.isin(labels, cells), labels, 0))
    return [found.region_pixels(r) for r in range(len(found))]
