"""``bridgetrack run``: repeat a project without a window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopwatch, emit, say, show
from bridgetrack.cli.options import Json, OutFolder
from bridgetrack.cli.sources import collecting_warnings

if TYPE_CHECKING:
    from bridgetrack.cli.record import Given
    from bridgetrack.pipeline.project import Project
    from bridgetrack.pipeline.tracking import Tracking


def run(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="Project file saved from the plugin.")
    ],
    out: OutFolder,
    json: Json = False,
) -> None:
    """Track the movie of a project with its model and its answers, and write what it asks for.

    The result is the one that the plugin exports, with run.json beside it.
    """
    from bridgetrack.cli.record import check_run, finish
    from bridgetrack.cli.report import tracking_lines
    from bridgetrack.models.model import check_usable
    from bridgetrack.pipeline.project import load_project, run_project

    loaded = load_project(project)
    check_usable(loaded.model, f"{project}, model")
    given = _given(project, loaded)
    check_run(out, given)
    notes: list[str] = []
    watch = Stopwatch()
    with collecting_warnings(notes):
        tracking = show(run_project(loaded), watch)
    record = finish(tracking, out, given, watch, notes)
    if json:
        emit(_summary(tracking, loaded) | record)
    else:
        say(*tracking_lines(record))


def _given(file: Path, project: Project) -> Given:
    """What a project says, in the words of the command line."""
    from bridgetrack.cli.options import Reading
    from bridgetrack.cli.record import Given

    image = project.image
    reading = Reading(
        axes=project.labels.axes,
        scale=",".join(f"{s!r}" for s in project.scale),
        unit=project.unit,
        frame_interval=project.frame_interval,
        image_axes=None if image is None else image.axes,
    )
    return Given(
        project.labels.path,
        None if image is None else image.path,
        None,
        None,
        project.formats,
        reading,
        file,
        project.preset,
        "run",
    )


def _summary(tracking: Tracking, project: Project) -> dict[str, Any]:
    return {
        "tracks": tracking.tracks.n_tracks,
        "objective": tracking.solution.value,
        "formats": list(project.formats),
    }
