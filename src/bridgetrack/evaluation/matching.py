"""Cells of a lineage graph, and which cells of two segmentations of one movie belong together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bridgetrack.detections.labels import count_pairs
from bridgetrack.errors import InputError
from bridgetrack.io.ctc import CtcTruth, ctc_form
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Rows = NDArray[np.int64]

COVERED = 0.5
"""Share of a true cell beyond which a detection covers it (Matula et al. 2015)."""


@dataclass(frozen=True)
class LineageGraph:
    """Cells (one per frame and track label) with the links between them."""

    # frame, label: frame and track label of every cell, sorted by frame, then label; shape (n,)
    frame: Rows
    label: Rows
    # centroids in the unit of the geometry (area-weighted over pieces), shape (n, ndim)
    position: NDArray[np.float64]
    table: Rows  # rows ``L B E P``, shape (tracks, 4)
    edges: Rows  # rows of cells that follow each other, shape (E, 2)
    n_frames: int  # number of frames of the movie
    node_cell: Rows  # cell of every node of the tracks it was made from, shape (nodes,)
    # node_frame, node_label: frame and label in the segmentation of those nodes
    node_frame: Rows
    node_label: Rows
    labels: Movie | None  # the segmentation; None where there are only centroids
    axes: tuple[str, ...]  # names of the spatial axes


def graph_of(tracks: Tracks, labels: Movie | None) -> LineageGraph:
    """The graph of tracks, as CTC's format would hold it."""
    form = ctc_form(tracks)
    nodes = tracks.nodes
    node_frame = nodes["frame"].to_numpy(dtype=np.int64)
    top = int(form.label.max(initial=0)) + 1
    key, cell = np.unique(node_frame * top + form.label, return_inverse=True)
    frame, label = key // top, key % top
    weight = np.maximum(nodes["area"].to_numpy(dtype=np.float64), 1e-9)
    total = np.bincount(cell, weights=weight, minlength=len(key))
    axes = tracks.geometry.axes
    columns = [
        np.bincount(cell, weights=weight * nodes[axis].to_numpy(dtype=np.float64)) / total
        for axis in axes
    ]
    position = np.column_stack(columns) * tracks.geometry.scale_array
    return LineageGraph(
        frame=frame,
        label=label,
        position=position,
        table=form.table,
        edges=_edges(frame, label, form.table),
        n_frames=tracks.geometry.n_frames,
        node_cell=cell.astype(np.int64),
        node_frame=node_frame,
        node_label=nodes["label"].to_numpy(dtype=np.int64),
        labels=labels,
        axes=axes,
    )


def graph_of_ctc(truth: CtcTruth, *, markers: bool) -> LineageGraph:
    """The graph of a CTC folder; of its official small markers where it has and we want them."""
    return graph_of(truth.tracks, truth.markers if markers and truth.markers else truth.labels)


def _edges(frame: Rows, label: Rows, table: Rows) -> Rows:
    top = int(label.max(initial=0)) + 1
    key = frame * top + label
    follower = key + top
    at = np.minimum(np.searchsorted(key, follower), max(len(key) - 1, 0))
    along = np.flatnonzero(key[at] == follower) if len(key) else at
    child = table[table[:, 3] != 0]
    parent = child[:, 3]
    ends = table[np.searchsorted(table[:, 0], parent), 2]
    mothers = np.searchsorted(key, ends * top + parent)
    daughters = np.searchsorted(key, child[:, 1] * top + child[:, 0])
    return np.column_stack(
        [np.concatenate([along, mothers]), np.concatenate([at[along], daughters])]
    ).astype(np.int64)


