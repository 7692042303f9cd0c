"""A change of the masks of one frame that somebody asked for; `acts` makes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Index

Place = tuple[float, ...]


class MendKind(StrEnum):
    """What somebody says of the masks; painting says it pixel by pixel, `KEEP` that some are right
    as they are drawn, `CHECK` that all within an area are and that no cell is missing there."""

    CUT = "cut"
    JOIN = "join"
    GROW = "grow"
    REMOVE = "remove"
    OUTLINE = "outline"
    PAINT = "paint"
    KEEP = "keep"
    CHECK = "check"


@dataclass(frozen=True)
class Mend:
    """A change of the masks of one frame."""

    kind: MendKind  # what was said
    frame: int  # number of the frame
    places: tuple[Place, ...]  # where somebody pointed, in pixels
    pixels: Index  # places in the flat frame whose label changes, ascending, shape (P,)
    # their labels, shape (P,)
    before: Index
    after: Index
    cells: tuple[int, ...]  # labels of the cells that it leaves there
    right: tuple[Index, ...]  # pixels of each of them, places in the flat frame, ascending
    wrong: tuple[Index, ...]  # sets of pixels that are not one cell, as this says

    @property
    def inverse(self) -> Mend:
        """The change back."""
        cells = tuple(np.unique(self.before[self.before > 0]).tolist())
        turned = replace(self, before=self.after, after=self.before, cells=cells)
        return replace(turned, right=self.wrong, wrong=self.right)

    def fits(self, labels: NDArray[Any]) -> bool:
        """Whether a frame's labels are still what they were before."""
        return bool(np.array_equal(labels.reshape(-1)[self.pixels], self.before))
