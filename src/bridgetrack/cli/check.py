"""``bridgetrack check``: how right a result is, from random events that somebody judges."""

from __future__ import annotations

import json as json_library
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import answer
from bridgetrack.cli.options import Json, make, one_option_each
from bridgetrack.errors import InputError
from bridgetrack.evaluation.sample import SampleOptions
from bridgetrack.io.may_write import (
    RUN_FILE,
    check_file,
    manifest,
    refuse_others,
    sealed,
    signed,
)
from bridgetrack.notes import plural

if TYPE_CHECKING:
    from bridgetrack.evaluation.sample import Sample
    from bridgetrack.tracks.tracks import Tracks


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
    """Say how right a result is, from events drawn at random and looked at.

    First, with --out, it writes events to judge, one a row. Then, with --judged, it reads what was
    found and gives a sentence for the methods section, which it also adds to the result's
    methods.txt and run.json.
    """
    from bridgetrack.evaluation.sample import draw_sample, read_sample, write_sample

    if (out is None) == (judged is None):
        raise typer.BadParameter(
            "give either --out, to draw events to judge, or --judged, with the table filled in"
        )
    tracks = _tracks(result)
    if judged is not None:
        sample = read_sample(judged, tracks)
        answer(json, *_judged(sample, result, judged))
        return
    assert out is not None
    options = make(SampleOptions, **settings)
    check_file(out, result, result / "detections.csv", result / "edges.csv", result / RUN_FILE)
    sample = draw_sample(tracks, options)
    with signed(out) as spare:
        write_sample(sample, spare)
    record = {"sample": str(out), "count": len(sample.events), "population": sample.population}
    lines = [
        f"{plural(len(sample.events), 'event')} drawn at random from {sample.population:,} "
        f"({options.of}): {out}",
        "Look at each in the movie, write yes, no or ? into its last column, then: "
        f"bridgetrack check {result} --judged {out}",
    ]
    answer(json, record, lambda: lines)


def _tracks(result: Path) -> Tracks:
    """The tracks of a folder of results, or of a file."""
    from bridgetrack.io.read import read_tracks

    if not result.exists():
        raise InputError(f"{result}: there is no such file or folder; give the folder of a result")
    for name in ("tracks.geff", "detections.csv"):
        if (result / name).exists():
            return read_tracks(result / name)
    return read_tracks(result)


def _judged(sample: Sample, result: Path, table: Path) -> tuple[dict[str, Any], Any]:
    """What came of a sample, for machines and for people; kept with the result where it is ours."""
    accuracy = sample.accuracy
    if accuracy is None:
        raise InputError(
            f"{table}: no event is judged yet; write yes or no into the column right of at least "
            "one row, better of all"
        )
    left = len(sample.left)
    kept = _keep(sample, result, table) if not left else False
    record = {**accuracy.to_json(), "left": left, "kept": kept}

    def lines() -> Sequence[str]:
        told = [f"{accuracy.words}."]
        if left:
            told.append(
                f"note: {left} of {len(sample.events)} events are not judged yet, so the sentence "
                "does not hold: who leaves out hard ones finds too few errors; write ? where you "
                "cannot tell"
            )
        elif kept:
            told.append(f"added to methods.txt and {RUN_FILE} in {result}")
        return told

    return record, lines


def _keep(sample: Sample, result: Path, table: Path) -> bool:
    """Add what was found to the record of a run and its ``methods.txt``; whether there is one."""
    from bridgetrack.files import staged_files
    from bridgetrack.io.results import METHODS
    from bridgetrack.pipeline.methods import with_checked
    from bridgetrack.pipeline.result_folder import write_json

    run, methods, accuracy = result / RUN_FILE, result / METHODS, sample.accuracy
    if accuracy is None or not run.is_file() or not methods.is_file():
        return False

    def removed() -> tuple[str, ...]:
        refuse_others(result, [RUN_FILE, METHODS])
        return ()

    removed()
    record = json_library.loads(run.read_text(encoding="utf-8"))
    text = with_checked(methods.read_text(encoding="utf-8"), sample)
    with staged_files(result, removed) as staging:
        (staging / METHODS).write_text(text, encoding="utf-8", newline="\n")
        record["checked"] = {**accuracy.to_json(), "seed": sample.options.seed}
        files = {k: v for k, v in record["manifest"].items() if k != RUN_FILE}
        write_json(sealed(record, {**files, **manifest(staging, [METHODS])}), staging / RUN_FILE)
    return True
