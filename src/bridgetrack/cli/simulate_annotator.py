"""``bridgetrack simulate-annotator``: suggestions are answered from ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import emit, note_lines, plural, say, show
from bridgetrack.cli.options import (
    Axes,
    GroundTruth,
    Image,
    Json,
    Labels,
    Reading,
    Weights,
    answers_option,
    at_least,
    check_file,
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
from bridgetrack.export.may_write import sign

if TYPE_CHECKING:
    from bridgetrack.active.session import ActiveSession


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
    inputs = (labels, image, ground_truth, annotations, *files_behind(model))
    check_file(out, *inputs)
    check_file(model_out, *inputs)
    if model_out is not None and model_out.resolve() == out.resolve():
        raise typer.BadParameter("--out and --model-out are the same file; give two names")
    notes: list[str] = []
    with collecting_warnings(notes):
        session, right = _simulated(
            labels, image, Reading(axes), ground_truth, model, annotations, clicks,
            (wrong, cannot_tell), seed, notes,
        )  # fmt: skip
        _write(session, out, model_out)
    record = describe_session(session, right, out, model_out, notes)
    if json:
        emit(record)
    else:
        say(*session_lines(record))


def _simulated(
    labels: Path,
    image: Path | None,
    reading: Reading,
    ground_truth: Path,
    model: Path | None,
    annotations: Path | None,
    clicks: int,
    rates: tuple[float, float],
    seed: int,
    notes: list[str],
) -> tuple[ActiveSession, float]:
    """A session with its answers, and the true share of right events at its end."""
    from bridgetrack.active.options import SessionOptions
    from bridgetrack.active.session import ActiveSession
    from bridgetrack.active.simulated_annotator import (
        SimulatedAnnotator,
        simulate_session,
        true_accuracy,
    )
    from bridgetrack.active.suggester import SuggestOptions
    from bridgetrack.annotations.truth import read_events
    from bridgetrack.detections.table import Detections
    from bridgetrack.evaluation.match import match_detections
    from bridgetrack.evaluation.true_events import true_events
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.pipeline.scene import prepare

    prior, answers = open_weights(model), open_answers(annotations)
    sources = open_sources(labels, image, reading)
    truth = read_ctc(ground_truth)
    scene = show(prepare(sources.cells, sources.image, answers))
    if annotations is not None:
        check_belonging(scene, labels, annotations, notes)
    movie = None if isinstance(sources.cells, Detections) else sources.cells
    match = match_detections(scene.detections, movie, truth.tracks, truth.labels)
    found = true_events(scene.detections, truth.tracks, match)
    events = read_events(found, scene.detections)
    annotator = SimulatedAnnotator(events, scene.detections, *rates, seed=seed)
    options = SessionOptions(suggest=SuggestOptions(seed=seed))
    session = ActiveSession(scene, prior, options=options)
    show(simulate_session(session, annotator, clicks))
    return session, true_accuracy(session, events)


def _write(session: ActiveSession, out: Path, model_out: Path | None) -> None:
    from bridgetrack.annotations.store import save_annotations
    from bridgetrack.models.model import save_model

    save_annotations(session.annotations, out)
    sign(out)
    if model_out is not None:
        save_model(session.model, model_out)
        sign(model_out)


def describe_session(
    session: ActiveSession, right: float, out: Path, model_out: Path | None, notes: list[str]
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
        "notes": notes,
    }  # fmt: skip


def session_lines(record: dict[str, Any]) -> list[str]:
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
    lines += note_lines(record["notes"])
    files = record["out"] if record["model"] is None else f"{record['out']}, {record['model']}"
    return [*lines, f"in {files}"]