def match_cells(
    truth: LineageGraph, result: LineageGraph
) -> tuple[Rows, Rows, NDArray[np.float64]]:
    """Pairs of a true cell and the result's cell that covers more than half of it.

    This is the criterion of the Cell Tracking Challenge (Matula et al. 2015): a true cell has at
    most one partner, a cell of the result any number. Rows of the cells and the covered share,
    shapes (p,), sorted by true cell; an InputError where either has no masks, or they differ in
    shape.
    """
    if truth.labels is None or result.labels is None:
        raise InputError("overlaps need the masks of both the result and the ground truth")
    true = CellIds(truth.node_frame, truth.node_label, truth.labels)
    found = movie_overlaps(true, CellIds(result.node_frame, result.node_label, result.labels))
    width = max(len(result.frame), 1)
    a, b = truth.node_cell[found.a], result.node_cell[found.b]
    key, index = np.unique(a * width + b, return_inverse=True)
    shared = np.bincount(index, weights=found.pixels, minlength=len(key))
    area = np.bincount(truth.node_cell, weights=found.area_a, minlength=len(truth.frame))
    rows, columns = key // width, key % width
    share = shared / area[rows]
    good = share > COVERED
    return rows[good], columns[good], share[good]


@dataclass(frozen=True)
class CellIds:
    """Cells of a segmentation; other labels that are drawn count as background."""

    frame: Rows  # of every cell, shape (n,); its row is its identity in `Overlaps`
    label: Rows
    labels: Movie  # the segmentation


@dataclass(frozen=True)
class Overlaps:
    """Every pair of cells that share a pixel, over the whole movie."""

    a: Rows  # rows in the two tables, shape (p,)
    b: Rows
    pixels: Rows  # shared pixels, shape (p,)
    area_a: Rows  # pixels of every cell, shapes (n_a,) and (n_b,)
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

    n_frames = first.labels.n_frames
    rows_a, rows_b = (_rows_by_frame(cells, n_frames) for cells in (first, second))

    def one_frame(t: int) -> tuple[Rows, Rows, Rows]:
        here, there = _drawn(first, rows_a[t], t), _drawn(second, rows_b[t], t)
        seen = (here > 0) | (there > 0)
        a, b, pixels = count_pairs(here[seen], there[seen], len(rows_a[t]) + 1)
        return np.r_[-1, rows_a[t]][a], np.r_[-1, rows_b[t]][b], pixels

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(one_frame, range(n_frames)))
    a, b, pixels = (np.concatenate([part[k] for part in parts]) for k in range(3))
    area_a, area_b = (
        np.bincount(rows + 1, pixels, minlength=len(cells.frame) + 1)[1:].astype(np.int64)
        for rows, cells in ((a, first), (b, second))
    )
    both = (a >= 0) & (b >= 0)
    return Overlaps(a[both], b[both], pixels[both], area_a, area_b)


def _rows_by_frame(cells: CellIds, n_frames: int) -> list[Rows]:
    """Rows of the cells of every frame."""
    order = np.lexsort((cells.label, cells.frame))
    return np.split(order, np.searchsorted(cells.frame[order], np.arange(1, n_frames)))


def _drawn(cells: CellIds, rows: Rows, t: int) -> Rows:
    """At every pixel of a frame the place in `rows` of the cell that is drawn there, from 1."""
    image, label = cells.labels.channel_frame(t).ravel(), cells.label[rows]
    top = int(image.max(initial=0))
    if top > 50_000_000:
        raise InputError(
            f"{cells.labels.source}, frame {t}: the label {top} is too large; relabel the masks"
        )
    table, inside = np.zeros(top + 1, dtype=np.int64), label <= top
    table[label[inside]] = np.flatnonzero(inside) + 1
    table[0] = 0
    return np.asarray(table[image])


def matching_radius(points: NDArray[np.float64], frame: Rows) -> float:
    """Half of the median distance between a cell and its nearest neighbour in the frame."""
    if len(points) < 2:
        return 1.0
    span = float(np.ptp(points, axis=0).max()) * 2 * points.shape[1] + 1.0
    tree = cKDTree(np.column_stack([points, frame * span]))
    distance = tree.query(tree.data, k=2, distance_upper_bound=span)[0][:, 1]
    distance = distance[np.isfinite(distance) & (distance > 0)]
    return float(np.median(distance)) / 2 if len(distance) else 1.0
