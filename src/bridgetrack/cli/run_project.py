"""``bridgetrack run``: repeat a project without a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import emit, say, show
from bridgetrack.cli.options import Json, OutFolder


def run(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="Project file saved from the plugin.")
    ],
    out: OutFolder,
    json: Json = False,
) -> None:
    """Track the movie of a project with its model and its answers, and write what it asks for.

    The result is the one that the plugin exports.
    """
    from bridgetrack.cli.record import check_folder
    from bridgetrack.pipeline.project import export_project, run_project
    from bridgetrack.pipeline.project_file import load_project

    check_folder(out)
    loaded = load_project(project)
    tracking = show(run_project(loaded))
    notes = show(export_project(loaded, tracking, out))
    if json:
        emit(
            {
                "tracks": tracking.tracks.n_tracks,
                "objective": tracking.solution.value,
                "out": str(out),
                "formats": list(loaded.formats),
                "notes": list(notes),
            }
        )
        return
    say(f"{tracking.tracks.n_tracks} tracks; results: {out}", *notes)
