"""``bridgetrack annotate``: answers of a person, drawn from ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import answer, note_lines, show
from bridgetrack.cli.options import (
    Axes,
    GroundTruth,
    Image,
    Json,
    Labels,
    at_least,
    out_option,
    seed_option,
)
from bridgetrack.io.may_write import check_file, signed
from bridgetrack.notes import Note, collecting_warnings, note_texts, plural
from bridgetrack.pipeline.inputs import Reading, open_files

if TYPE_CHECKING:
    from bridgetrack.annotations.annotation_set import AnnotationSet
    from bridgetrack.detections.table import Detections
    from bridgetrack.hypotheses.events import Events
    from bridgetrack.io.ctc import CtcTruth
    from bridgetrack.movie.movie import Movie


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
    suggested: Annotated[
        bool,
        typer.Option(
            "--suggested",
            help="Answer --count suggestions in turn, while the model learns from each, as in the "
            "window; otherwise events are drawn, rare ones more often than they occur.",
        ),
    ] = False,
    wrong: Annotated[
        float,
        typer.Option("--wrong", metavar="F", help="Rate of wrong answers, 0 to 1."),
    ] = 0.0,
    seed: Annotated[int, seed_option("Seed of the draw and of wrong answers.")] = 0,
    image: Image = None,
    axes: Axes = None,
    json: Json = False,
) -> None:
    """Write the answers that a person who knows the ground truth would give.

    Detections are matched to the true cells by overlap. For experiments: how many answers does a
    movie need, and what do mistakes cost?
    """
    if (fraction is None) == (count is None):
        raise typer.BadParameter("give one of --fraction and --count")
    if fraction is not None and not 0 < fraction <= 1:
        raise typer.BadParameter(f"--fraction {fraction} must be above 0 and at most 1")
    if count is not None:
        at_least(1, count, "--count")
    if suggested and count is None:
        raise typer.BadParameter("--suggested needs --count")
    if not 0 <= wrong <= 1:
        raise typer.BadParameter(f"--wrong {wrong} must be from 0 to 1")
    at_least(0, seed, "--seed")
    check_file(out, labels, image, ground_truth)
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.annotations.truth import draw_annotations
    from bridgetrack.io.ctc import read_ctc
    from bridgetrack.pipeline.scene import measure

    notes: list[Note] = []
    more: dict[str, Any] = {}
    with collecting_warnings(notes):
        cells, pixels = open_files(labels, image, Reading(axes), [])
        truth = read_ctc(ground_truth)
        if suggested and count is not None:
            answers, more = _answered(cells, pixels, truth, count, wrong, seed)
        else:
            detections = show(measure(cells, pixels))
            events = _true_events(cells, detections, truth)
            answers = draw_annotations(
                events, detections, count=count, fraction=fraction, seed=seed, wrong=wrong
            )
        with signed(out) as spare:
            save_annotations(answers, spare)
    counts = {event.key: number for event, number in answers.counts().items()}
    total = sum(counts.values())
    record = {
        "out": str(out),
        "annotations": total,
        "events": counts,
        **more,
        "notes": note_texts(notes),
    }
    kinds = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    lines = [f"{plural(total, 'annotation')} ({kinds}) in {out}"]
    if suggested:
        lines.append(f"with them {100 * more['right']:.1f} % of the true events are found")
    answer(json, record, lambda: [*lines, *note_lines(notes)])


def _true_events(cells: Movie | Detections, detections: Detections, truth: CtcTruth) -> Events:
    """What really happened to the cells, where the truth settles it."""
    from bridgetrack.detections.table import Detections
    from bridgetrack.evaluation.truth import match_detections, true_events

    movie = None if isinstance(cells, Detections) else cells
    match = match_detections(detections, movie, truth.tracks, truth.labels)
    return true_events(detections, truth.tracks, match)


def _answered(
    cells: Movie | Detections,
    pixels: Movie | None,
    truth: CtcTruth,
    count: int,
    wrong: float,
    seed: int,
) -> tuple[AnnotationSet, dict[str, Any]]:
    """Answers to suggestions, and the share of true events that the session then finds."""
    from bridgetrack.active.session import ActiveSession
    from bridgetrack.active.simulated_annotator import (
        SimulatedAnnotator,
        simulate_session,
        true_accuracy,
    )
    from bridgetrack.active.suggestion import SessionOptions, SuggestOptions
    from bridgetrack.annotations.truth import read_events
    from bridgetrack.pipeline.scene import prepare

    scene = show(prepare(cells, pixels))
    events = read_events(_true_events(cells, scene.detections, truth), scene.detections)
    annotator = SimulatedAnnotator(events, scene.detections, wrong, seed=seed)
    session = ActiveSession(scene, options=SessionOptions(suggest=SuggestOptions(seed=seed)))
    show(simulate_session(session, annotator, count))
    return session.annotations, {"right": true_accuracy(session, events)}
