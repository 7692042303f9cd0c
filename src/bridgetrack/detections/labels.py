"""One frame of labels: checked, told from an image, and its pixels numbered by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie, as_labels

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MIXED = 0.25
"""Share of neighbouring pixels of different number from which a frame may be an image.

Of the label movies at hand the highest share is 0.005, of camera images the lowest 0.3."""

_FEW = 20
_TINY = 4
_TORN = 3
_SMALL = 1_000_000


def checked_labels(labels: Movie, t: int) -> NDArray[np.integer]:
    """Labels of frame `t` as whole numbers, shape ([Z,] Y, X); unsigned ones as they are stored.

    Raises
    ------
    InputError
        Where labels are negative, NaN or not whole numbers.
    """
    raw = labels.channel_frame(t)
    if raw.dtype.kind == "b":
        raise InputError(
            f"{labels.source}, frame {t}: this is a yes/no mask, not a label image; "
            "number the cells first (for example with scikit-image's measure.label)"
        )
    if raw.dtype.kind == "u" and raw.dtype.itemsize <= 4:
        return raw
    return as_labels(raw, f"{labels.source}, frame {t}")


def refuse_image(labels: Movie, t: int = 0) -> None:
    """Refuse a label movie that looks like an image in frame `t`.

    Raises
    ------
    InputError
        Where neighbouring pixels mostly have different numbers and the numbers are many: specks
        of a few pixels, or each in many places.
    """
    frame = labels.channel_frame(t)
    if frame.dtype.kind not in "uif" or neighbours_differ(frame) <= MIXED:
        return
    from skimage.measure import label

    _, numbers = np.unique(frame[frame != 0], return_inverse=True)
    count = int(numbers.max(initial=-1)) + 1
    whole = np.zeros(frame.shape, dtype=np.int64)
    whole[frame != 0] = numbers + 1
    pieces = int(label(whole, background=0, connectivity=1).max())
    if count >= _FEW and (numbers.size < _TINY * count or pieces > _TORN * count):
        raise InputError(
            f"{labels.source}, frame {t}: this looks like an image, not like labels: it has "
            f"{count} different numbers in {pieces} separate places, and neighbouring pixels "
            "mostly differ. Labels give every pixel the number of its cell, 0 is background: "
            "segment the image first (bridgetrack segment), or give the label movie"
        )


def neighbours_differ(frame: NDArray[Any]) -> float:
    """Share of the neighbouring pixels that are both not 0 whose values differ."""
    pairs = different = 0
    for axis in range(frame.ndim):
        here = np.moveaxis(frame, axis, 0)[1:]
        there = np.moveaxis(frame, axis, 0)[:-1]
        both = (here != 0) & (there != 0)
        pairs += int(both.sum())
        different += int((both & (here != there)).sum())
    return different / max(pairs, 1)


@dataclass(frozen=True)
class Foreground:
    """Foreground pixels of one frame: label number per pixel and coordinates.

    Parameters
    ----------
    labels
        Labels present, ascending, shape (n,).
    owner
        Index into `labels` per foreground pixel, shape (p,).
    places
        Positions in the flat frame, ascending, shape (p,).
    shape
        Shape of the frame.
    index
        Pixel coordinates per axis, each of shape (p,).
    """

    labels: Index
    owner: Index
    places: Index
    shape: tuple[int, ...]
    index: tuple[Index, ...]

    def total(self, weights: NDArray[Any] | None = None) -> Array:
        """Sum of the weights over every label, shape (n,)."""
        return np.bincount(self.owner, weights, minlength=len(self.labels)).astype(np.float64)

    def numbers(self) -> NDArray[np.int32]:
        """The flat frame with 1 to n in place of the labels, 0 for background."""
        flat = np.zeros(int(np.prod(self.shape)), dtype=np.int32)
        flat[self.places] = self.owner + 1
        return flat


def foreground(labels: NDArray[Any]) -> Foreground:
    """The foreground of a label image of whole numbers, none of them negative."""
    flat = np.ascontiguousarray(labels).reshape(-1)
    places = np.flatnonzero(flat != 0)
    present, owner = numbered(flat[places])
    index = tuple(np.asarray(c) for c in np.unravel_index(places, labels.shape))
    return Foreground(present, owner, places, labels.shape, index)


def numbered(values: NDArray[Any]) -> tuple[Index, Index]:
    """Distinct values, ascending, and the index of each value among them.

    As `numpy.unique` with the inverse, by a table instead of sorting where the largest value
    allows.
    """
    top = int(values.max(initial=0))
    if top > _SMALL + 4 * values.size:
        present, owner = np.unique(values, return_inverse=True)
        return present.astype(np.int64), owner.astype(np.int64)
    there = np.zeros(top + 1, dtype=bool)
    there[values] = True
    present = np.flatnonzero(there)
    rank = np.zeros(top + 1, dtype=np.int64)
    rank[present] = np.arange(len(present))
    return present.astype(np.int64), rank[values]


def shifted_overlap(
    before: NDArray[Any], after: NDArray[Any], label_of: Index, shift: Array
) -> tuple[Index, Index, Index]:
    """Count the pixels that shifted cells of one frame share with cells of the next.

    Parameters
    ----------
    before, after
        Label images of the same shape.
    label_of
        Labels of `before`, ascending, shape (n,).
    shift
        Shift of each of them in pixels, shape (n, ndim); rounded to whole pixels.

    Returns
    -------
    row, label, pixels
        Index into `label_of`, label in `after` and shared pixels, for every pair that shares
        any; shapes (p,).
    """
    cells = foreground(before)
    owner = np.searchsorted(label_of, cells.labels)[cells.owner]
    whole = np.rint(shift).astype(np.int64)
    inside = np.ones(len(owner), dtype=bool)
    place = np.zeros(len(owner), dtype=np.int64)
    for k, (coordinate, size) in enumerate(zip(cells.index, after.shape, strict=True)):
        moved = coordinate + whole[:, k][owner]
        inside &= (moved >= 0) & (moved < size)
        place = place * size + moved
    hit = np.ascontiguousarray(after).reshape(-1)[place[inside]]
    mine = owner[inside][hit > 0]
    return count_pairs(mine, hit[hit > 0].astype(np.int64), len(label_of))


def count_pairs(first: Index, second: Index, n_first: int) -> tuple[Index, Index, Index]:
    """Distinct pairs of whole numbers, in order, and how often each occurs."""
    width = int(second.max(initial=0)) + 1
    key = first * width + second
    if n_first * width > _SMALL + 8 * len(key):
        pairs, count = np.unique(key, return_counts=True)
    else:
        table = np.bincount(key)
        pairs = np.flatnonzero(table)
        count = table[pairs]
    return pairs // width, pairs % width, count.astype(np.int64)
