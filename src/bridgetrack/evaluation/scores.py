"""Score a result against ground truth, by py-ctcmetrics and traccuracy."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import DependencyError, InputError
from bridgetrack.evaluation.truth import COVERED, cells_of, movie_overlaps
from bridgetrack.files import as_path
from bridgetrack.io.ctc import CtcTruth, ctc_form, followers, is_ctc, read_ctc
from bridgetrack.io.results import RUN_FILE, read_tracks
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.table import sights
from bridgetrack.tracks.tracks import Tracks


@dataclass(frozen=True)
class Scores:
    """Figures between 0 and 1, None if one is not defined or not safe on this truth.

    Parameters
    ----------
    edge_precision, edge_recall, edge_f1
        Links between matched cells (traccuracy, `BasicMetrics`).
    division_precision, division_recall, division_f1
        Divisions with the right mother, daughters and frame (traccuracy, `DivisionMetrics`).
    division_f1_within_1
        The same, one frame earlier or later allowed.
    complete_tracks
        Share of true tracks found without a mistake, extra tracks not counted (traccuracy).
    tra, det, lnk
        Tracking, detection and linking accuracy (py-ctcmetrics; Matula et al. 2015).
    ct, tf, bc, bc_within_1, cca, bio
        Complete tracks, track fractions, branching correctness (exact and ±1 frame), cell cycle
        accuracy and their mean (with the exact branching) (py-ctcmetrics; Ulman et al. 2017).
    chota
        Cell-specific higher order tracking accuracy (py-ctcmetrics).
    n_cells, n_edges, n_divisions
        What the truth holds.
    matching
        ``"overlap"`` or ``"distance"``.
    notes
        What was left out and why.
    """

    edge_precision: float | None = None
    edge_recall: float | None = None
    edge_f1: float | None = None
    division_precision: float | None = None
    division_recall: float | None = None
    division_f1: float | None = None
    division_f1_within_1: float | None = None
    complete_tracks: float | None = None
    tra: float | None = None
    det: float | None = None
    lnk: float | None = None
    ct: float | None = None
    tf: float | None = None
    bc: float | None = None
    bc_within_1: float | None = None
    cca: float | None = None
    bio: float | None = None
    chota: float | None = None
    n_cells: int = 0
    n_edges: int = 0
    n_divisions: int = 0
    matching: str = "overlap"
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, float | int | str | list[str] | None]:
        """The figures as plain values, for JSON, and which of them hold for a sparse truth."""
        return {**asdict(self), "notes": list(self.notes), "holds_for_sparse_truth": list(SPARSE)}


@dataclass(frozen=True)
class LineageGraph:
    """Cells (one per frame and track label) with the links between them, as CTC's format has it."""

    tracks: Tracks  # the tracks
    labels: Movie | None  # its segmentation; None if there are only centroids
    # frame, label: frame and track of every cell, tracks numbered from 1; sorted by frame, then
    # label; shape (n,)
    frame: Index
    label: Index
    # centroids in the unit of the geometry (area-weighted over pieces), shape (n, ndim)
    position: Array
    table: Index  # rows ``L B E P``, shape (tracks, 4)
    edges: Index  # rows of cells that follow each other, shape (E, 2)
    node_cell: Index  # cell of every node of the tracks, shape (nodes,)


def graph_of(tracks: Tracks, labels: Movie | None = None) -> LineageGraph:
    """The graph of tracks."""
    form, nodes = ctc_form(tracks), tracks.nodes
    table, old = form.table.copy(), form.table[:, 0]
    # the matrices of py-ctcmetrics are as large as the largest label
    table[:, 0] = np.arange(len(old)) + 1
    table[:, 3] = np.where(table[:, 3] > 0, np.searchsorted(old, table[:, 3]) + 1, 0)
    number = np.searchsorted(old, form.label) + 1
    cells = sights(replace(tracks, nodes=nodes.assign(track_id=number)))
    cells = cells.rename(columns={"track_id": "label"})
    cells = cells.sort_values(["frame", "label"], ignore_index=True)
    frame, label = (cells[name].to_numpy(dtype=np.int64) for name in ("frame", "label"))
    top = len(old) + 1
    cell = np.searchsorted(frame * top + label, nodes["frame"].to_numpy() * top + number)
    position = cells[list(tracks.geometry.axes)].to_numpy(dtype=np.float64)
    edges = followers(cells, table).to_numpy()
    return LineageGraph(tracks, labels, frame, label, position, table, edges, cell)


