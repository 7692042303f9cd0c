"""``bridgetrack train``: learn weights from annotations."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopped, Stopwatch, emit, note_lines, plural, say, show
from bridgetrack.cli.helpers import (
    Help,
    Rho,
    SourceFiles,
    StrategyName,
    needs_annotations,
    open_help,
)
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    Reading,
    answers_option,
    check_file,
    out_option,
    reads_movie,
)
from bridgetrack.cli.sources import (
    collecting_warnings,
    files_behind,
    open_answers,
    open_scene,
    open_weights,
)
from bridgetrack.errors import InputError
from bridgetrack.export.may_write import sign

if TYPE_CHECKING:
    from bridgetrack.models.model import Model
    from bridgetrack.pipeline.scene import Scene
    from bridgetrack.progress import Progress
    from bridgetrack.training.options import TrainingOptions
    from bridgetrack.training.train import Training

ADVANCED = "Advanced options"


@reads_movie
def train(
    labels: Labels,
    out: Annotated[Path, out_option("MODEL.json", "File to write.")],
    *,
    annotations: Annotated[Path | None, answers_option("Answers to learn from.")] = None,
    image: Image = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            "--prior",
            metavar="MODEL",
            help="Weights to start from: a file, or a name in the library; without it the shipped "
            "ones.",
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option("--loss", metavar="NAME", help="bridge, hinge, ramp, max, ramp-delta, ..."),
    ] = "bridge",
    regularizer: Annotated[
        str, typer.Option("--regularizer", metavar="NAME", help="l2 or l1.")
    ] = "l2",
    strength: Annotated[
        str,
        typer.Option(
            "--lambda",
            metavar="auto|X",
            help="How close to stay to the starting weights; auto: by the number of annotations, "
            "from 300 on by cross-validation.",
        ),
    ] = "auto",
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            metavar="NAME",
            rich_help_panel=ADVANCED,
            help="n-slack, bundle, frank-wolfe, subgradient or perceptron; without it the quickest "
            "that applies.",
            show_default=False,
        ),
    ] = None,
    source: SourceFiles = None,
    strategy: StrategyName = None,
    rho: Rho = "auto",
    curriculum: Annotated[
        str | None,
        typer.Option(
            "--curriculum",
            metavar="NAME",
            rich_help_panel=ADVANCED,
            help="Learn from easy cells first: slack, entropy or novelty says what is easy.",
            show_default=False,
        ),
    ] = None,
    reading: Reading,
    json: Json = False,
) -> None:
    """Learn from a few annotations how the cells of a movie behave.

    Ctrl-C keeps the best model so far. The model is checked on annotations that it has not
    seen, and the starting weights are kept where they are better.
    """
    used = [path for given in (prior, *(source or ())) for path in files_behind(given)]
    check_file(out, labels, annotations, image, *used)
    options = _options(loss, regularizer, strength, learner=learner, curriculum=curriculum)
    notes: list[str] = []
    watch = Stopwatch()
    if annotations is None:
        needs_annotations(source, strategy)
    with collecting_warnings(notes):
        start = open_weights(prior)
        more = open_help(source, strategy, rho, start, watch)
        answers = open_answers(annotations)
        scene = open_scene(labels, image, answers, reading, notes, watch, named=annotations)
        training = learn(scene, start, options, out, watch, more)
    record = describe_training(training, out, watch, notes)
    if json:
        emit(record)
    else:
        say(*training_lines(record))


def _options(loss: str, regularizer: str, strength: str, **more: str | None) -> TrainingOptions:
    from bridgetrack.training.options import TrainingOptions

    try:
        number = None if strength == "auto" else float(strength)
        return TrainingOptions(loss=loss, regularizer=regularizer, strength=number, **more)  # type: ignore[arg-type]
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    except ValueError:
        raise typer.BadParameter(f"--lambda {strength!r} must be auto or a number") from None


def learn(
    scene: Scene,
    prior: Model | None,
    options: TrainingOptions,
    out: Path,
    watch: Stopwatch,
    more: Help | None = None,
) -> Training:
    """Train and save the model; after Ctrl-C, save the best one so far.

    Raises
    ------
    Stopped
        After Ctrl-C, once there was a model to save.
    """
    from bridgetrack.models.model import save_model
    from bridgetrack.training.train import TrainingProgress, train_steps

    best: list[Model] = []

    def remember(step: Progress) -> None:
        watch(step)
        if isinstance(step, TrainingProgress) and step.model is not None:
            best[:] = [step.model]

    try:
        if more is None:
            training = show(train_steps(scene, prior, options), remember)
        else:
            training = show(more.steps(scene, prior, options), remember)
    except KeyboardInterrupt:
        if not best:
            raise
        note = {"note": "training was interrupted; the best model so far"}
        partly = replace(best[0], name="trained", loss=options.loss, provenance=note)
        save_model(replace(partly, regularizer=options.regularizer), out)
        sign(out)
        raise Stopped(f"interrupted; the best model so far is in {out}") from None
    watch.stop()
    save_model(training.model, out)
    sign(out)
    return training


def describe_training(
    training: Training, out: Path, watch: Stopwatch, notes: list[str]
) -> dict[str, Any]:
    """What came of a training, as JSON values."""
    result, estimate = training.result, training.estimate
    return {
        "model": str(out),
        "kept": training.kept,
        "reason": training.reason,
        "annotations": training.n_annotations,
        "lambda": training.strength,
        "lambda_chosen_by": training.chosen_by,
        **_origin(training),
        "objective": _finite(result.objective),
        "gap": _finite(result.gap),
        "converged": result.converged,
        "estimate": None if estimate is None else estimate.to_json(),
        "estimate_words": None if estimate is None else estimate.words,
        "changes": {event: _change(training, event) for event in training.changes},
        "doubtful": [annotation.id for annotation in training.doubtful],
        "seconds": {stage: round(s, 3) for stage, s in watch.seconds.items()},
        "notes": list(dict.fromkeys([*notes, *map(str, training.notes)])),
    }


def _origin(training: Training) -> dict[str, Any]:
    """What a training used besides the annotations of its movie."""
    if not training.origin:
        return {}
    strategy, *sources = training.origin
    found: dict[str, Any] = {"strategy": strategy, "sources": sources}
    if training.transfer is not None:
        rho = training.transfer.tie.tie / max(training.n_annotations, 1)
        found["alone"] = training.transfer.tie.alone
        found["rho"] = None if training.transfer.tie.alone else _finite(rho)
    return found


def _change(training: Training, event: str) -> dict[str, int]:
    before, after = training.changes[event]
    gained, lost = training.exchanged[event]
    return {"before": before, "after": after, "gained": gained, "lost": lost}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def training_lines(record: dict[str, Any]) -> list[str]:
    """The same for people."""
    gap = "unknown" if record["gap"] is None else f"{record['gap']:.1e}"
    lines = [
        f"{plural(record['annotations'], 'annotation')} used, lambda {record['lambda']:g} "
        f"({record['lambda_chosen_by']}), gap {gap}",
        _reason(record),
    ]
    if record.get("sources"):
        lines.insert(0, f"{record['strategy']} from {', '.join(record['sources'])}")
    if record["estimate_words"]:
        lines.append(f"estimated accuracy: {record['estimate_words']}")
    lines.append(f"against the starting model: {_gained_and_lost(record['changes'])}")
    lines += note_lines(record["notes"])
    return [*lines, f"{sum(record['seconds'].values()):.1f} s; model: {record['model']}"]


def _reason(record: dict[str, Any]) -> str:
    """Why which weights were kept; says that the starting ones were, where the reason does not."""
    reason = str(record["reason"])
    if record["kept"] == "prior" and "kept" not in reason:
        return f"{reason}; so the starting model was kept, and the file holds its weights"
    return reason


def _gained_and_lost(changes: dict[str, dict[str, int]]) -> str:
    parts = [
        f"{event} {c['before']:,} -> {c['after']:,} ({c['gained']:,} gained, {c['lost']:,} lost)"
        for event, c in changes.items()
        if c["gained"] or c["lost"]
    ]
    return ", ".join(parts) or "the same events"
