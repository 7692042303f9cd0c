"""``bridgetrack batch``: every movie of a folder, tracked with one model, and a table of all."""

from __future__ import annotations

import json as json_library
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer, show, table
from bridgetrack.cli.options import (
    Formats,
    Json,
    OutFolder,
    Repair,
    Weights,
    Without,
    channel_option,
    make,
    one_option_each,
    parse_channel,
    parse_choices,
    parse_kinds,
    reads_movie,
)
from bridgetrack.io.results import FORMATS
from bridgetrack.notes import plural
from bridgetrack.pipeline.batch import TABLE, BatchRow, BatchRun, batch_steps, table_of
from bridgetrack.pipeline.inputs import Reading
from bridgetrack.segmentation.settings import MaskChoice, SegmentationSettings


@reads_movie
@one_option_each(MaskChoice)
@one_option_each(SegmentationSettings, "diameter")
def batch(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of movies: raw ones, masks, or tables of cells; NAME.tif goes with "
            "NAME_labels.tif, _masks or _cells.",
            show_default=False,
        ),
    ],
    out: OutFolder,
    *,
    model: Weights = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="DIR", help="Folder with the masks, named as their movies are."
        ),
    ] = None,
    formats: Formats = "csv",
    channel: Annotated[str | None, channel_option()] = None,
    repair: Repair = False,
    without: Without = "",
    reading: Reading,
    json: Json = False,
    **settings: Any,
) -> None:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a folder of results in DIR, and
    DIR/batch.csv lists them all, the least certain first. A movie that fails does not stop the
    others; the exit status is 1 then.
    """
    choose = make(MaskChoice, choose=settings.pop("choose"))
    given = BatchRun(
        folder, out, model, labels, parse_choices(formats, FORMATS, "--format"), choose,
        make(SegmentationSettings, **settings), parse_channel(channel), repair,
        parse_kinds(without), reading,
    )  # fmt: skip
    rows = show(batch_steps(given))
    failed = [r for r in rows if r.problem]
    record = {
        "table": str(out / TABLE),
        "movies": json_library.loads(table_of(rows).to_json(orient="records")),
        "failed": len(failed),
    }
    answer(json, record, lambda: _lines(rows, out))
    if failed:
        first = failed[0]
        typer.echo(
            f"error: {len(failed)} of {plural(len(rows), 'movie')} failed; {first.name}: "
            f"{first.problem}",
            err=True,
        )
        raise typer.Exit(1)


def _lines(rows: Sequence[BatchRow], out: Path) -> list[str]:
    """The table for people, and what to look at first."""
    good = [r for r in rows if not r.problem]
    cells = [
        [
            r.name,
            *(f"{(r.counts or {}).get(key, 0):,}" for key in ("cells", "tracks", "divide")),
            *(_share(value) for value in (r.certainty, r.doubtful)),
        ]
        for r in good
    ]
    header = ["movie", "cells", "tracks", "divisions", "certain", "doubtful"]
    lines = table(header, cells) if good else []
    lines += [f"warning: {r.name}: {words}" for r in good for words in r.warnings]
    return [*lines, f"{plural(len(good), 'movie')} tracked; table of all: {out / TABLE}"]


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"