Truth = Path | str | CtcTruth | Tracks
SPARSE = ("edge_recall", "division_recall", "complete_tracks", "tf")
"""Scores that also hold if the truth follows only some of the cells."""
NO_SCORES = (
    "scores need the packages py-ctcmetrics and traccuracy; run: "
    "pip install py-ctcmetrics traccuracy"
)
"""Message if a package that scores need is not installed."""
_CHOTA_TRACKS = 1500
_NEED_MASKS = ("tra", "det", "lnk", "chota")
_CTC = {
    "tra": "TRA", "det": "DET", "lnk": "LNK", "ct": "CT", "tf": "TF", "bc": "BC(0)",
    "bc_within_1": "BC(1)", "cca": "CCA", "bio": "BIO(0)", "chota": "CHOTA",
}  # fmt: skip
"""Scores by their names in py-ctcmetrics."""


def evaluate(
    result: Any,
    truth: Truth,
    *,
    labels: Movie | None = None,
    sparse: bool = False,
    chota: bool = True,
) -> Scores:
    """Score tracks against ground truth with py-ctcmetrics and traccuracy.

    Cells are matched as in the Cell Tracking Challenge: a true cell (its official marker, where
    there is one) belongs to the detection that covers more than half of it. For edges and
    divisions, which want pairs, a detection that covers several true cells keeps the one that it
    covers best. Without masks on either side cells are matched by distance (up to half of the
    median distance between neighbouring true cells), and TRA, DET, LNK and CHOTA, which are
    defined on masks, are left out.

    Parameters
    ----------
    result
        A result folder (``ctc/``, else ``tracks.geff``, else ``detections.csv``), a CTC
        result folder, any file that `read_tracks` reads, tracks, or a `Tracking`.
    truth
        A CTC ground truth (see `read_ctc`), any file that `read_tracks` reads, or either in memory.
    labels
        The segmentation that the result's labels refer to, where `result` brings none.
    sparse
        The truth follows only some of the cells. Only figures that other cells cannot spoil are
        given: recall of edges and divisions, complete tracks and track fractions.
    chota
        Whether to compute CHOTA, whose time grows with the square of the number of tracks; it is
        left out beyond 1,500 tracks.

    Raises
    ------
    InputError
        If result and truth are unreadable, empty, or not of the same movie.
    DependencyError
        If py-ctcmetrics or traccuracy is not installed.
    """
    found, true = _graph(result, labels), _graph(truth)
    _check(true, found, truth, result)
    notes: list[str] = []
    if isinstance(truth, Path | str) and (as_path(truth) / RUN_FILE).is_file():
        notes.append(
            f"{truth} is a result of Bridgetrack, not a ground truth; if the two were swapped, "
            "give the result first"
        )
    by_masks = true.labels is not None and found.labels is not None
    if by_masks:
        rows, columns, share = match_cells(true, found)
        one_to_one = _best(columns, share)
    else:
        if true.tracks.geometry.unit != found.tracks.geometry.unit:
            true, found = (_in_pixels(graph) for graph in (true, found))
        rows, columns = match_points(true, found, matching_radius(true.position, true.frame))
        one_to_one = np.arange(len(rows))
        notes.append("no masks: cells are matched by distance, and TRA, DET, LNK, CHOTA left out")
    n = max(len(true.table), len(found.table))
    chota &= by_masks and n <= _CHOTA_TRACKS
    if by_masks and n > _CHOTA_TRACKS:
        notes.append(f"CHOTA left out: its time grows with the square of the {n} tracks")
    figures: dict[str, Any] = {
        **edge_scores(true, found, rows[one_to_one], columns[one_to_one]),
        **ctc_scores(true, found, rows, columns, chota=chota),
    }
    if not by_masks:
        figures |= dict.fromkeys(_NEED_MASKS)
    if sparse:
        figures |= {k: None for k, v in figures.items() if isinstance(v, float) and k not in SPARSE}
        notes.append("sparse truth: scores that need all cells of the movie are left out")
    matching = "overlap" if by_masks else "distance"
    return Scores(**figures, matching=matching, notes=tuple(notes))


