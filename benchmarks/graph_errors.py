"""Errors of links between cells that are the same in truth and result, by traccuracy."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.evaluation.scores import quiet_traccuracy

Links = Iterable[tuple[int, int]]


def graph_errors(
    frame: NDArray[np.int64],
    position: NDArray[np.float64],
    true: Links,
    found: Links,
    lost: Iterable[int] = (),
) -> dict[str, float]:
    """Edge and division F1, and AOGM with the weights of the Cell Tracking Challenge.

    A wrong link weighs 1, a missed one 1.5, one with the wrong meaning 1, a lost cell 10.

    Parameters
    ----------
    frame, position
        Of every true cell, shapes (n,) and (n, d).
    true, found
        Links, rows of cells. The measures know no merges: the first parent counts.
    lost
        Cells that the result calls none.
    """
    os.environ["TQDM_DISABLE"] = "1"
    gone = set(lost)
    with quiet_traccuracy():
        from traccuracy.matchers import Matched
        from traccuracy.metrics import BasicMetrics, CTCMetrics, DivisionMetrics

        pairs = [(k, k) for k in range(len(frame)) if k not in gone]
        info = {"name": "given", "matching type": "one-to-one"}
        links = [(a, b) for a, b in one_parent(found) if a not in gone and b not in gone]
        matched = Matched(
            _graph(frame, position, true, set()), _graph(frame, position, links, gone), pairs, info
        )
        basic = BasicMetrics().compute(matched).results
        divisions = DivisionMetrics(max_frame_buffer=0).compute(matched).results["Frame Buffer 0"]
        ctc = CTCMetrics().compute(matched).results
    n = divisions["Total GT Divisions"] + divisions["Total Predicted Divisions"]
    f1 = divisions["Division F1"]
    return {
        "edge_f1": float(basic["Edge F1"]),
        "division_f1": float("nan") if not n else float(np.nan_to_num(f1)),
        "aogm": float(ctc["AOGM"]),
        "wrong": int(ctc["fp_edges"]),
        "missed": int(ctc["fn_edges"]),
        "lost": int(ctc["fn_nodes"]),
    }


def _graph(frame: Any, position: Any, links: Links, gone: set[int]) -> Any:
    import networkx as nx
    from traccuracy import TrackingGraph

    graph: Any = nx.DiGraph()
    for k, (t, place) in enumerate(zip(frame.tolist(), position, strict=True)):
        if k not in gone:
            graph.add_node(k, t=t, y=float(place[-2]), x=float(place[-1]))
    graph.add_edges_from((int(a), int(b)) for a, b in links)
    return TrackingGraph(graph, location_keys=("y", "x"), validate=False)


def one_parent(links: Links) -> list[tuple[int, int]]:
    """Without second parents."""
    seen: dict[int, int] = {}
    for a, b in links:
        seen.setdefault(int(b), int(a))
    return [(a, b) for b, a in seen.items()]
