"""``bridgetrack cycles``: times between divisions, growth and speed of a result."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer
from bridgetrack.cli.lineage import Result, tracks_file
from bridgetrack.cli.options import Json, check_file
from bridgetrack.export.may_write import sign


def cycles(
    result: Result,
    certainty: Annotated[
        float,
        typer.Option(
            "--certainty",
            metavar="P",
            min=0.0,
            max=1.0,
            help="Leave out tracks that are less certain, from 0 to 1 (see tracks.csv).",
        ),
    ] = 0.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Table of cell cycles (.csv), or the survival curve (.svg, .png, .pdf).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say how long cells take to divide, how they grow and move.

    Tracks that leave, are lost or outlast the movie count as censored (Kaplan and Meier).
    """
    from bridgetrack.importing.tracks import read_tracks
    from bridgetrack.tracks.cycle_picture import save_cycles
    from bridgetrack.tracks.cycles import cell_cycles

    source = tracks_file(result)
    check_file(out, source)
    found = cell_cycles(read_tracks(source), certainty)
    if out is not None:
        save_cycles(found, out)
        sign(out)
    half, low, high = (t if math.isfinite(t) else None for t in found.median)
    record: dict[str, Any] = {
        "born": len(found.cycles),
        "divide": int(found.cycles["divides"].sum()),
        "left_out": found.left_out,
        "certainty": certainty,
        "unit": found.unit,
        "median": half,
        "median_interval": [low, high],
        "generations": found.generations.astype(object)
        .where(found.generations.notna(), None)
        .to_dict("records"),
        "file": None if out is None else str(out),
    }

    def lines() -> list[str]:
        table = found.generations
        told = [found.words]
        if len(table):
            told += ["", *table.to_string(index=False, na_rep="-", float_format="%.4g").split("\n")]
        return told if out is None else [*told, "", f"written to {out}"]

    answer(json, record, lines)