def match_cells(truth: LineageGraph, result: LineageGraph) -> tuple[Index, Index, Array]:
    """Pairs of a true cell and the result's cell that covers more than half of it.

    Index of the cells and the covered share, shapes (p,), sorted by true cell; a true cell has at
    most one partner, a cell of the result any number. Both graphs have masks.
    """
    assert truth.labels is not None
    assert result.labels is not None
    found = movie_overlaps(
        cells_of(truth.tracks, truth.labels), cells_of(result.tracks, result.labels)
    )
    width = max(len(result.frame), 1)
    a, b = truth.node_cell[found.a], result.node_cell[found.b]
    key, index = np.unique(a * width + b, return_inverse=True)
    shared = np.bincount(index, weights=found.pixels, minlength=len(key))
    area = np.bincount(truth.node_cell, weights=found.area_a, minlength=len(truth.frame))
    rows, columns = key // width, key % width
    share = shared / area[rows]
    good = share > COVERED
    return rows[good], columns[good], share[good]


def _best(columns: Index, share: Array) -> Index:
    """Pairs in which every detection keeps the true cell that it covers best, ascending."""
    order = np.lexsort((-share, columns))
    first = np.r_[True, columns[order][1:] != columns[order][:-1]][: len(order)]
    return np.sort(order[first])


def _graph(given: Any, labels: Movie | None = None) -> LineageGraph:
    """Tracks, with the small official markers in place of masks where there are such."""
    if hasattr(given, "scene"):  # a `Tracking`
        return graph_of(given.tracks, given.scene.labels if labels is None else labels)
    if not isinstance(given, Tracks | CtcTruth):
        path = as_path(given)
        # masks that are given are those of the tables, beside which others may stand
        beside = any((path / name).exists() for name in ("tracks.geff", "detections.csv"))
        of_tables = labels is not None and beside
        given = read_ctc(path) if is_ctc(path) and not of_tables else read_tracks(path)
    if isinstance(given, Tracks):
        return graph_of(given, labels)
    return graph_of(given.tracks, given.markers or given.labels)


def _check(true: LineageGraph, found: LineageGraph, truth: Truth, result: object) -> None:
    names = [
        f"the ground truth {truth}" if isinstance(truth, Path | str) else "the ground truth",
        str(result) if isinstance(result, Path | str) else "the result",
    ]
    for graph, name in zip((true, found), names, strict=True):
        if len(graph.frame) == 0:
            raise InputError(f"{name}: there are no cells, so there is nothing to score")
    here, there = found.tracks.geometry, true.tracks.geometry
    if there.axes != here.axes:
        raise InputError(f"{names[1]} is {here.ndim}D, {names[0]} is {there.ndim}D")
    for one, other in ((there, here), (here, there)):
        # a table may end before the movie does, whose extent it does not tell
        if one.shape is not None and other.n_frames > one.n_frames:
            raise InputError(
                f"{names[1]} has {here.n_frames} frames, {names[0]} has {there.n_frames}; give "
                "both of the same frames"
            )


def matching_radius(points: Array, frame: Index) -> float:
    """Half of the median distance between a cell and its nearest neighbour in the frame."""
    if len(points) < 2:
        return 1.0
    span = float(np.ptp(points, axis=0).max()) * 2 * points.shape[1] + 1.0
    tree = cKDTree(np.column_stack([points, frame * span]))
    distance = tree.query(tree.data, k=2, distance_upper_bound=span)[0][:, 1]
    distance = distance[np.isfinite(distance) & (distance > 0)]
    return float(np.median(distance)) / 2 if len(distance) else 1.0


def _in_pixels(graph: LineageGraph) -> LineageGraph:
    """The same with positions in pixels, for a comparison with cells of no known scale."""
    geometry = graph.tracks.geometry
    if geometry.unit != "pixel" and (geometry.scale_array == 1).all():
        raise InputError(
            "result and ground truth have positions in different units (micrometers and pixels), "
            "and no pixel size is known: give files with the same unit, or masks on both sides "
            "(--labels)"
        )
    return replace(graph, position=graph.position / geometry.scale_array)


def ctc_scores(
    truth: LineageGraph, result: LineageGraph, rows: Index, columns: Index, *, chota: bool = True
) -> dict[str, float | None]:
    """TRA, DET, LNK, CT, TF, BC, CCA, BIO and CHOTA, keyed by the fields of `Scores`.

    `rows` and `columns` are the matched cells of truth and result, a true cell at most once;
    neither graph is empty.
    """
    n_frames = max(truth.tracks.geometry.n_frames, result.tracks.geometry.n_frames)

    def by_frame(frame: Index, values: Index) -> list[list[int]]:
        bounds = np.searchsorted(frame, np.arange(n_frames + 1))
        return [values[a:b].tolist() for a, b in zip(bounds[:-1], bounds[1:], strict=True)]

    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    cells = {
        "labels_ref": by_frame(truth.frame, truth.label),
        "labels_comp": by_frame(result.frame, result.label),
        "mapped_ref": by_frame(truth.frame[rows], truth.label[rows]),
        "mapped_comp": by_frame(truth.frame[rows], result.label[columns]),
    }
    wanted = ["TRA", "DET", "CT", "TF", "BC", "CCA"]
    wanted += ["LNK"] * bool(len(truth.edges)) + ["CHOTA"] * chota
    with quietly():
        from ctc_metrics.scripts.evaluate import calculate_metrics

        values = calculate_metrics(result.table, truth.table, cells, {}, wanted, is_valid=True)
    return {name: _figure(values.get(key)) for name, key in _CTC.items()}


