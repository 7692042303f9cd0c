"""A change of the masks of one frame that somebody asked for, and the frame it is made in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.regions.regions import Regions
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Sampling, sampling_of

Place = tuple[float, ...]
Judge = Callable[[Regions, NDArray[Any] | None], Array]
"""How probably each candidate is a cell, higher is better, from candidates and their image."""


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


@dataclass(frozen=True)
class MendSite:
    """A frame whose masks can be mended."""

    frame: int  # its number
    labels: NDArray[Any]  # its labels, shape ([Z,] Y, X)
    # of the built-in segmentation, with the diameter of a cell in pixels
    settings: SegmentationSettings
    free: int  # a number that no cell of the movie ever had
    # one channel of it; without one, masks are told apart by their shape alone
    image: NDArray[Any] | None = None
    scale: tuple[float, ...] | None = None  # pixel size per axis; only ratios matter
    # says which candidates are good; where None, those that many readings agree on
    judge: Judge | None = None

    @property
    def diameter(self) -> float:
        """Diameter of a usual cell in pixels along x."""
        return float(self.settings.diameter or 20.0)

    @property
    def sampling(self) -> Sampling:
        """Sizes of a pixel, in pixels along x."""
        return sampling_of(self.scale, self.labels.shape, self.diameter)

    def label_at(self, place: Place) -> int:
        """The label at a place, 0 for background.

        Raises
        ------
        InputError
            Where the place lies outside the frame.
        """
        return int(self.labels[self.pixel(place)])

    def pixel(self, place: Place) -> tuple[int, ...]:
        """The pixel at a place; raises as `label_at`."""
        at = tuple(round(p) for p in place)
        shape = self.labels.shape
        if len(at) != len(shape) or not all(0 <= a < n for a, n in zip(at, shape, strict=True)):
            raise InputError(
                f"frame {self.frame}: the place {place} lies outside the frame of {shape} pixels; "
                "point at a pixel inside"
            )
        return at

    def cell_at(self, place: Place) -> int:
        """The label of the cell at a place.

        Raises
        ------
        InputError
            Where there is none.
        """
        label = self.label_at(place)
        if not label:
            at = self.pixel(place)
            raise InputError(
                f"frame {self.frame}: there is no cell at pixel {at}; point at one that is drawn"
            )
        return label
