"""``bridgetrack suggest``, ``annotate``, ``train`` and ``models``: learning from answers."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack import api
from bridgetrack.active.suggester import suggest_steps
from bridgetrack.active.suggestion import Suggestion, SuggestOptions
from bridgetrack.annotations.files import save_annotations
from bridgetrack.annotations.from_tracks import draw_annotations
from bridgetrack.cli.console import Answer, note_lines, reporting, show
from bridgetrack.cli.options import Reading
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, ModelError, Note, collecting_warnings, note_texts, plural
from bridgetrack.evaluation.truth import true_events
from bridgetrack.files import check_file, signed
from bridgetrack.io.ctc import read_ctc
from bridgetrack.models.library import SHIPPED, Library, find_model_file
from bridgetrack.models.model import save_model, shipped_model
from bridgetrack.pipeline.inputs import RunInputs, RunOptions, left_out, open_cells, open_model
from bridgetrack.pipeline.project import is_project, load_project
from bridgetrack.pipeline.scene import prepare
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.sources import Strategy
from bridgetrack.training.train import Training


def suggest(
    labels: Path,
    /,
    reading: Reading,
    options: Annotated[SuggestOptions, "random_share", "seed"],
    image: Path | None = None,
    model: Path | None = None,
    annotations: Path | None = None,
    count: int = 20,
    link_scores: Path | None = None,
) -> Answer:
    """List the events that are most worth annotating.

    The least certain events come first, no two of them neighbours; a share is drawn at random.
    """
    notes = left_out(labels, image)
    given = RunInputs(labels, image, model, annotations, link_scores, reading)
    with collecting_warnings(notes):
        opened = given.open()
        weights = opened.model or shipped_model()
        scene = show(opened.prepared())
        answered = len(scene.anchored.annotations)
        found = show(suggest_steps(scene, weights, count, options, answered=answered))
    record = {"suggestions": [s.to_json() for s in found], "notes": note_texts(notes)}
    lines = [line for k, s in enumerate(found, 1) for line in _suggested(k, s)]
    return Answer(record, [*(lines or ["no events are left to suggest"]), *note_lines(notes)])


def _suggested(number: int, s: Suggestion) -> list[str]:
    place = ", ".join(f"{p:.0f}" for p in s.position)
    only = s.margin == float("inf")
    sure = "nothing else is possible" if only else f"margin at least {s.margin:.2f}"
    return [
        f"{number:>3}. {s.question}",
        f"     frames {s.frame} and {s.last_frame}, at {place}; {sure}",
        f"     {s.reason}" if s.random else f"     because {s.reason}",
    ]


def annotate(
    labels: Path,
    /,
    ground_truth: Path,
    out: Path,
    reading: Annotated[RunOptions, "axes"],
    fraction: float | None = None,
    count: int | None = None,
    seed: int = 0,
    image: Path | None = None,
) -> Answer:
    """Write the annotations that a person who knows the ground truth would give.

    Detections are matched to the true cells by overlap. Events are drawn at random, and rare kinds
    are overrepresented. For experiments: how many annotations does a movie need?
    """
    if (fraction is None) == (count is None):
        raise typer.BadParameter("give one of --fraction and --count")
    check_file(out, labels, image, ground_truth)
    notes = list[Note]()
    with collecting_warnings(notes):
        cells, pixels = open_cells(labels, image, reading)
        truth = read_ctc(ground_truth)
        if isinstance(cells, Detections):
            raise InputError(f"{labels}: a table has no masks that could be compared; give masks")
        detections = show(prepare(cells, pixels)).detections
        events = true_events(detections, cells, truth.tracks, truth.labels)
        answers = draw_annotations(events, detections, count=count, fraction=fraction, seed=seed)
        with signed(out) as spare:
            save_annotations(answers, spare)
    counts = {event.key: number for event, number in answers.counts().items()}
    total = sum(counts.values())
    record = {"out": str(out), "annotations": total, "events": counts, "notes": note_texts(notes)}
    kinds = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    return Answer(record, [f"{plural(total, 'annotation')} ({kinds}) in {out}", *note_lines(notes)])


def train(
    labels: Path,
    /,
    out: Path,
    reading: Reading,
    options: Annotated[
        TrainingOptions, "loss", "regularizer", "lambda_", "learner", "curriculum", "treatment"
    ],
    annotations: Path | None = None,
    image: Path | None = None,
    prior: Path | None = None,
    source: list[Path] | None = None,
    strategy: Strategy | None = None,
    link_scores: Path | None = None,
) -> Answer:
    """Learn from a few annotations how the cells of a movie behave.

    The accuracy of the model is estimated on held-out annotations.
    """
    used = [path for given in (prior, *(source or ())) for path in _files_behind(given)]
    check_file(out, labels, annotations, image, link_scores, *used)
    if annotations is None and (not source or strategy in ("target", "prior", "delta")):
        raise typer.BadParameter(
            "--annotations is missing; it may only be left out with --source PROJECT"
        )
    notes, began = left_out(labels, image), time.perf_counter()
    for path in source or () if strategy in (None, "prior") else ():
        if not is_project(path):
            open_model(path)  # refused before the work where it cannot be used
    with collecting_warnings(notes), reporting() as report:
        training = api.train(
            labels, image, annotations, source or (), start=prior, link_scores=link_scores,
            strategy=strategy, options=options, progress=report, **reading.of_movie,
        ).training  # fmt: skip
    assert training is not None
    with signed(out) as spare:
        save_model(training.model, spare)
    origin = training.origin[:1]
    called = source[0] if source and origin in (("prior",), ("delta",)) else prior
    shipped = called is None or find_model_file(called) is None
    record = _training_record(training, out, began, notes, SHIPPED if shipped else str(called))
    return Answer(record, _training_lines(record, [*notes, *training.notes]))


def _files_behind(given: Path | None) -> tuple[Path, ...]:
    """The files that a model (also by its name in the library) or a project is read from."""
    if given is None:
        return ()
    if is_project(given):
        project = load_project(given)
        movies = (project.labels, project.image)
        return (given, *(movie.path for movie in movies if movie is not None))
    with suppress(ModelError):  # reported when it is opened
        file = find_model_file(given)
        return () if file is None else (file,)
    return (given,)


def _training_record(
    training: Training, out: Path, began: float, notes: Sequence[Note], prior: str
) -> dict[str, Any]:
    """The outcome of a training that started from the model `prior`, as JSON values."""
    result, estimate = training.result, training.estimate
    record = {
        "model": str(out),
        "prior": prior,
        "words": training.words,
        "annotations": training.n_annotations,
        "step": training.step,
        "lambda": training.lambda_,
        "objective": _finite(result.objective),
        "gap": _finite(result.gap),
        "converged": result.converged,
        "estimate": None if estimate is None else estimate.to_json(),
        "estimate_words": None if estimate is None else estimate.words,
        "changes": {
            event: dict(zip(("before", "after", "gained", "lost"), counts, strict=True))
            for event, counts in training.changes.items()
        },
        "unusual": [annotation.id for annotation in training.unusual],
        "seconds": round(time.perf_counter() - began, 3),
        "notes": note_texts([*notes, *training.notes]),
    }
    if training.origin:
        record |= {"strategy": training.origin[0], "sources": list(training.origin[1:])}
    if training.rho is not None:
        record["rho"] = _finite(training.rho)
    return record


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _training_lines(record: dict[str, Any], notes: Sequence[Note]) -> list[str]:
    prior = "the shipped model" if record["prior"] == SHIPPED else record["prior"]
    used = plural(record["annotations"], "annotation")
    lines = [f"{used} used, starting from {prior}", record["words"]]
    if record.get("sources"):
        lines.insert(0, f"{record['strategy']} from {', '.join(record['sources'])}")
    if record["estimate_words"]:
        lines.append(f"estimated accuracy: {record['estimate_words']}")
    changed = [
        f"{event} {c['before']:,} -> {c['after']:,} ({c['gained']:,} gained, {c['lost']:,} lost)"
        for event, c in record["changes"].items()
        if c["gained"] or c["lost"]
    ]
    lines.append(f"compared with the starting model: {', '.join(changed) or 'no event changed'}")
    return [*lines, *note_lines(notes), f"{record['seconds']:.1f} s; model: {record['model']}"]


# ---------------------------------------------------------------------- the library


def models() -> Answer:
    """List the models of the library, a folder of model files.

    A model file that is copied into the folder can be given by its name.
    """
    library, found = Library(), list[dict[str, str]]()
    for name in library.names():
        try:
            model = library.load(name)
            answers, right = model.provenance.get("annotations"), model.estimate.get("accuracy")
            words = f"learned from {answers} annotations" if answers else "learned"
            words += f", {right:.1%} right on held-out ones" if isinstance(right, float) else ""
            words = words if model.trained else "weights set by hand"
        except ModelError as error:
            words = f"damaged: {error}"
        found.append({"name": name, "file": str(library.file(name)), "words": words})
    lines = [f"{each['name']}: {each['words']}" for each in found] or ["no models"]
    record = {"folder": str(library.folder), "models": found}
    return Answer(record, [*lines, f"folder: {library.folder}"])
