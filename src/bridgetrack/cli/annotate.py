"""``bridgetrack suggest`` and ``annotate``: which events to answer, and answers out of a truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.active.suggester import suggest_steps
from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.annotations.files import save_annotations
from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.cli.console import answer, note_lines, show
from bridgetrack.cli.options import (
    Axes,
    GroundTruth,
    Image,
    Json,
    Labels,
    Weights,
    Without,
    answers_option,
    make,
    one_option_each,
    open_scene,
    out_option,
    parse_kinds,
    reads_movie,
)
from bridgetrack.detections.table import Detections
from bridgetrack.evaluation.truth import match_detections, true_events
from bridgetrack.io.ctc import read_ctc
from bridgetrack.io.may_write import check_file, signed
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, collecting_warnings, note_texts, plural
from bridgetrack.pipeline.inputs import Reading, open_files, open_weights
from bridgetrack.pipeline.scene import measure


@one_option_each(SuggestOptions, "random_share", "seed")
@reads_movie
def suggest(
    labels: Labels,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None, answers_option("Answers so far; they are not asked again.")
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", min=1, help="Number of suggestions.")
    ] = 20,
    without: Without = "",
    reading: Reading,
    json: Json = False,
    **how: Any,
) -> None:
    """List the events that are most worth an answer.

    The most uncertain come first; none is a neighbour of another, and a share is drawn at random.
    """
    options, kinds, notes = make(SuggestOptions, **how), parse_kinds(without), list[Note]()
    with collecting_warnings(notes):
        weights = open_weights(model) or shipped_model()
        scene = open_scene(labels, image, annotations, reading, notes, kinds=kinds)
        answered = len(scene.anchored.annotations)
        found = show(suggest_steps(scene, weights, count, options, answered=answered))
    record = {"suggestions": [s.to_json() for s in found], "notes": note_texts(notes)}
    answer(json, record, lambda: [*_suggestion_lines(found), *note_lines(notes)])


def _suggestion_lines(found: list[Suggestion]) -> list[str]:
    if not found:
        return ["nothing is left to ask"]
    lines = []
    for number, s in enumerate(found, 1):
        place = ", ".join(f"{p:.0f}" for p in s.position)
        only = s.margin == float("inf")
        sure = "nothing else is possible" if only else f"margin at least {s.margin:.2f}"
        lines += [
            f"{number:>3}. {s.question}",
            f"     frames {s.frame} and {s.last_frame}, at {place}; {sure}",
            f"     {s.reason}" if s.random else f"     because {s.reason}",
        ]
    return lines


def annotate(
    labels: Labels,
    ground_truth: GroundTruth,
    out: Annotated[Path, out_option("A.json", "File to write.")],
    fraction: Annotated[
        float | None,
        typer.Option(
            "--fraction", metavar="F", min=0, max=1, help="Share of the true events, 0 to 1."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="Number of events.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="S", min=0, help="Seed of the draw."),
    ] = 0,
    image: Image = None,
    axes: Axes = None,
    json: Json = False,
) -> None:
    """Write the answers that a person who knows the ground truth would give.

    Detections are matched to the true cells by overlap; rare events are drawn more often than they
    occur. For experiments: how many answers does a movie need?
    """
    if (fraction is None) == (count is None):
        raise typer.BadParameter("give one of --fraction and --count")
    check_file(out, labels, image, ground_truth)
    notes: list[Note] = []
    with collecting_warnings(notes):
        cells, pixels = open_files(labels, image, Reading(axes), [])
        truth = read_ctc(ground_truth)
        detections = show(measure(cells, pixels))
        movie = None if isinstance(cells, Detections) else cells
        match = match_detections(detections, movie, truth.tracks, truth.labels)
        events = true_events(detections, truth.tracks, match)
        answers = draw_annotations(events, detections, count=count, fraction=fraction, seed=seed)
        with signed(out) as spare:
            save_annotations(answers, spare)
    counts = {event.key: number for event, number in answers.counts().items()}
    total = sum(counts.values())
    record = {"out": str(out), "annotations": total, "events": counts}
    kinds = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    lines = [f"{plural(total, 'annotation')} ({kinds}) in {out}"]
    record["notes"] = note_texts(notes)
    answer(json, record, lambda: [*lines, *note_lines(notes)])
