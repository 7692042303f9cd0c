"""Noticing that an image was given where its segmentation is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie

MIXED = 0.25
"""Share of neighbouring pixels of different number from which a frame may be an image.

Of the label movies at hand the highest share is 0.005, of camera images the lowest 0.3."""

_FEW = 20
_TINY = 4
_TORN = 3


def refuse_image(labels: Movie, t: int = 0) -> None:
    """Refuse a label movie that looks like an image.

    Parameters
    ----------
    labels
        The label movie.
    t
        Frame to look at.

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
