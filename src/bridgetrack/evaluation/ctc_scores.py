"""Figures of the Cell Tracking Challenge by py-ctcmetrics."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import DependencyError
from bridgetrack.evaluation.graph import LineageGraph

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Matches:
    """Labels of every frame in both graphs, and those of matched cells in the same order."""

    true_labels: list[list[int]]
    found_labels: list[list[int]]
    true_matched: list[list[int]]
    found_matched: list[list[int]]


def ctc_scores(
    truth: LineageGraph, result: LineageGraph, rows: Rows, columns: Rows, *, chota: bool = True
) -> dict[str, float | None]:
    """TRA, DET, LNK, CT, TF, BC, CCA, BIO and CHOTA, keyed by the fields of `Scores`.

    Parameters
    ----------
    truth, result
        The two graphs; neither is empty.
    rows, columns
        Matched cells of truth and result, shapes (p,), a true cell at most once.
    chota
        Whether to compute CHOTA, whose time grows with the square of the number of tracks.

    Raises
    ------
    DependencyError
        Where py-ctcmetrics is not installed.
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
    true, found = _compact(truth)[0], _compact(result)[0]
    m = _matches(truth, result, rows, columns)
    pairs = m.true_matched, m.found_matched
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operations = count_acyclic_graph_correction_operations(
            true, found, m.true_labels, m.found_labels, *pairs
        )
        values = {
            "tra": ctc.tra(**operations)[0],
            "det": ctc.det(**operations),
            "lnk": ctc.lnk(**operations) if operations["num_edges"] else None,
            "ct": ctc.ct(found, true, m.true_labels, *pairs),
            "tf": ctc.tf(true, m.true_labels, *pairs),
            "bc": ctc.bc(*ctc.raw_division_metrics(found, true, *pairs, i=0)),
            "bc_within_1": ctc.bc(*ctc.raw_division_metrics(found, true, *pairs, i=1)),
            "cca": ctc.cca(found, true),
        }
        values["bio"] = ctc.bio(values["ct"], values["tf"], values["bc"], values["cca"])
        if chota:
            t = merge_tracks(true, m.true_labels, m.true_matched)
            f = merge_tracks(found, m.found_labels, m.found_matched)
            sides = (side for pair in zip(t, f, strict=True) for side in pair)
            values |= {"chota": ctc.chota(*sides)["CHOTA"]}
    return {name: _number(value) for name, value in values.items()}


def _compact(graph: LineageGraph) -> tuple[Rows, Rows]:
    """The track table with labels 1..n, and the new label of every cell."""
    old = np.sort(graph.table[:, 0])
    table = graph.table.copy()
    table[:, 0] = np.searchsorted(old, table[:, 0]) + 1
    has_parent = table[:, 3] != 0
    table[has_parent, 3] = np.searchsorted(old, table[has_parent, 3]) + 1
    return table, np.searchsorted(old, graph.label) + 1


def _matches(truth: LineageGraph, result: LineageGraph, rows: Rows, columns: Rows) -> _Matches:
    # Labels are made dense, because their matrices are as large as the largest label.
    n_frames = max(truth.n_frames, result.n_frames)
    true_label, found_label = _compact(truth)[1], _compact(result)[1]

    def by_frame(frame: Rows, values: Rows) -> list[list[int]]:
        bounds = np.searchsorted(frame, np.arange(n_frames + 1))
        return [values[a:b].tolist() for a, b in zip(bounds[:-1], bounds[1:], strict=True)]

    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    return _Matches(
        true_labels=by_frame(truth.frame, true_label),
        found_labels=by_frame(result.frame, found_label),
        true_matched=by_frame(truth.frame[rows], true_label[rows]),
        found_matched=by_frame(truth.frame[rows], found_label[columns]),
    )


def _number(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
