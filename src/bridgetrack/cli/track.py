"""``bridgetrack track``: the main job, from labels to tables of tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import Stopwatch, emit, say, show
from bridgetrack.cli.options import (
    Axes,
    FrameInterval,
    Image,
    ImageAxes,
    Json,
    Labels,
    Scale,
    Unit,
    parse_choices,
)
from bridgetrack.cli.sources import Reading, collecting_warnings, open_sources

FORMATS = ("csv", "ctc", "geff")


def track(
    labels: Labels,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder for the results.", show_default=False),
    ],
    image: Image = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Weights: a file, or a name in the library; without it the shipped ones.",
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            "--annotations", metavar="A.json", help="Answers that the tracks must honour."
        ),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="Formats to write: csv, ctc, geff.")
    ] = "csv",
    scale: Scale = None,
    unit: Unit = None,
    frame_interval: FrameInterval = None,
    axes: Axes = None,
    image_axes: ImageAxes = None,
    json: Json = False,
) -> None:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything that is
    needed to repeat the run.
    """
    wanted = parse_choices(formats, FORMATS, "--format")
    reading = Reading(axes, scale, unit, frame_interval, image_axes)
    notes: list[str] = []
    with collecting_warnings(notes):
        record = _track(labels, out, image, model, annotations, wanted, reading, notes)
    if json:
        emit(record)
    else:
        from bridgetrack.cli.report import tracking_lines

        say(*tracking_lines(record))


def _track(
    labels: Path,
    out: Path,
    image: Path | None,
    model: Path | None,
    annotations: Path | None,
    formats: tuple[str, ...],
    reading: Reading,
    notes: list[str],
) -> dict[str, object]:
    from bridgetrack.annotations.store import load_annotations
    from bridgetrack.cli.record import Given, check_folder, finish
    from bridgetrack.models.find import find_model_file
    from bridgetrack.models.shipped import shipped_model
    from bridgetrack.models.store import load_model
    from bridgetrack.pipeline.tracking import track_steps

    check_folder(out)
    model = None if model is None else find_model_file(model)
    weights = load_model(model) if model is not None else shipped_model()
    answers = load_annotations(annotations) if annotations is not None else None
    sources = open_sources(labels, image, reading)
    watch = Stopwatch()
    tracking = show(track_steps(sources.cells, sources.image, weights, answers), watch)
    given = Given(labels, image, model, annotations, formats, reading)
    return finish(tracking, out, given, watch, [*sources.notes, *notes])
