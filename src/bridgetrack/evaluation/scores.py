"""The figures of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass


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
