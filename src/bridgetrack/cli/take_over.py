"""``bridgetrack take-over``: repairs made in another program become answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import answer
from bridgetrack.cli.lineage import Result, tracks_file
from bridgetrack.cli.options import Json, check_file, out_option
from bridgetrack.errors import InputError
from bridgetrack.export.may_write import signed
from bridgetrack.notes import plural


def take_over(
    result: Result,
    edited: Annotated[
        Path,
        typer.Argument(
            metavar="EDITED",
            help="The same tracks after somebody corrected them elsewhere: a .csv, .geff or "
            "TrackMate .xml file, or a CTC result folder.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, out_option("A.json", "File of answers to write.")],
    deleted: Annotated[
        bool,
        typer.Option("--deleted", help="Cells that EDITED lacks are no cells."),
    ] = False,
    json: Json = False,
) -> None:
    """Turn repairs made in another program into answers.

    Cells are found by their places. `track --annotations` honours the answers, and `train` learns
    from them.
    """
    from bridgetrack.annotations.annotation import Kind
    from bridgetrack.annotations.edited_tracks import corrections
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.importing.tracks import read_tracks

    original, theirs = tracks_file(result), tracks_file(edited)
    check_file(out, original, theirs)
    found = corrections(read_tracks(original), read_tracks(theirs), deleted=deleted)
    if not len(found.annotations):
        raise InputError(
            f"{edited}: its {found.same} links are those of {result}, so there is nothing to take "
            "over"
        )
    with signed(out) as spare:
        save_annotations(found.annotations, spare)
    kinds = {kind.value: 0 for kind in (Kind.CONFIRM, Kind.REJECT)}
    for each in found.annotations:
        kinds[each.kind.value] += 1
    record = {
        "out": str(out), "annotations": len(found.annotations), "kinds": kinds,
        "same": found.same, "unknown": found.unknown, "missing": found.missing,
    }  # fmt: skip

    def lines() -> list[str]:
        listed = plural(len(found.annotations), "answer")
        told = [
            f"{listed} in {out}: {kinds['confirm']} confirmed, {kinds['reject']} rejected; "
            f"{plural(found.same, 'link')} as before"
        ]
        if found.unknown:
            told.append(
                f"note: {plural(found.unknown, 'cell')} of {edited} lie where {result} has none; "
                "nothing is said of them"
            )
        if found.missing and not deleted:
            told.append(
                f"note: {edited} lacks {plural(found.missing, 'cell')}; nothing is said of them "
                "(--deleted: they are no cells)"
            )
        return told

    answer(json, record, lines)
