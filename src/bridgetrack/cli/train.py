"""``bridgetrack train`` and ``models``: learn weights, and the model library."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack import api
from bridgetrack.cli.console import Stopped, answer, note_lines, reporting
from bridgetrack.cli.options import (
    Image,
    Json,
    Labels,
    LinkScoresFile,
    Without,
    a_name,
    answers_option,
    files_behind,
    make,
    one_option_each,
    open_scene,
    out_option,
    parse_kinds,
    reads_movie,
)
from bridgetrack.errors import ModelError
from bridgetrack.io.may_write import check_file, signed
from bridgetrack.models.library import SHIPPED, Library, find_model, find_model_file
from bridgetrack.models.model import Model, check_usable, load_model, save_model
from bridgetrack.notes import Note, NoteKind, collecting_warnings, note_texts, plural
from bridgetrack.pipeline.inputs import Reading, open_weights
from bridgetrack.pipeline.project import is_project
from bridgetrack.progress import Progress
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training, TrainingProgress
from bridgetrack.training.sources import Strategy

HOW = ("loss", "regularizer", "learner", "curriculum", "treatment")
"""Fields of the training options that have an option, besides ``--lambda``."""
PANEL = "Earlier movies and models"

SourceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--source",
        metavar="MODEL|PROJECT",
        rich_help_panel=PANEL,
        help="A model (file or name in the library), or a project file saved from the plugin "
        "(a movie with its annotations); can be given several times.",
        show_default=False,
    ),
]
StrategyName = Annotated[
    Strategy | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        rich_help_panel=PANEL,
        help="How to use the sources: transfer (default for projects), union or source; prior "
        "(default for a model) or delta.",
        show_default=False,
    ),
]


@one_option_each(TrainingOptions, *HOW, panel="Advanced options")
@reads_movie
def train(
    labels: Labels,
    out: Annotated[Path, out_option("MODEL.json", "File to write.")],
    *,
    annotations: Annotated[Path | None, answers_option("Annotations to learn from.")] = None,
    image: Image = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            "--prior",
            metavar="MODEL",
            help="Model to start from: a file or a name in the library; by default the shipped "
            "model.",
            parser=a_name,
        ),
    ] = None,
    lambda_: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            metavar="X",
            help="Strength of the regulariser: how close to stay to the starting weights; by "
            "default it depends on the number of annotations.",
        ),
    ] = None,
    source: SourceFiles = None,
    strategy: StrategyName = None,
    without: Without = "",
    link_scores: LinkScoresFile = None,
    reading: Reading,
    json: Json = False,
    **how: Any,
) -> None:
    """Learn from a few annotations how the cells of a movie behave.

    Ctrl-C saves the best model so far. The accuracy of the model is estimated on held-out
    annotations.
    """
    used = [path for given in (prior, *(source or ())) for path in files_behind(given)]
    check_file(out, labels, annotations, image, link_scores, *used)
    options = make(TrainingOptions, lambda_=lambda_, **how)
    if annotations is None and (not source or strategy in ("target", "prior", "delta")):
        raise typer.BadParameter(
            "--annotations is missing; it may only be left out with --source PROJECT"
        )
    notes, began, kinds = list[Note](), time.perf_counter(), parse_kinds(without)

    def work(report: api.Report) -> Training:
        start = open_weights(prior)
        sources = [_source(path, strategy) for path in source or ()]
        scene = open_scene(
            labels, image, annotations, reading, notes, kinds=kinds,
            link_scores=link_scores,
        )  # fmt: skip
        learned = api.train(
            scene, sources=sources, start=start, strategy=strategy, options=options, progress=report
        )
        assert learned.training is not None
        return learned.training

    with collecting_warnings(notes):
        training = learn(work, out, options)
    notes += _doubts(training)
    origin = training.origin[:1]
    called = source[0] if source and origin in (("prior",), ("delta",)) else prior
    record = describe_training(training, out, began, notes, _called(called))
    answer(json, record, lambda: training_lines(record, [*notes, *training.notes]))


def _source(path: Path, strategy: Strategy | None) -> Path | Model:
    """A project file as it is, or a model, which is refused early where it cannot be used."""
    if is_project(path):
        return path
    model = find_model(path)
    return check_usable(model, path) if strategy in (None, "prior") else model


def learn(
    work: Callable[[api.Report], Training],
    out: Path,
    options: TrainingOptions | None = None,
) -> Training:
    """Train and save the model; after Ctrl-C save the best one so far and raise `Stopped`."""
    best: list[Model] = []
    options = options or TrainingOptions()
    try:
        with reporting() as report:

            def remember(step: Progress) -> None:
                report(step)
                if isinstance(step, TrainingProgress) and step.model is not None:
                    best[:] = [step.model]

            training = work(remember)
    except KeyboardInterrupt:
        if not best:
            left = "is unchanged" if out.exists() else "was not written"
            raise Stopped(f"interrupted before anything was learned; {out} {left}") from None
        note = {"note": "training was interrupted; the best model so far"}
        partly = replace(best[0], name="trained", loss=options.loss, provenance=note)
        _save(replace(partly, regularizer=options.regularizer), out)
        raise Stopped(f"interrupted; the best model so far is in {out}") from None
    _save(training.model, out)
    return training


def _save(model: Model, out: Path) -> None:
    with signed(out) as spare:
        save_model(model, spare)


def _doubts(training: Training) -> list[Note]:
    """A warning where the model is wrong more often than not."""
    estimate = training.estimate
    if estimate is None:
        return []
    right = sum(count for *_, count in estimate.per_event) / max(estimate.n_annotations, 1)
    if right >= 0.5:
        return []
    return [
        Note(
            NoteKind.WARNING,
            f"on held-out annotations the model is wrong in {100 * (1 - right):.0f} % of the "
            "cases: do not use it; check that the annotations belong to these labels, and that "
            "most labels are single cells",
        )
    ]


def _called(model: Path | None) -> str:
    """The name of a starting model: a file, a name in the library, or the shipped one."""
    return SHIPPED if model is None or find_model_file(model) is None else str(model)


def describe_training(
    training: Training, out: Path, began: float, notes: Sequence[Note], prior: str = "shipped"
) -> dict[str, Any]:
    """The outcome of a training that started from the model `prior`, as JSON values."""
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
        "seconds": round(time.perf_counter() - began, 3),
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
    gap = "unknown" if record["gap"] is None else f"{record['gap']:.1e}"
    prior = "the shipped model" if record["prior"] == SHIPPED else record["prior"]
    lines = [
        f"starting model: {prior}",
        f"{plural(record['annotations'], 'annotation')} used, lambda {record['lambda']:g}, "
        f"gap {gap}",
        str(record["words"]),
    ]
    pseudo = record["pseudo_answers"]
    if pseudo["events"]:
        lines.append(
            f"{plural(pseudo['events'], 'pseudo-answer')} of the starting model, each with "
            f"weight {pseudo['weight']:.2g}"
        )
    if record.get("sources"):
        lines.insert(0, f"{record['strategy']} from {', '.join(record['sources'])}")
    if record["estimate_words"]:
        lines.append(f"estimated accuracy: {record['estimate_words']}")
    lines.append(f"against the starting model: {_gained_and_lost(record['changes'])}")
    lines += note_lines(notes)
    return [*lines, f"{record['seconds']:.1f} s; model: {record['model']}"]


def _gained_and_lost(changes: dict[str, dict[str, int]]) -> str:
    parts = [
        f"{event} {c['before']:,} -> {c['after']:,} ({c['gained']:,} gained, {c['lost']:,} lost)"
        for event, c in changes.items()
        if c["gained"] or c["lost"]
    ]
    return ", ".join(parts) or "the same events"


# ---------------------------------------------------------------------- the library

models = typer.Typer(
    name="models",
    help="List, add, remove and show the models of the model library.",
    no_args_is_help=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a model.", show_default=False)]


@models.command(name="list")
def list_(json: Json = False) -> None:
    """List the models of the library, a folder of model files."""
    library, found, lines = Library(), list[dict[str, Any]](), list[str]()
    for name in library.names():
        try:
            record = _described(name, library.file(name), library.load(name))
            lines.append(f"{name}: {_learned_from(record)}")
        except ModelError as error:
            record = {"name": name, "file": str(library.file(name)), "damaged": str(error)}
            lines.append(f"{name}: damaged: {error}")
        found.append(record)
    lines.append(f"folder: {library.folder}" if found else f"no models in {library.folder}")
    answer(json, {"folder": str(library.folder), "models": found}, lambda: lines)


@models.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar="MODEL.json", help="Model file.", show_default=False)
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Name in the library; by default the file name."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Copy a model file into the library, so that it can be given by name."""
    kept = Library().add(check_usable(load_model(file), file), file.stem if name is None else name)
    answer(json, {"name": kept.stem, "file": str(kept)}, lambda: [f"added as {kept.stem}: {kept}"])


