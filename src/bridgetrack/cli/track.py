"""``bridgetrack track``: the main job, from labels to tables of tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import WARNING, Stopwatch, emit, say, show
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    OutFolder,
    Reading,
    Weights,
    answers_option,
    parse_choices,
    reads_movie,
)
from bridgetrack.cli.sources import (
    collecting_warnings,
    open_answers,
    open_sources,
    open_weights,
)

FORMATS = ("csv", "ctc", "geff")


@reads_movie
def track(
    labels: Labels,
    out: OutFolder,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None, answers_option("Answers that the tracks must honour.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="Formats to write: csv, ctc, geff.")
    ] = "csv",
    reading: Reading,
    json: Json = False,
) -> None:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything that is
    needed to repeat the run.
    """
    wanted = parse_choices(formats, FORMATS, "--format")
    with collecting_warnings([]):
        record = _track(labels, out, image, model, annotations, wanted, reading)
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
) -> dict[str, object]:
    from bridgetrack.cli.record import Given, check_run, finish
    from bridgetrack.models.library import find_model_file
    from bridgetrack.models.shipped import shipped_model
    from bridgetrack.pipeline.summary import misfit
    from bridgetrack.pipeline.tracking import track_steps

    model = None if model is None else find_model_file(model)
    given = Given(labels, image, model, annotations, formats, reading)
    check_run(out, given)
    weights = open_weights(model) or shipped_model()
    answers = open_answers(annotations)
    notes: list[str] = []
    with collecting_warnings(notes):
        sources = open_sources(labels, image, reading)
        watch = Stopwatch()
        tracking = show(track_steps(sources.cells, sources.image, weights, answers), watch)
        said = misfit(tracking.scene.anchored, str(labels), str(annotations))
        notes += [f"{WARNING}{said}"] if said else []
    return finish(tracking, out, given, watch, [*sources.notes, *notes])
