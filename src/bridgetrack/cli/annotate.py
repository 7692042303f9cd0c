"""``bridgetrack suggest`` and ``annotate``: events to annotate, annotations from ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import (
    SimulatedAnnotator,
    simulate_session,
    true_accuracy,
    with_mistakes,
)
from bridgetrack.active.suggester import suggest_steps
from bridgetrack.active.suggestion import SessionOptions, Suggestion, SuggestOptions
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import save_annotations
from bridgetrack.annotations.from_tracks import draw_annotations, read_events
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
from bridgetrack.hypotheses.events import Events
from bridgetrack.io.ctc import read_ctc
from bridgetrack.io.may_write import check_file, signed
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, collecting_warnings, note_texts, plural
from bridgetrack.pipeline.inputs import Reading, open_files, open_weights
from bridgetrack.pipeline.scene import Scene, prepare


@one_option_each(SuggestOptions, "random_share", "seed")
@reads_movie
def suggest(
    labels: Labels,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None, answers_option("Annotations so far; these events are not suggested again.")
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", metavar="N", min=1, help="Number of suggestions.")
    ] = 20,
    without: Without = "",
    reading: Reading,
    json: Json = False,
    **how: Any,
) -> None:
    """List the events that are most worth annotating.

    The least certain events come first, no two of them neighbours; a share is drawn at random.
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
        return ["no events are left to suggest"]
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
    suggested: Annotated[
        bool,
        typer.Option(
            "--suggested",
            help="Simulate a session in the window: --count suggested events are annotated in "
            "turn, while the model learns.",
        ),
    ] = False,
    wrong: Annotated[
        float,
        typer.Option("--wrong", metavar="F", min=0, max=1, help="Share of mistakes, 0 to 1."),
    ] = 0.0,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="S", min=0, help="Seed of the draw and of mistakes."),
    ] = 0,
    image: Image = None,
    axes: Axes = None,
    json: Json = False,
) -> None:
    """Write the annotations that a person who knows the ground truth would give.

    Detections are matched to the true cells by overlap. Without --suggested, events are drawn at
    random, and rare kinds are overrepresented. For experiments: how many annotations does a movie
    need, and what is the effect of mistakes?
    """
    if (fraction is None) == (count is None):
        raise typer.BadParameter("give one of --fraction and --count")
    if suggested and count is None:
        raise typer.BadParameter("--suggested needs --count")
    check_file(out, labels, image, ground_truth)
    notes, more = list[Note](), dict[str, Any]()
    with collecting_warnings(notes):
        cells, pixels = open_files(labels, image, Reading(axes), [])
        truth = read_ctc(ground_truth)
        scene = show(prepare(cells, pixels))
        movie = None if isinstance(cells, Detections) else cells
        match = match_detections(scene.detections, movie, truth.tracks, truth.labels)
        events = true_events(scene.detections, truth.tracks, match)
        if suggested and count is not None:
            answers, more["right"] = _answered(scene, events, count, wrong, seed)
        else:
            answers = draw_annotations(
                events, scene.detections, count=count, fraction=fraction, seed=seed
            )
            answers = with_mistakes(answers, events, scene.detections, wrong, seed)
        with signed(out) as spare:
            save_annotations(answers, spare)
    counts = {event.key: number for event, number in answers.counts().items()}
    total = sum(counts.values())
    record = {"out": str(out), "annotations": total, "events": counts, **more}
    kinds = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    lines = [f"{plural(total, 'annotation')} ({kinds}) in {out}"]
    if suggested:
        lines.append(f"tracking with them finds {100 * more['right']:.1f} % of the true events")
    record["notes"] = note_texts(notes)
    answer(json, record, lambda: [*lines, *note_lines(notes)])


def _answered(
    scene: Scene, events: Events, count: int, wrong: float, seed: int
) -> tuple[AnnotationSet, float]:
    """Answers to suggestions, and the share of true events that the session then finds."""
    asked = read_events(events, scene.detections)
    annotator = SimulatedAnnotator(asked, scene.detections, wrong, seed)
    session = ActiveSession(scene, options=SessionOptions(suggest=SuggestOptions(seed=seed)))
    show(simulate_session(session, annotator, count))
    return session.annotations, true_accuracy(session, asked)
