"""Figures of the Cell Tracking Challenge by py-ctcmetrics, of edges and divisions by traccuracy."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError
from bridgetrack.evaluation.graph import LineageGraph

Rows = NDArray[np.int64]


def ctc_scores(
    truth: LineageGraph, result: LineageGraph, rows: Rows, columns: Rows, *, chota: bool = True
) -> dict[str, float | None]:
    """TRA, DET, LNK, CT, TF, BC, CCA, BIO and CHOTA, keyed by the fields of `Scores`.

    `rows` and `columns` are the matched cells of truth and result, a true cell at most once;
    neither graph is empty. Raises a DependencyError where py-ctcmetrics is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from ctc_metrics import metrics as ctc
            from ctc_metrics.utils.representations import (
                count_acyclic_graph_correction_operations,
                merge_tracks,
            )
    except ImportError as error:
        raise DependencyError(
            "the scores of the Cell Tracking Challenge need the package py-ctcmetrics; "
            "run: pip install bridgetrack[evaluate]"
        ) from error
    n_frames = max(truth.n_frames, result.n_frames)
    true, true_label = _compact(truth)
    found, found_label = _compact(result)

    def by_frame(frame: Rows, values: Rows) -> list[list[int]]:
        bounds = np.searchsorted(frame, np.arange(n_frames + 1))
        return [values[a:b].tolist() for a, b in zip(bounds[:-1], bounds[1:], strict=True)]

    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    true_labels, found_labels = (
        by_frame(truth.frame, true_label),
        by_frame(result.frame, found_label),
    )
    pairs = (
        by_frame(truth.frame[rows], true_label[rows]),
        by_frame(truth.frame[rows], found_label[columns]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operations = count_acyclic_graph_correction_operations(
            true, found, true_labels, found_labels, *pairs
        )
        values = {
            "tra": ctc.tra(**operations)[0],
            "det": ctc.det(**operations),
            "lnk": ctc.lnk(**operations) if operations["num_edges"] else None,
            "ct": ctc.ct(found, true, true_labels, *pairs),
            "tf": ctc.tf(true, true_labels, *pairs),
            "bc": ctc.bc(*ctc.raw_division_metrics(found, true, *pairs, i=0)),
            "bc_within_1": ctc.bc(*ctc.raw_division_metrics(found, true, *pairs, i=1)),
            "cca": ctc.cca(found, true),
        }
        values["bio"] = ctc.bio(values["ct"], values["tf"], values["bc"], values["cca"])
        if chota:
            t = merge_tracks(true, true_labels, pairs[0])
            f = merge_tracks(found, found_labels, pairs[1])
            sides = (side for pair in zip(t, f, strict=True) for side in pair)
            values |= {"chota": ctc.chota(*sides)["CHOTA"]}
    return {name: _figure(value) for name, value in values.items()}


def _compact(graph: LineageGraph) -> tuple[Rows, Rows]:
    """The track table with labels 1..n, and the new label of every cell.

    The matrices of py-ctcmetrics are as large as the largest label.
    """
    old = np.sort(graph.table[:, 0])
    table = graph.table.copy()
    table[:, 0] = np.searchsorted(old, table[:, 0]) + 1
    has_parent = table[:, 3] != 0
    table[has_parent, 3] = np.searchsorted(old, table[has_parent, 3]) + 1
    return table, np.searchsorted(old, graph.label) + 1


def edge_scores(
    truth: LineageGraph, result: LineageGraph, rows: Rows, columns: Rows
) -> dict[str, float | int | None]:
    """Edges, divisions and complete tracks, keyed by the fields of `Scores`.

    `rows` and `columns` are the matched cells of truth and result, one-to-one. Raises a
    DependencyError where traccuracy is not installed.
    """
    with quiet_traccuracy():
        from traccuracy.matchers._matched import Matched
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
    # Their F1 is undefined where nothing is right; ours is 0 as long as there was something.
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
        "n_found_cells": len(result.frame),
        "n_found_edges": len(result.edges),
        "n_found_divisions": int(exact["Total Predicted Divisions"]),
    }
    return scores


def match_points(truth: LineageGraph, result: LineageGraph, radius: float) -> tuple[Rows, Rows]:
    """Cells matched one-to-one by the distance of their centroids (traccuracy's matcher).

    The largest distance `radius` is in the unit of the positions. Raises a DependencyError where
    traccuracy is not installed.
    """
    with quiet_traccuracy():
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
    columns = {"t": graph.frame.tolist(), "segmentation_id": graph.label.tolist()}
    for k, axis in enumerate(graph.axes):
        columns[axis] = graph.position[:, k].tolist()
    names = list(columns)
    values = zip(*columns.values(), strict=True)
    g.add_nodes_from((i, dict(zip(names, row, strict=True))) for i, row in enumerate(values))
    g.add_edges_from(graph.edges.tolist())
    return TrackingGraph(g, location_keys=graph.axes, validate=False)


@contextmanager
def quiet_traccuracy() -> Iterator[None]:
    """Keep traccuracy's progress bars, warnings and log lines off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import traccuracy  # noqa: F401
        except ImportError as error:
            raise DependencyError(
                "the scores of edges and divisions need the package traccuracy; "
                "run: pip install bridgetrack[evaluate]"
            ) from error
        logger = logging.getLogger("traccuracy")
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _figure(value: float | None) -> float | None:
    """A figure, None where it is not defined."""
    return None if value is None or not np.isfinite(value) else float(value)