def edge_scores(
    truth: LineageGraph, result: LineageGraph, rows: Index, columns: Index
) -> dict[str, float | int | None]:
    """Edges, divisions and complete tracks, keyed by the fields of `Scores`.

    `rows` and `columns` are the matched cells of truth and result, one-to-one.
    """
    with quietly():
        from traccuracy.matchers import Matched
        from traccuracy.metrics import BasicMetrics, CompleteTracks, DivisionMetrics

        pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
        info = {"name": "given", "matching type": "one-to-one"}
        matched = Matched(tracking_graph(truth), tracking_graph(result), pairs, info)
        basic = BasicMetrics().compute(matched).results
        divisions = DivisionMetrics(max_frame_buffer=1).compute(matched).results
        complete = CompleteTracks().compute(matched).results
    exact, within_1 = divisions["Frame Buffer 0"], divisions["Frame Buffer 1"]
    values = {
        "edge_precision": basic["Edge Precision"],
        "edge_recall": basic["Edge Recall"],
        "edge_f1": basic["Edge F1"],
        "division_precision": exact["Division Precision"],
        "division_recall": exact["Division Recall"],
        "division_f1": exact["Division F1"],
        "division_f1_within_1": within_1["Division F1"],
        "complete_tracks": complete["complete_tracklets"],
    }
    scores: dict[str, float | int | None] = {k: _figure(v) for k, v in values.items()}
    # Their F1 is undefined if nothing is right; ours is 0 then, unless neither side has any.
    n_edges = basic["Total GT Edges"] + basic["Total Pred Edges"]
    n_divisions = exact["Total GT Divisions"] + exact["Total Predicted Divisions"]
    totals = {"edge_f1": n_edges, "division_f1": n_divisions, "division_f1_within_1": n_divisions}
    for name, total in totals.items():
        if scores[name] is None and total > 0:
            scores[name] = 0.0
    scores |= {
        "n_cells": len(truth.frame),
        "n_edges": len(truth.edges),
        "n_divisions": int(exact["Total GT Divisions"]),
    }
    return scores


def match_points(truth: LineageGraph, result: LineageGraph, radius: float) -> tuple[Index, Index]:
    """Cells matched one-to-one by the distance of their centroids (traccuracy's matcher).

    The largest distance `radius` is in the unit of the positions.
    """
    with quietly():
        from traccuracy.matchers import PointMatcher

        matched = PointMatcher(threshold=radius).compute_mapping(
            tracking_graph(truth), tracking_graph(result)
        )
    pairs = np.asarray(sorted(matched.mapping), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def tracking_graph(graph: LineageGraph) -> Any:
    """The graph as traccuracy's `TrackingGraph`; node ids are rows."""
    import networkx as nx
    from traccuracy import TrackingGraph

    g: Any = nx.DiGraph()
    cells = pd.DataFrame(graph.position, columns=graph.tracks.geometry.axes)
    cells = cells.assign(t=graph.frame, segmentation_id=graph.label)
    g.add_nodes_from(cells.to_dict("index").items())
    g.add_edges_from(graph.edges.tolist())
    return TrackingGraph(g, location_keys=graph.tracks.geometry.axes, validate=False)


def can_score() -> bool:
    """Whether the packages that scores need are installed."""
    return all(find_spec(name) is not None for name in ("ctc_metrics", "traccuracy"))


@contextmanager
def quietly() -> Iterator[None]:
    """Keep progress bars, warnings and log lines of the packages of scores off the terminal.

    Raises a `DependencyError` where one of them is not installed.
    """
    logger = logging.getLogger("traccuracy")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise DependencyError(NO_SCORES) from error
    finally:
        logger.setLevel(level)


def _figure(value: float | None) -> float | None:
    """A figure, None if it is not defined."""
    return None if value is None or not np.isfinite(value) else float(value)
