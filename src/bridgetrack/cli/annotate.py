"""``bridgetrack annotate``: a simulated annotator's answers, drawn from ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import emit, note_lines, plural, say, show
from bridgetrack.cli.options import (
    Axes,
    GroundTruth,
    Image,
    Json,
    Labels,
    Reading,
    at_least,
    check_file,
    out_option,
    seed_option,
)
from bridgetrack.cli.sources import collecting_warnings, open_sources
from bridgetrack.export.may_write import sign


def annotate(
    labels: Labels,
    ground_truth: GroundTruth,
    out: Annotated[Path, out_option("A.json", "File to write.")],
    fraction: Annotated[
        float | None,
        typer.Option("--fraction", metavar="F", help="Share of the true events, 0 to 1."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="Number of events.")
    ] = None,
    seed: Annotated[int, seed_option("Seed of the draw.")] = 0,
    uniform: Annotated[
        bool,
        typer.Option(
            "--uniform", help="Draw all events alike; otherwise rare ones are drawn more often."
        ),
    ] = False,
    image: Image = None,
    axes: Axes = None,
    json: Json = False,
) -> None:
    """Draw clicks from ground truth, as a person would have made them.

    Detections are matched to the true cells by overlap; divisions, appearances and other rare
    events are drawn more often than they occur.
    """
    if (fraction is None) == (count is None):
        raise typer.BadParameter("give one of --fraction and --count")
    if fraction is not None and not 0 < fraction <= 1:
        raise typer.BadParameter(f"--fraction {fraction} must be above 0 and at most 1")
    if count is not None:
        at_least(1, count, "--count")
    at_least(0, seed, "--seed")
    check_file(out, labels, image, ground_truth)
    notes: list[str] = []
    with collecting_warnings(notes):
        drawn = _draw(
            labels, image, Reading(axes), ground_truth, out, fraction, count, seed, not uniform
        )
    if json:
        emit({"out": str(out), "annotations": sum(drawn.values()), "events": drawn, "notes": notes})
        return
    kinds = ", ".join(f"{n} {name}" for name, n in drawn.items() if n)
    say(f"{plural(sum(drawn.values()), 'annotation')} ({kinds}) in {out}")
    say(*note_lines(notes))


def _draw(
    labels: Path,
    image: Path | None,
    reading: Reading,
    ground_truth: Path,
    out: Path,
    fraction: float | None,
    count: int | None,
    seed: int,
    stratified: bool,
) -> dict[str, int]:
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.annotations.truth import draw_annotations
    from bridgetrack.detections.table import Detections
    from bridgetrack.evaluation.match import match_detections
    from bridgetrack.evaluation.true_events import true_events
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.pipeline.scene import measure

    sources = open_sources(labels, image, reading)
    truth = read_ctc(ground_truth)
    cells = sources.cells
    movie = None if isinstance(cells, Detections) else cells
    detections = show(measure(cells, sources.image))
    match = match_detections(detections, movie, truth.tracks, truth.labels)
    events = true_events(detections, truth.tracks, match)
    chosen = draw_annotations(
        events.to_frame(),
        detections,
        count=count,
        fraction=fraction,
        seed=seed,
        stratified=stratified,
    )
    save_annotations(chosen, out)
    sign(out)
    return {event.key: number for event, number in chosen.counts().items()}
