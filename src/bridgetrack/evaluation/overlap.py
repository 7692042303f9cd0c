"""How many pixels the cells of two segmentations of one movie share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.labels import count_pairs
from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie

Rows = NDArray[np.int64]

COVERED = 0.5
"""Share of a true cell beyond which a detection covers it (Matula et al. 2015)."""


@dataclass(frozen=True)
class CellIds:
    """Identities of the cells of a segmentation."""

    # frame, label: frame and label of every cell, shape (n,); a row's number is its identity in
    # `Overlaps`
    frame: Rows
    label: Rows
    labels: Movie  # the segmentation
    # false where labels that are drawn may be absent from the table (false detections): then they
    # are background
    complete: bool = True


@dataclass(frozen=True)
class Overlaps:
    """Every pair of cells that share a pixel, over the whole movie."""

    # a, b: rows in the two tables, shape (p,)
    a: Rows
    b: Rows
    pixels: Rows  # shared pixels, shape (p,)
    # area_a, area_b: pixels of every cell, shapes (n_a,) and (n_b,)
    area_a: Rows
    area_b: Rows

    @property
    def share_of_a(self) -> NDArray[np.float64]:
        """Shared part of the first cell, shape (p,)."""
        return np.asarray(self.pixels / self.area_a[self.a], dtype=np.float64)

    @property
    def share_of_b(self) -> NDArray[np.float64]:
        """Shared part of the second cell, shape (p,)."""
        return np.asarray(self.pixels / self.area_b[self.b], dtype=np.float64)


def movie_overlaps(first: CellIds, second: CellIds) -> Overlaps:
    """Count the pixels that cells of two segmentations share, frame by frame."""
    if first.labels.array.shape != second.labels.array.shape:
        raise InputError(
            f"{first.labels.source} has the shape {first.labels.array.shape} (time, channel, "
            f"space), {second.labels.source} has {second.labels.array.shape}; they must be two "
            "segmentations of the same movie"
        )
    order_a, order_b = (np.lexsort((c.label, c.frame)) for c in (first, second))
    n_frames = first.labels.n_frames
    starts_a = np.searchsorted(first.frame[order_a], np.arange(n_frames + 1))
    starts_b = np.searchsorted(second.frame[order_b], np.arange(n_frames + 1))

    def one_frame(t: int) -> tuple[Rows, ...]:
        image_a, image_b = first.labels.channel_frame(t), second.labels.channel_frame(t)
        rows_a = order_a[starts_a[t] : starts_a[t + 1]]
        rows_b = order_b[starts_b[t] : starts_b[t + 1]]
        index_a = _lookup(image_a, first.label[rows_a], first, t)
        index_b = _lookup(image_b, second.label[rows_b], second, t)
        return _count(image_a, image_b, index_a, index_b, rows_a, rows_b)

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(one_frame, range(n_frames)))
    a, b, pixels = (np.concatenate([p[k] for p in parts]) for k in range(3))
    area_a = np.zeros(len(first.frame), dtype=np.int64)
    area_b = np.zeros(len(second.frame), dtype=np.int64)
    for _, _, _, rows_a, count_a, rows_b, count_b in parts:
        area_a[rows_a], area_b[rows_b] = count_a, count_b
    return Overlaps(a, b, pixels, area_a, area_b)


def _lookup(image: NDArray[Any], labels: Rows, cells: CellIds, t: int) -> Rows:
    """Table from pixel value to 1 + index into sorted `labels`, 0 for the background."""
    top = int(image.max()) if image.size else 0
    if top > 50_000_000:
        raise InputError(
            f"{cells.labels.source}, frame {t}: the label {top} is too large; relabel the masks"
        )
    table = np.full(top + 1, -1 if cells.complete else 0, dtype=np.int64)
    table[0] = 0
    inside = labels <= top
    table[labels[inside]] = np.flatnonzero(inside) + 1
    return table


def _count(
    image_a: NDArray[Any],
    image_b: NDArray[Any],
    table_a: Rows,
    table_b: Rows,
    rows_a: Rows,
    rows_b: Rows,
) -> tuple[Rows, ...]:
    foreground = (image_a != 0) | (image_b != 0)
    a, b = table_a[image_a[foreground]], table_b[image_b[foreground]]
    if a.size and min(a.min(), b.min()) < 0:
        which, image = ("first", image_a) if a.min() < 0 else ("second", image_b)
        values = image[foreground][(a if a.min() < 0 else b) < 0]
        raise InputError(
            f"the label {values[0]} is drawn in the {which} masks but is not in its table"
        )
    i, j, pixels = count_pairs(a, b, len(rows_a) + 1)
    area_a = np.bincount(i, weights=pixels, minlength=len(rows_a) + 1)[1:].astype(np.int64)
    area_b = np.bincount(j, weights=pixels, minlength=len(rows_b) + 1)[1:].astype(np.int64)
    both = (i > 0) & (j > 0)
    a, b = rows_a[i[both] - 1], rows_b[j[both] - 1]
    return a, b, pixels[both], rows_a, area_a, rows_b, area_b
