"""``bridgetrack evaluate``: score results against ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridgetrack.cli.console import emit, say, table
from bridgetrack.cli.options import GroundTruth, Json
from bridgetrack.io.may_write import RUN_FILE
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.inputs import is_table
from bridgetrack.pipeline.result_folder import tracked_labels

if TYPE_CHECKING:
    from bridgetrack.evaluation.scores import Scores


def evaluate(
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT_DIR",
            help="Folder that `bridgetrack track` wrote, a CTC result folder, or a "
            ".csv, .geff or TrackMate .xml file.",
            show_default=False,
        ),
    ],
    ground_truth: GroundTruth,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="LABELS",
            help="The label movie that was tracked; without it, the one that run.json tells of.",
        ),
    ] = None,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse", help="The truth follows only some of the cells: safe figures only."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Score tracks with py-ctcmetrics and traccuracy."""
    from bridgetrack.evaluation.scores import evaluate as score

    masks = _masks(result, labels)
    scores = score(result, ground_truth, labels=masks, sparse=sparse)
    if json:
        emit(scores.to_dict())
    else:
        say(*score_lines(scores))


def _masks(result: Path, labels: Path | None) -> Movie | None:
    """The tracked label movie: given, or known from ``run.json`` and still there."""
    if labels is not None:
        return open_labels(labels)
    if (result / "ctc").is_dir():
        return None
    named = tracked_labels(result / RUN_FILE)
    if named is None or is_table(named) or not named.exists():
        return None
    return open_labels(named)


def score_lines(scores: Scores) -> list[str]:
    """The figures as a table for people."""
    names = (
        ("edges F1", scores.edge_f1, f"of {scores.n_edges:,} true edges"),
        ("  precision", scores.edge_precision, ""),
        ("  recall", scores.edge_recall, ""),
        ("divisions F1", scores.division_f1, f"of {scores.n_divisions:,} true divisions"),
        ("  within a frame", scores.division_f1_within_1, ""),
        ("TRA", scores.tra, "tracking accuracy"),
        ("DET", scores.det, "detection accuracy"),
        ("LNK", scores.lnk, "linking accuracy"),
        ("BIO", scores.bio, "mean of CT, TF, BC, CCA"),
        ("CT", scores.ct, "complete tracks"),
        ("TF", scores.tf, "track fractions"),
        ("CHOTA", scores.chota, ""),
    )
    rows = [[name, _figure(value), what] for name, value, what in names]
    lines = table(["", "score"], [row[:2] for row in rows])[1:]
    described = (f"{line}  {row[2]}".rstrip() for line, row in zip(lines, rows, strict=True))
    return [*described, *(f"note: {note}" for note in scores.notes)]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
