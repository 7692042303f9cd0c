"""Figures of edges and divisions by traccuracy."""

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


def edge_scores(
    truth: LineageGraph, result: LineageGraph, rows: Rows, columns: Rows
) -> dict[str, float | int | None]:
    """Edges, divisions and complete tracks, keyed by the fields of `Scores`.

    Parameters
    ----------
    truth, result
        The two graphs.
    rows, columns
        Matched cells of truth and result, one-to-one, shapes (p,).

    Raises
    ------
    DependencyError
        Where traccuracy is not installed.
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
    scores: dict[str, float | int | None] = {k: _number(v) for k, v in values.items()}
    # Their F1 is undefined where nothing is right; ours is 0 as long as there was something.
    for name, total in (
        ("edge_f1", basic["Total GT Edges"] + basic["Total Pred Edges"]),
        ("division_f1", exact["Total GT Divisions"] + exact["Total Predicted Divisions"]),
        ("division_f1_within_1", exact["Total GT Divisions"] + exact["Total Predicted Divisions"]),
    ):
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

    Parameters
    ----------
    truth, result
        The two graphs; positions in the same unit.
    radius
        Largest distance, in that unit.

    Raises
    ------
    DependencyError
        Where traccuracy is not installed.
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
    """Keep traccuracy's progress bars, warnings and log lines off the terminal.

    Raises
    ------
    DependencyError
        Where traccuracy is not installed.
    """
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


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
