"""``bridgetrack cycles``: times between divisions, growth and speed of a result."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import answer, show
from bridgetrack.cli.earlier_run import given_run
from bridgetrack.cli.explain import tracked_again
from bridgetrack.cli.lineage import Result, tracks_file
from bridgetrack.cli.options import Json, at_least, check_file, seed_option
from bridgetrack.cli.sources import collecting_warnings
from bridgetrack.errors import InputError
from bridgetrack.export.may_write import RUN_FILE, signed

if TYPE_CHECKING:
    from bridgetrack.tracks.cycles import CycleSpread


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
    samples: Annotated[
        int,
        typer.Option(
            "--samples",
            metavar="N",
            min=0,
            help="Solutions to draw around the best, for how far the numbers hang on doubtful "
            "events; RESULT must be a folder that `bridgetrack track` wrote.",
        ),
    ] = 0,
    seed: Annotated[int, seed_option("Seed of the solutions drawn.")] = 0,
    json: Json = False,
) -> None:
    """Say how long cells take to divide, how they grow and move.

    Tracks that leave, are lost or outlast the movie count as censored (Kaplan and Meier). With
    --samples the movie is tracked again, as the record of the run says.
    """
    at_least(0, seed, "--seed")
    from bridgetrack.importing.tracks import read_tracks
    from bridgetrack.tracks.cycle_picture import save_cycles
    from bridgetrack.tracks.cycles import cell_cycles

    source = tracks_file(result)
    check_file(out, source)
    found = cell_cycles(read_tracks(source), certainty)
    spread = _spread(result, samples, seed, certainty) if samples else None
    if out is not None:
        with signed(out) as spare:
            save_cycles(found, spare)
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
        "spread": None if spread is None else _spread_record(spread),
        "file": None if out is None else str(out),
    }

    def lines() -> list[str]:
        table = found.generations
        told = [found.words] if spread is None else [found.words, spread.words]
        if len(table):
            told += ["", *table.to_string(index=False, na_rep="-", float_format="%.4g").split("\n")]
        return told if out is None else [*told, "", f"written to {out}"]

    answer(json, record, lines)


def _spread(result: Path, samples: int, seed: int, certainty: float) -> CycleSpread:
    """Track the movie of a result again, and draw solutions around the best."""
    from bridgetrack.pipeline.samples import sampled_tracks
    from bridgetrack.tracks.cycles import cycle_spread

    if not (result / RUN_FILE).is_file():
        raise InputError(
            f"{result}: --samples tracks the movie again, which needs the folder that `bridgetrack "
            f"track` wrote, with its {RUN_FILE}"
        )
    with collecting_warnings([]):
        tracking = tracked_again(given_run(result))
        return cycle_spread(show(sampled_tracks(tracking, samples, seed)), certainty)


def _spread_record(spread: CycleSpread) -> dict[str, Any]:
    """The spread as JSON values: 95 % of the samples lie between the two numbers."""
    record: dict[str, Any] = {"samples": len(spread.table)}
    for name in spread.table.columns:
        record[name] = [v if math.isfinite(v) else None for v in spread.interval(name)]
    return record