@models.command()
def remove(name: Name, json: Json = False) -> None:
    """Delete the file of a model in the library."""
    file = Library().remove(name)
    answer(json, {"name": name, "file": str(file)}, lambda: [f"removed {name}: {file}"])


@models.command()
def show(name: Name, json: Json = False) -> None:
    """Describe a model: a name in the library, or a file."""
    file, model = find_model_file(name), find_model(name)
    record = _described(name, file, model)
    record["weights"] = dict(zip(model.keys, model.weights.tolist(), strict=True))

    def lines() -> list[str]:
        estimate = record["estimate"]
        told = [f"{name}: {_learned_from(record)}"]
        if estimate:
            told.append(
                "estimated accuracy: {accuracy:.1%} (95% interval {low:.1%} to {high:.1%})".format(
                    **estimate
                )
            )
        return told if file is None else [*told, f"file: {file}"]

    answer(json, record, lines)


def _described(name: str, file: Path | None, model: Model) -> dict[str, Any]:
    """A model as JSON values."""
    known = {key: model.estimate.get(key) for key in ("accuracy", "low", "high")}
    numbers = all(isinstance(value, int | float) for value in known.values())
    return {
        "name": name,
        "file": None if file is None else str(file),
        "loss": model.loss,
        "lambda": model.strength,
        "annotations": model.provenance.get("annotations"),
        "estimate": known if numbers else None,
        "damaged": None,
    }


def _learned_from(record: dict[str, Any]) -> str:
    if record["loss"] is None:
        return "weights set by hand"
    answers = record["annotations"]
    learned = f"learned from {answers} annotations" if answers else "learned"
    return f"{learned}, loss {record['loss']}"
