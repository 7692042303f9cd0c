"""Matching of detections with the cells of the ground truth, and true events of detections."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.labels import count_pairs, numbered
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.tracks.tracks import Tracks

COVERED = 0.5
"""Share of a true cell beyond which a detection covers it (Matula et al. 2015)."""
PIECE = 0.1
"""Share of a true cell from which a detection inside it cuts it."""
LONGEST_GAP = 3
"""Most frames from a cell to where it is seen next; longer gaps are undecided."""


@dataclass(frozen=True)
class CellIds:
    """Cells of a segmentation; other labels that are drawn count as background."""

    frame: Index  # of every cell, shape (n,); its row is its identity in `Overlaps`
    label: Index
    labels: Movie  # the segmentation

    def rows(self, frame: Index, label: Index) -> Index:
        """Rows of the cells with some labels in some frames, -1 where there is none."""
        known = pd.MultiIndex.from_arrays([self.frame, self.label])
        return known.get_indexer(pd.MultiIndex.from_arrays([frame, label])).astype(np.int64)


def cells_of(tracks: Tracks, labels: Movie) -> CellIds:
    """The cells of tracks."""
    frame, label = (tracks.nodes[c].to_numpy(dtype=np.int64) for c in ("frame", "label"))
    return CellIds(frame, label, labels)


@dataclass(frozen=True)
class Overlaps:
    """Every pair of cells that share a pixel, over the whole movie."""

    a: Index  # rows in the two tables, shape (p,)
    b: Index
    pixels: Index  # shared pixels, shape (p,)
    area_a: Index  # pixels of every cell, shapes (n_a,) and (n_b,)
    area_b: Index

    @property
    def share_of_a(self) -> Array:
        """Shared part of the first cell, shape (p,)."""
        return np.asarray(self.pixels / self.area_a[self.a], dtype=np.float64)

    @property
    def share_of_b(self) -> Array:
        """Shared part of the second cell, shape (p,)."""
        return np.asarray(self.pixels / self.area_b[self.b], dtype=np.float64)


def movie_overlaps(first: CellIds, second: CellIds) -> Overlaps:
    """Count the pixels that cells of two segmentations share, frame by frame."""
    sides = (first, second)
    if first.labels.array.shape != second.labels.array.shape:
        raise InputError(
            f"{first.labels.source} has the shape {first.labels.array.shape} (time, channel, "
            f"space), {second.labels.source} has {second.labels.array.shape}; they must be two "
            "segmentations of the same movie"
        )

    def one_frame(t: int) -> Index:
        here, there = (label_frame(side.labels, t).ravel() for side in sides)
        seen = (here > 0) | (there > 0)
        (mine, a), (theirs, b) = numbered(here[seen]), numbered(there[seen])
        a, b, pixels = count_pairs(a, b)
        return np.stack([np.full(len(a), t), mine[a], theirs[b], pixels])

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(one_frame, range(first.labels.n_frames)))
    frame, *labels, pixels = np.concatenate(parts, axis=1)
    rows = [side.rows(frame, label) for side, label in zip(sides, labels, strict=True)]
    areas = [
        np.bincount(row + 1, pixels, minlength=len(side.frame) + 1)[1:].astype(np.int64)
        for row, side in zip(rows, sides, strict=True)
    ]
    both = (rows[0] >= 0) & (rows[1] >= 0)
    return Overlaps(rows[0][both], rows[1][both], pixels[both], *areas)


def true_events(
    detections: Detections, labels: Movie, truth: Tracks, truth_labels: Movie
) -> Events:
    """Events of detections that the ground truth decides: those with all cells matched.

    A true cell is the detection that covers more than half of it and no other cell, unless another
    one cuts it.

    Parameters
    ----------
    detections, labels
        The detections and the masks they came from.
    truth, truth_labels
        The truth and its masks.

    Returns
    -------
    Events
        In rows of the detections. Divisions seen too late, into more than two, and cells not seen
        for more than two frames are left out.

    Raises
    ------
    InputError
        If the movies differ in shape.
    """
    mine = CellIds(detections.frame, detections.label, labels)
    found = movie_overlaps(mine, cells_of(truth, truth_labels))
    covers = found.share_of_b > COVERED
    piece = ~covers & (found.share_of_a > COVERED) & (found.share_of_b >= PIECE)
    merged = np.bincount(found.a[covers], minlength=len(detections)) > 1
    covers &= ~merged[found.a] & ~np.isin(found.b, found.b[piece])
    cell, true = found.a[covers], found.b[covers]
    row = dict(zip(truth.nodes["id"].to_numpy()[true].tolist(), cell.tolist(), strict=True))
    known = [
        _known(Event.from_key(str(event)), [row.get(i, -1) for i in before],
               [row.get(i, -1) for i in after], detections.frame)
        for event, before, after in truth.events[["event", "sources", "targets"]].itertuples(
            index=False
        )
    ]  # fmt: skip
    rows = np.array([k for k in known if k is not None], dtype=np.int64).reshape(-1, 5)
    events = Events(rows[:, 0].astype(np.int8), rows[:, 1:3], rows[:, 3:])
    return events.take(np.lexsort((rows[:, 3], rows[:, 1], rows[:, 0])))


def _known(event: Event, before: list[int], after: list[int], frame: Index) -> list[int] | None:
    """The kind and the up to four cells of an event; None if something is not known."""
    cells = [*before, *after]
    if min(cells) < 0 or max(len(before), len(after)) > 2:
        return None
    gaps = {int(frame[j] - frame[i]) for i in before for j in after}
    most = LONGEST_GAP if event == Event.SKIP else 1
    if gaps and max(gaps) > most:
        return None
    sides = (sorted(side) + [-1] * (2 - len(side)) for side in (before, after))
    return [event, *(k for side in sides for k in side)]
