"""``bridgetrack train``: learn weights from annotations, and from earlier movies and models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopped, Stopwatch, answer, note_lines, note_texts, show
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    LinkScoresFile,
    MovieOptions,
    Scheduler,
    Without,
    answers_option,
    check_file,
    make,
    one_option_each,
    out_option,
    parse_kinds,
    parse_positive,
    reads_movie,
)
from bridgetrack.cli.sources import (
    cluster_at,
    collecting_warnings,
    files_behind,
    open_answers,
    open_scene,
    open_weights,
)
from bridgetrack.io.may_write import signed
from bridgetrack.notes import Note, plural
from bridgetrack.training.options import TrainingOptions

if TYPE_CHECKING:
    from bridgetrack.models.model import Model
    from bridgetrack.progress import Progress, Steps
    from bridgetrack.training.outcome import Training
    from bridgetrack.training.sources import Source, Strategy

HOW = ("loss", "regularizer", "learner", "curriculum", "treatment")
"""What may be chosen about training, beside the strength of the regulariser."""
PANEL = "Earlier movies and models"

SourceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--source",
        metavar="MODEL|PROJECT",
        rich_help_panel=PANEL,
        help="A model (a file, or a name in the library), or a project file saved from the plugin "
        "(its movie with its answers); may be given several times.",
        show_default=False,
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        rich_help_panel=PANEL,
        help="What to do with the sources: transfer (without a word, for projects), union or "
        "source; prior (without a word, for a model) or delta.",
        show_default=False,
    ),
]
Rho = Annotated[
    str,
    typer.Option(
        "--rho",
        metavar="auto|X",
        rich_help_panel=PANEL,
        help="How tightly transfer ties the movies; auto: by the number of annotations.",
    ),
]


@one_option_each(TrainingOptions, *HOW, panel="Advanced options")
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
    lambda_: Annotated[
        str,
        typer.Option(
            "--lambda",
            metavar="auto|X",
            help="How close to stay to the starting weights; auto: by the number of annotations.",
        ),
    ] = "auto",
    source: SourceFiles = None,
    strategy: StrategyName = None,
    rho: Rho = "auto",
    without: Without = "",
    link_scores: LinkScoresFile = None,
    scheduler: Scheduler = None,
    reading: MovieOptions,
    json: Json = False,
    **how: Any,
) -> None:
    """Learn from a few annotations how the cells of a movie behave.

    Ctrl-C keeps the best model so far. How accurate the model is, is estimated on annotations
    that it has not seen.
    """
    from bridgetrack.training.train import strategy_steps

    used = [path for given in (prior, *(source or ())) for path in files_behind(given)]
    check_file(out, labels, annotations, image, link_scores, *used)
    options = make(TrainingOptions, lambda_=parse_positive(lambda_, "--lambda"), **how)
    notes: list[Note] = []
    kinds, watch = parse_kinds(without), Stopwatch()
    if annotations is None and (not source or strategy in ("target", "prior", "delta")):
        raise typer.BadParameter(
            "--annotations is missing; only with --source PROJECT can a movie do without"
        )
    with collecting_warnings(notes):
        with _nothing_learned(out):
            start, tie = open_weights(prior), parse_positive(rho, "--rho")
            name = _strategy(source or [], strategy, tie, start)
            sources = _open_sources(name, source or [], watch)
            called = _called(source[0] if source and name in ("prior", "delta") else prior)
            answers = open_answers(annotations)
            scene = open_scene(
                labels,
                image,
                answers,
                reading,
                notes,
                watch,
                named=annotations,
                kinds=kinds,
                link_scores=link_scores,
            )
        with cluster_at(scheduler) as workers:
            steps = strategy_steps(name, scene, sources, start, options, tie=tie, workers=workers)
            training = learn(steps, out, watch, options)
    record = describe_training(training, out, watch, notes, called)
    answer(json, record, lambda: training_lines(record, [*notes, *training.notes]))


def learn(
    steps: Steps[Training], out: Path, watch: Stopwatch, options: TrainingOptions | None = None
) -> Training:
    """Train and save the model; after Ctrl-C save the best one so far and raise `Stopped`."""
    from bridgetrack.training.outcome import TrainingProgress

    best: list[Model] = []

    def remember(step: Progress) -> None:
        watch(step)
        if isinstance(step, TrainingProgress) and step.model is not None:
            best[:] = [step.model]

    try:
        with _nothing_learned(out, best):
            training = show(steps, remember)
    except KeyboardInterrupt:
        options = options or TrainingOptions()
        note = {"note": "training was interrupted; the best model so far"}
        partly = replace(best[0], name="trained", loss=options.loss, provenance=note)
        _save(replace(partly, regularizer=options.regularizer), out)
        raise Stopped(
            f"interrupted; the best model so far is in {out}, not yet compared with the model "
            "that training began with"
        ) from None
    watch.stop()
    if _save(training.model, out):
        raise Stopped(f"interrupted; training was done, and its model is in {out}")
    return training


@contextmanager
def _nothing_learned(out: Path, best: Sequence[Model] = ()) -> Iterator[None]:
    """Say so after Ctrl-C, unless there is a model by then."""
    try:
        yield
    except KeyboardInterrupt:
        if best:
            raise
        left = "is as it was" if out.exists() else "was not written"
        raise Stopped(f"interrupted before anything was learned; {out} {left}") from None


def _save(model: Model, out: Path) -> bool:
    """Save a model whatever comes meanwhile, as it took long to learn; whether Ctrl-C did."""
    from bridgetrack.models.model import save_model

    def write() -> None:
        with signed(out) as spare:
            save_model(model, spare)

    try:
        write()
    except KeyboardInterrupt:
        write()
        return True
    return False


def _strategy(
    files: list[Path], strategy: str | None, tie: float | None, prior: Model | None
) -> Strategy:
    """What to do with the sources; refuses what can be seen to be wrong before they are opened."""
    from bridgetrack.pipeline.project import is_project
    from bridgetrack.training.sources import STRATEGIES

    known = next((name for name in STRATEGIES if name == strategy), None)
    if strategy is not None and known is None:
        raise typer.BadParameter(
            f"there is no strategy {strategy!r}; choose from {', '.join(STRATEGIES)}"
        )
    if not files:
        if known not in (None, "target"):
            raise typer.BadParameter(f"--strategy {strategy} needs a --source")
        if tie is not None:
            raise typer.BadParameter("--rho needs a --source that is a project file")
        return "target"
    projects = [is_project(path) for path in files]
    name: Strategy = known or ("transfer" if any(projects) else "prior")
    model = next((path for path, project in zip(files, projects, strict=True) if not project), None)
    movie = next((path for path, project in zip(files, projects, strict=True) if project), None)
    if name == "target":
        raise typer.BadParameter("--strategy target uses no --source; leave one of them out")
    if name in ("source", "union", "transfer") and model is not None:
        raise typer.BadParameter(
            f"--strategy {name} learns from annotated movies, and {model} is not a project file; "
            "a model goes with --strategy prior or delta"
        )
    if name in ("prior", "delta") and (movie is not None or len(files) > 1):
        what = f"{movie} is a project file" if movie is not None else f"{len(files)} were given"
        raise typer.BadParameter(
            f"--strategy {name} starts from one model file, and {what}; projects go with "
            "--strategy transfer or union"
        )
    if name == "prior" and prior is not None:
        raise typer.BadParameter(
            "--prior and --strategy prior with a --source both say where to start; give one"
        )
    if tie is not None and name != "transfer":
        raise typer.BadParameter(f"--rho goes with --strategy transfer, not with {name}")
    return name


def _open_sources(name: Strategy, files: list[Path], watch: Stopwatch) -> tuple[Source, ...]:
    from bridgetrack.models.model import Model, check_usable
    from bridgetrack.training.sources import open_source

    found = tuple(show(open_source(path), watch) for path in files)
    if name == "prior" and isinstance(found[0], Model):
        check_usable(found[0], files[0])
    return found


def _called(model: Path | None) -> str:
    """What a starting model was called: a file, a name in the library, or the shipped one."""
    from bridgetrack.models.library import SHIPPED, find_model_file

    return SHIPPED if model is None or find_model_file(model) is None else str(model)


def describe_training(
    training: Training, out: Path, watch: Stopwatch, notes: Sequence[Note], prior: str = "shipped"
) -> dict[str, Any]:
    """What came of a training that started from the model `prior`, as JSON values."""
    result, estimate = training.result, training.estimate
    return {
        "model": str(out),
        "prior": prior,
        "words": training.words,
        "annotations": training.n_annotations,
        "pseudo_answers": {"events": training.n_pseudo, "weight": training.pseudo_weight},
        "step": training.step,
        "lambda": training.lambda_,
        **_origin(training),
        "objective": _finite(result.objective),
        "gap": _finite(result.gap),
        "converged": result.converged,
        "estimate": None if estimate is None else estimate.to_json(),
        "estimate_words": None if estimate is None else estimate.words,
        "changes": {event: _change(training, event) for event in training.changes},
        "unusual": [annotation.id for annotation in training.unusual],
        "seconds": {stage: round(s, 3) for stage, s in watch.seconds.items()},
        "notes": note_texts([*notes, *training.notes]),
    }


def _origin(training: Training) -> dict[str, Any]:
    """What a training used besides the annotations of its movie."""
    if not training.origin:
        return {}
    strategy, *sources = training.origin
    found: dict[str, Any] = {"strategy": strategy, "sources": sources}
    if training.rho is not None:
        found["rho"] = _finite(training.rho)
    return found


def _change(training: Training, event: str) -> dict[str, int]:
    before, after = training.changes[event]
    gained, lost = training.exchanged[event]
    return {"before": before, "after": after, "gained": gained, "lost": lost}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def training_lines(record: dict[str, Any], notes: Sequence[Note]) -> list[str]:
    """The same for people."""
    from bridgetrack.models.library import SHIPPED

    gap = "unknown" if record["gap"] is None else f"{record['gap']:.1e}"
    prior = "the shipped model" if record["prior"] == SHIPPED else record["prior"]
    lines = [
        f"starts from {prior}",
        f"{plural(record['annotations'], 'annotation')} used, lambda {record['lambda']:g}, "
        f"gap {gap}",
        str(record["words"]),
    ]
    pseudo = record["pseudo_answers"]
    if pseudo["events"]:
        lines.append(
            f"{plural(pseudo['events'], 'pseudo-answer')} of the starting model, each with the "
            f"weight {pseudo['weight']:.2g}"
        )
    if record.get("sources"):
        lines.insert(0, f"{record['strategy']} from {', '.join(record['sources'])}")
    if record["estimate_words"]:
        lines.append(f"estimated accuracy: {record['estimate_words']}")
    lines.append(f"against the starting model: {_gained_and_lost(record['changes'])}")
    lines += note_lines(notes)
    return [*lines, f"{sum(record['seconds'].values()):.1f} s; model: {record['model']}"]


def _gained_and_lost(changes: dict[str, dict[str, int]]) -> str:
    parts = [
        f"{event} {c['before']:,} -> {c['after']:,} ({c['gained']:,} gained, {c['lost']:,} lost)"
        for event, c in changes.items()
        if c["gained"] or c["lost"]
    ]
    return ", ".join(parts) or "the same events"
