"""``bridgetrack annotate`` and ``simulate-annotator``: a person's answers, drawn from a truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.active.options import SessionOptions, SuggestOptions
from bridgetrack.cli.console import answer, note_lines, note_texts, show
from bridgetrack.cli.options import (
    Axes,
    GroundTruth,
    Image,
    Json,
    Labels,
    MovieOptions,
    Weights,
    answers_option,
    at_least,
    check_file,
    make,
    one_option_each,
    out_option,
    seed_option,
)
from bridgetrack.cli.sources import (
    check_belonging,
    collecting_warnings,
    files_behind,
    open_answers,
    open_sources,
    open_weights,
)
from bridgetrack.export.may_write import signed
from bridgetrack.notes import Note, plural

if TYPE_CHECKING:
    from bridgetrack.active.session import ActiveSession
    from bridgetrack.detections.table import Detections
    from bridgetrack.hypotheses.events import Events
    from bridgetrack.importing.ctc import CtcTruth
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
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.annotations.truth import draw_annotations
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.pipeline.scene import measure

    notes: list[Note] = []
    with collecting_warnings(notes):
        cells, pixels = open_sources(labels, image, MovieOptions(axes), [])
        truth = read_ctc(ground_truth)
        detections = show(measure(cells, pixels))
        events = _true_events(cells, detections, truth)
        drawn = draw_annotations(
            events,
            detections,
            count=count,
            fraction=fraction,
            seed=seed,
            stratified=not uniform,
        )
        with signed(out) as spare:
            save_annotations(drawn, spare)
    counts = {event.key: number for event, number in drawn.counts().items()}
    record = {
        "out": str(out),
        "annotations": sum(counts.values()),
        "events": counts,
        "notes": note_texts(notes),
    }
    kinds = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    told = f"{plural(sum(counts.values()), 'annotation')} ({kinds}) in {out}"
    answer(json, record, lambda: [told, *note_lines(notes)])


def _true_events(cells: Movie | Detections, detections: Detections, truth: CtcTruth) -> Events:
    """What really happened to the cells, where the truth settles it."""
    from bridgetrack.detections.table import Detections
    from bridgetrack.evaluation.match import match_detections
    from bridgetrack.evaluation.true_events import true_events

    movie = None if isinstance(cells, Detections) else cells
    match = match_detections(detections, movie, truth.tracks, truth.labels)
    return true_events(detections, truth.tracks, match)


@one_option_each(SuggestOptions, "measure")
def simulate_annotator(
    labels: Labels,
    ground_truth: GroundTruth,
    out: Annotated[Path, out_option("A.json", "File of answers to write.")],
    clicks: Annotated[
        int, typer.Option("-n", "--clicks", metavar="N", help="Suggestions to answer.")
    ] = 50,
    wrong: Annotated[
        float, typer.Option("--wrong", metavar="F", help="Rate of wrong answers, 0 to 1.")
    ] = 0.0,
    cannot_tell: Annotated[
        float,
        typer.Option("--cannot-tell", metavar="F", help='Rate of "cannot tell" answers, 0 to 1.'),
    ] = 0.0,
    seed: Annotated[int, seed_option("Seed of mistakes and random suggestions.")] = 0,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[Path | None, answers_option("Answers to go on from.")] = None,
    model_out: Annotated[
        Path | None,
        typer.Option("--model-out", metavar="M.json", help="Write the model learned on the way."),
    ] = None,
    axes: Axes = None,
    json: Json = False,
    **how: Any,
) -> None:
    """Answer suggestions from ground truth, as a person would, and say what came of it.

    The model is updated while answers are given. For experiments: how many clicks does a movie
    need, and what do mistakes cost?
    """
    at_least(1, clicks, "-n")
    if not (wrong >= 0 and cannot_tell >= 0 and wrong + cannot_tell <= 1):
        raise typer.BadParameter(
            f"--wrong {wrong} and --cannot-tell {cannot_tell} must be 0 or more and add up to 1 "
            "at most"
        )
    at_least(0, seed, "--seed")
    suggesting = make(SuggestOptions, seed=seed, **how)
    inputs = (labels, image, ground_truth, annotations, *files_behind(model))
    check_file(out, *inputs)
    check_file(model_out, *inputs)
    if model_out is not None and model_out.resolve() == out.resolve():
        raise typer.BadParameter("--out and --model-out are the same file; give two names")
    from bridgetrack.active.session import ActiveSession
    from bridgetrack.active.simulated_annotator import (
        SimulatedAnnotator,
        simulate_session,
        true_accuracy,
    )
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.annotations.truth import read_events
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.models.model import save_model
    from bridgetrack.pipeline.scene import prepare

    notes: list[Note] = []
    with collecting_warnings(notes):
        prior, answers = open_weights(model), open_answers(annotations)
        cells, pixels = open_sources(labels, image, MovieOptions(axes), [])
        truth = read_ctc(ground_truth)
        scene = show(prepare(cells, pixels, answers))
        if annotations is not None:
            check_belonging(scene, labels, annotations, notes)
        events = read_events(_true_events(cells, scene.detections, truth), scene.detections)
        annotator = SimulatedAnnotator(events, scene.detections, wrong, cannot_tell, seed=seed)
        session = ActiveSession(scene, prior, options=SessionOptions(suggest=suggesting))
        show(simulate_session(session, annotator, clicks))
        right = true_accuracy(session, events)
        with signed(out) as spare:
            save_annotations(session.annotations, spare)
        if model_out is not None:
            with signed(model_out) as spare:
                save_model(session.model, spare)
    record = describe_session(session, right, out, model_out, notes)
    answer(json, record, lambda: session_lines(record, notes))


def describe_session(
    session: ActiveSession, right: float, out: Path, model_out: Path | None, notes: Sequence[Note]
) -> dict[str, Any]:
    """What came of a session, as JSON values."""
    estimate, verdict = session.estimate(), session.verdict()
    records = session.counted
    return {
        "out": str(out),
        "model": None if model_out is None else str(model_out),
        "clicks": len(records),
        "minutes": session.effort.minutes,
        "random": sum(r.random for r in records),
        "wrong_found": sum(r.right is False for r in records),
        "cannot_tell": sum(r.right is None for r in records),
        "events": {e.key: n for e, n in session.annotations.counts().items()},
        "estimate": None if estimate is None else estimate.to_json(),
        "estimate_words": None if estimate is None else estimate.words,
        "right": right,
        "stop": verdict.stop,
        "verdict": verdict.words,
        "curve": [
            {"clicks": p.clicks, "accuracy": p.accuracy, "low": p.low, "high": p.high,
             "changed": p.changed}
            for p in session.points
        ],
        "notes": note_texts(notes),
    }  # fmt: skip


def session_lines(record: dict[str, Any], notes: Sequence[Note]) -> list[str]:
    """The same for people."""
    kinds = ", ".join(f"{n} {name}" for name, n in record["events"].items() if n)
    lines = [
        f"{plural(record['clicks'], 'answer')} ({kinds}), {record['random']} of them to random "
        f"suggestions, {record['wrong_found']} found the proposal wrong, "
        f"{record['cannot_tell']} could not tell",
        f"estimate: {record['estimate_words'] or 'no random answers yet'}",
        f"truth: {100 * record['right']:.1f} % of the events are right",
        record["verdict"],
    ]
    if record["cannot_tell"]:
        lines.insert(
            1,
            '"could not tell": the truth does not settle the event, because a cell of the '
            "segmentation matches no true cell or several, or --cannot-tell chose it; such answers "
            "teach nothing and are left out of the estimate",
        )
    lines += note_lines(notes)
    files = record["out"] if record["model"] is None else f"{record['out']}, {record['model']}"
    return [*lines, f"in {files}"]
