"""``bridgetrack lineage``: the family trees of a result as a picture, or in Newick's notation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer
from bridgetrack.cli.options import Json, check_file
from bridgetrack.export.may_write import signed
from bridgetrack.notes import plural

Result = Annotated[
    Path,
    typer.Argument(
        metavar="RESULT",
        help="Folder that `bridgetrack track` wrote, a CTC result folder, or a .csv, .geff or "
        "TrackMate .xml file.",
        show_default=False,
    ),
]


def lineage(
    result: Result,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Picture (.svg, .png, .pdf) or trees in Newick's notation (.nwk).",
            show_default=False,
        ),
    ],
    family: Annotated[
        list[int] | None,
        typer.Option(
            "--family",
            metavar="N",
            help="Only this family, named by its first track (lineage_id in tracks.csv); may be "
            "given several times.",
        ),
    ] = None,
    colour: Annotated[
        str,
        typer.Option(
            "--colour",
            metavar="WHAT",
            help="family, track, generation, certainty, or any number of cells or tracks, "
            "e.g. area, speed, mean_0, growth.",
        ),
    ] = "generation",
    json: Json = False,
) -> None:
    """Draw who descends from whom."""
    from bridgetrack.importing.tracks import read_tracks
    from bridgetrack.tracks.lineage_picture import save_lineages

    source = tracks_file(result)
    check_file(out, source)
    with signed(out) as spare:
        drawn = save_lineages(read_tracks(source), spare, families=family or None, colour=colour)
    families = int(drawn.branches["lineage_id"].nunique())
    record: dict[str, Any] = {
        "file": str(out), "families": families, "tracks": len(drawn.branches),
    }  # fmt: skip

    def lines() -> list[str]:
        named = plural(families, "family", "families")
        return [f"{named} with {plural(len(drawn.branches), 'track')} in {out}"]

    answer(json, record, lines)


def tracks_file(result: Path) -> Path:
    """Where the tracks of a folder of results are; a file is itself."""
    from bridgetrack.errors import InputError

    if not result.exists():
        raise InputError(f"{result}: there is no such file or folder")
    names = () if result.suffix.lower() == ".geff" else ("detections.csv", "tracks.geff", "ctc")
    return next((result / name for name in names if (result / name).exists()), result)
