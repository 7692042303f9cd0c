"""A lineage graph in the form in which metrics see it, and its cells matched to another's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.evaluation.overlap import COVERED, CellIds, movie_overlaps
from bridgetrack.export.ctc import ctc_form
from bridgetrack.importing.ctc import CtcTruth
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Rows = NDArray[np.int64]


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
    overlaps = movie_overlaps(
        CellIds(truth.node_frame, truth.node_label, truth.labels, complete=False),
        CellIds(result.node_frame, result.node_label, result.labels, complete=False),
    )
    width = len(result.frame)
    a, b = truth.node_cell[overlaps.a], result.node_cell[overlaps.b]
    key, index = np.unique(a * width + b, return_inverse=True)
    shared = np.bincount(index, weights=overlaps.pixels, minlength=len(key))
    area = np.bincount(truth.node_cell, weights=overlaps.area_a, minlength=len(truth.frame))
    rows, columns = key // max(width, 1), key % max(width, 1)
    share = shared / area[rows]
    good = share > COVERED
    return rows[good], columns[good], share[good]
