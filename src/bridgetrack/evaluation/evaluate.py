"""Score a result against ground truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.evaluation.graph import LineageGraph, graph_of, graph_of_ctc, match_cells
from bridgetrack.evaluation.match import matching_radius
from bridgetrack.evaluation.metrics import ctc_scores, edge_scores, match_points
from bridgetrack.importing.ctc import CtcTruth, read_ctc
from bridgetrack.importing.tracks import READERS, read_tracks
from bridgetrack.movie.movie import Movie
from bridgetrack.tracks.tracks import Tracks

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Figures between 0 and 1, None where one is not defined or not safe on this truth.

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
    n_found_cells, n_found_edges, n_found_divisions
        What the result holds.
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
    n_found_cells: int = 0
    n_found_edges: int = 0
    n_found_divisions: int = 0
    matching: str = "overlap"
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, float | int | str | list[str] | None]:
        """The figures as plain values, for JSON."""
        return {**asdict(self), "notes": list(self.notes)}


Truth = Path | str | CtcTruth | Tracks
_SAFE = ("edge_recall", "division_recall", "complete_tracks", "tf")
_CHOTA_TRACKS = 1500
_NEED_MASKS = ("tra", "det", "lnk", "chota")


def evaluate(
    result: Path | str | Tracks,
    truth: Truth,
    *,
    labels: Movie | None = None,
    sequence: str | None = None,
    radius: float | None = None,
    sparse: bool = False,
    chota: bool | None = None,
) -> Scores:
    """Score tracks against ground truth with py-ctcmetrics and traccuracy.

    Cells are matched as in the Cell Tracking Challenge: a true cell (its official marker, where
    there is one) belongs to the detection that covers more than half of it. For edges and
    divisions, which want pairs, a detection that covers several true cells keeps the one that it
    covers best. Without masks on either side cells are matched by distance, and TRA, DET, LNK
    and CHOTA, which are defined on masks, are left out.

    Parameters
    ----------
    result
        A folder of results (``ctc/``, else ``tracks.geff``, else ``detections.csv``), a CTC
        result folder, any file that `read_tracks` reads, or tracks.
    truth
        A CTC truth (see `find_ctc`), any file that `read_tracks` reads, or either in memory.
    labels
        The segmentation that the result's labels refer to, where `result` brings none.
    sequence
        Two digits, where the truth has several sequences.
    radius
        Largest distance for matching without masks, in the truth's unit; by default half of the
        median distance between neighbouring true cells.
    sparse
        The truth follows only some of the cells. Only figures that other cells cannot spoil are
        given: recall of edges and divisions, complete tracks and track fractions.
    chota
        Whether to compute CHOTA, whose time grows with the square of the number of tracks; by
        default up to 1,500 tracks.

    Raises
    ------
    InputError
        Where result and truth are unreadable, empty, or not of the same movie.
    DependencyError
        Where py-ctcmetrics or traccuracy is not installed.
    """
    found = _result_graph(result, labels)
    true = _truth_graph(truth, sequence)
    _check(true, found, truth, result)
    notes: list[str] = []
    by_masks = true.labels is not None and found.labels is not None
    if by_masks:
        rows, columns, share = match_cells(true, found)
        one_to_one = _best(columns, share)
    else:
        rows, columns = match_points(true, found, _radius(true, radius))
        one_to_one = np.arange(len(rows))
        notes.append("no masks: cells are matched by distance, and TRA, DET, LNK, CHOTA left out")
    n = max(len(true.table), len(found.table))
    if by_masks and chota is None and n > _CHOTA_TRACKS:
        notes.append(f"CHOTA left out: it takes long for {n} tracks; ask for it")
    wanted = n <= _CHOTA_TRACKS if chota is None else chota
    figures: dict[str, Any] = {
        **edge_scores(true, found, rows[one_to_one], columns[one_to_one]),
        **ctc_scores(true, found, rows, columns, chota=by_masks and wanted),
    }
    if not by_masks:
        figures |= dict.fromkeys(_NEED_MASKS)
    if sparse:
        figures |= {k: None for k, v in figures.items() if isinstance(v, float) and k not in _SAFE}
        notes.append("sparse truth: figures that count what the truth leaves out are not given")
    matching = "overlap" if by_masks else "distance"
    return Scores(**figures, matching=matching, notes=tuple(notes))


def _best(columns: Rows, share: NDArray[np.float64]) -> Rows:
    """Pairs in which every detection keeps the true cell that it covers best, ascending."""
    order = np.lexsort((-share, columns))
    first = np.r_[True, columns[order][1:] != columns[order][:-1]][: len(order)]
    return np.sort(order[first])


def _result_graph(result: Path | str | Tracks, labels: Movie | None) -> LineageGraph:
    if isinstance(result, Tracks):
        return graph_of(result, labels)
    path = Path(result)
    if path.suffix.lower() in READERS:
        return graph_of(read_tracks(path), labels)
    if labels is not None or not (path / "ctc").is_dir():
        if (path / "tracks.geff").is_dir():
            return graph_of(read_tracks(path / "tracks.geff"), labels)
        if (path / "detections.csv").is_file():
            return graph_of(read_tracks(path / "detections.csv"), labels)
    return graph_of_ctc(read_ctc(path), markers=False)


def _truth_graph(truth: Truth, sequence: str | None) -> LineageGraph:
    if isinstance(truth, Tracks):
        return graph_of(truth, None)
    if isinstance(truth, CtcTruth):
        return graph_of_ctc(truth, markers=True)
    if Path(truth).suffix.lower() in READERS:
        return graph_of(read_tracks(truth), None)
    return graph_of_ctc(read_ctc(truth, sequence=sequence), markers=True)


def _radius(graph: LineageGraph, radius: float | None) -> float:
    if radius is not None:
        if not radius > 0:
            raise InputError(f"the matching radius must be positive, not {radius}")
        return radius
    return matching_radius(graph.position, graph.frame)


def _check(true: LineageGraph, found: LineageGraph, truth: Truth, result: object) -> None:
    names = [str(x) if isinstance(x, Path | str) else "the tracks" for x in (truth, result)]
    for graph, name in zip((true, found), names, strict=True):
        if len(graph.frame) == 0:
            raise InputError(f"{name}: there are no cells, so there is nothing to score")
    if true.axes != found.axes:
        raise InputError(
            f"{names[1]} is {len(found.axes)}D, the ground truth {names[0]} is {len(true.axes)}D"
        )
    by_masks = true.labels is not None and found.labels is not None
    if by_masks and true.n_frames != found.n_frames:
        raise InputError(
            f"{names[1]} has {found.n_frames} frames, the ground truth {names[0]} has "
            f"{true.n_frames}"
        )
