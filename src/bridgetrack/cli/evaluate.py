"""``bridgetrack evaluate`` and ``check``: how accurate a result is."""

from __future__ import annotations

import json as json_library
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer, table
from bridgetrack.cli.options import GroundTruth, Json, make, one_option_each
from bridgetrack.errors import InputError
from bridgetrack.evaluation.sample import (
    Sample,
    SampleOptions,
    draw_sample,
    read_sample,
    write_sample,
)
from bridgetrack.evaluation.scores import SPARSE, Scores
from bridgetrack.evaluation.scores import evaluate as score
from bridgetrack.files import write_text
from bridgetrack.io.may_write import check_file, is_ours, sign, signed
from bridgetrack.io.results import METHODS, RUN_FILE, read_tracks
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.notes import plural
from bridgetrack.pipeline.inputs import is_table
from bridgetrack.pipeline.methods import with_checked
from bridgetrack.pipeline.result_folder import tracked_labels, write_json
from bridgetrack.tracks.tracks import Tracks


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
            help="The label movie that was tracked; by default the one named in run.json.",
        ),
    ] = None,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse",
            help="The ground truth covers only some of the cells: print only scores that are valid "
            "for this.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Score tracks with py-ctcmetrics and traccuracy."""
    scores = score(result, ground_truth, labels=_masks(result, labels), sparse=sparse)
    answer(json, scores.to_dict(), lambda: _score_lines(scores))


def _masks(result: Path, labels: Path | None) -> Movie | None:
    """The tracked label movie: the given one, or that of ``run.json`` if it still exists."""
    if labels is not None:
        return open_labels(labels)
    if (result / "ctc").is_dir():
        return None
    named = tracked_labels(result / RUN_FILE)
    if named is None or is_table(named) or not named.exists():
        return None
    return open_labels(named)


def _score_lines(scores: Scores) -> list[str]:
    names = (
        ("edges F1", "edge_f1", f"of {scores.n_edges:,} true edges"),
        ("  precision", "edge_precision", ""),
        ("  recall", "edge_recall", ""),
        ("divisions F1", "division_f1", f"of {scores.n_divisions:,} true divisions"),
        ("  within 1 frame", "division_f1_within_1", ""),
        ("  recall", "division_recall", ""),
        ("TRA", "tra", "tracking accuracy"),
        ("DET", "det", "detection accuracy"),
        ("LNK", "lnk", "linking accuracy"),
        ("BIO", "bio", "mean of CT, TF, BC, CCA"),
        ("CT", "ct", "complete tracks"),
        ("TF", "tf", "track fractions"),
        ("CHOTA", "chota", ""),
    )
    values = [getattr(scores, key) for _, key, _ in names]
    sparse = ["yes" if key in SPARSE else "no" for _, key, _ in names]
    rows = [
        [name, "-" if value is None else f"{value:.4f}", holds]
        for (name, *_), value, holds in zip(names, values, sparse, strict=True)
    ]
    head, *lines = table(["", "score", "valid for sparse truth"], rows)
    described = (f"{line}  {row[2]}".rstrip() for line, row in zip(lines, names, strict=True))
    return [head, *described, *(f"note: {note}" for note in scores.notes)]


@one_option_each(SampleOptions)
def check(
    *,
    result: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT_DIR",
            help="Folder that `bridgetrack track` wrote, or a .csv, .geff or TrackMate .xml file.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="SAMPLE.csv", help="Where to write the events to judge."),
    ] = None,
    judged: Annotated[
        Path | None,
        typer.Option(
            "--judged",
            metavar="SAMPLE.csv",
            help="The same table with its last column filled in: yes, no or ?.",
        ),
    ] = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Estimate how accurate a result is, from random events that you judge.

    With --out, it writes a table of random events, one per row. With --judged, it reads your
    judgements from this table, prints a sentence for the methods section, and adds it to
    methods.txt and run.json of the result.
    """
    if (out is None) == (judged is None):
        raise typer.BadParameter(
            "give either --out, to draw events to judge, or --judged with the completed table"
        )
    tracks = _tracks(result)
    if judged is not None:
        answer(json, *_judged(read_sample(judged, tracks), result, judged))
        return
    assert out is not None
    options = make(SampleOptions, **settings)
    check_file(out, *(result, *(p for p in result.glob("*") if p.is_file())))
    sample = draw_sample(tracks, options)
    with signed(out) as spare:
        write_sample(sample, spare)
    record = {"sample": str(out), "count": len(sample.events), "population": sample.population}
    lines = [
        f"{plural(len(sample.events), 'event')} drawn at random from {sample.population:,} "
        f"({options.of}): {out}",
        "Look at each event in the movie, write yes, no or ? into the last column, then run: "
        f"bridgetrack check {result} --judged {out}",
    ]
    answer(json, record, lambda: lines)


def _tracks(result: Path) -> Tracks:
    """The tracks of a result folder, or of a file."""
    if not result.exists():
        raise InputError(f"{result}: no such file or folder; give a result folder")
    for name in ("tracks.geff", "detections.csv"):
        if (result / name).exists():
            return read_tracks(result / name)
    return read_tracks(result)


def _judged(sample: Sample, result: Path, table: Path) -> tuple[dict[str, Any], Any]:
    """The outcome of a sample, as JSON values and as lines; added to the result of a run."""
    accuracy = sample.accuracy
    if accuracy is None:
        raise InputError(
            f"{table}: no event is judged yet; write yes or no into the column 'right' of every row"
        )
    left = len(sample.left)
    kept = not left and _keep(sample, result)
    record = {**accuracy.to_json(), "left": left, "kept": kept}

    def lines() -> Sequence[str]:
        text = [f"{accuracy.words}."]
        if left:
            text.append(
                f"note: {left} of {len(sample.events)} events are not judged yet, so this estimate "
                "is not valid: without the difficult events it is too high; write ? if you cannot "
                "tell"
            )
        elif kept:
            text.append(f"added to {METHODS} and {RUN_FILE} in {result}")
        return text

    return record, lines


def _keep(sample: Sample, result: Path) -> bool:
    """Add the accuracy to ``run.json`` and ``methods.txt`` of a run; False if there are none."""
    run, methods, accuracy = result / RUN_FILE, result / METHODS, sample.accuracy
    if accuracy is None or not run.is_file() or not methods.is_file():
        return False
    ours = is_ours(result)
    record = json_library.loads(run.read_text(encoding="utf-8"))
    text = with_checked(methods.read_text(encoding="utf-8"), sample)
    write_text(methods, text, "the methods")
    write_json(record | {"checked": {**accuracy.to_json(), "seed": sample.options.seed}}, run)
    if ours:
        sign(result)
    return True
