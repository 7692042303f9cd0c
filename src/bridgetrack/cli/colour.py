"""``bridgetrack colour``: the cells of a result in the colours of their tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer, show
from bridgetrack.cli.earlier_run import tracked_labels
from bridgetrack.cli.lineage import Result, tracks_file
from bridgetrack.cli.options import Json, check_file
from bridgetrack.errors import InputError
from bridgetrack.export.may_write import RUN_FILE, signed


def colour(
    result: Result,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Movie in colours (.tif).", show_default=False),
    ],
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="family, track, generation, certainty, or any number of cells or tracks, "
            "e.g. area, speed, mean_0, growth.",
        ),
    ] = "family",
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="LABELS",
            help="The label movie that was tracked; without it, the one that run.json tells of.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write the cells in the colours of their tracks, on black."""
    from bridgetrack.export.coloured import save_coloured
    from bridgetrack.importing.tracks import read_tracks
    from bridgetrack.movie.opening import open_labels

    source = tracks_file(result)
    named = labels or tracked_labels(source.parent / RUN_FILE)
    if named is None or not named.exists():
        raise InputError(
            f"{result}: the label movie that was tracked is not known any more; name it by --labels"
        )
    check_file(out, source, named)
    with signed(out) as spare:
        found = show(save_coloured(read_tracks(source), open_labels(named), spare, by))
    names = found.palette == "names"
    record: dict[str, Any] = {
        "file": str(out),
        "by": by,
        "low": None if names else found.low,
        "high": None if names else found.high,
    }

    def lines() -> list[str]:
        span = "" if names else f" from {found.low:.4g} to {found.high:.4g}"
        return [f"coloured by {found.words}{span}: {out}"]

    answer(json, record, lines)
