"""``bridgetrack explain``: why a link was chosen, or why not."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from bridgetrack import api
from bridgetrack.annotations.annotation_set import AnswerHistory
from bridgetrack.cli.console import answer, reporting, show
from bridgetrack.cli.options import Image, Json, answers_option
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.notes import collecting_warnings
from bridgetrack.pipeline.inputs import (
    RunInputs,
    open_answers,
    open_files,
    open_weights,
)
from bridgetrack.pipeline.project import load_project, run_project
from bridgetrack.pipeline.result_folder import given_run
from bridgetrack.pipeline.summary import Explanation, explain_event, find_event
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import near

Kind = Literal["move", "divide", "split", "merge", "appear", "disappear", "skip", "false"]


def explain(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT_DIR|LABELS",
            help="Folder that `bridgetrack track` wrote, or the labels to track.",
            show_default=False,
        ),
    ],
    frame: Annotated[
        int, typer.Option("--frame", metavar="T", help="Frame of the cell.", show_default=False)
    ],
    cell: Annotated[
        int, typer.Option("--cell", metavar="LABEL", help="Label of the cell.", show_default=False)
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="LABEL[,LABEL]",
            help="Cells in the next frame: explains the link to them, whether chosen or not.",
        ),
    ] = None,
    event: Annotated[
        Kind | None,
        typer.Option("--event", metavar="NAME", help="Kind of event to explain, e.g. divide."),
    ] = None,
    image: Image = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="MODEL", help="Model file, or a name in the library."),
    ] = None,
    annotations: Annotated[
        Path | None,
        answers_option("Annotations that the tracks must agree with."),
    ] = None,
    json: Json = False,
) -> None:
    """Explain what happens to a cell, feature by feature, against the best alternative.

    Without --to and --event it explains the event that was chosen. With RESULT_DIR, it uses the
    image, model and annotations of that run.
    """
    targets = _labels(to)
    given = given_run(source, image, model, annotations)
    with collecting_warnings([]):
        tracking = near(tracked_again(given), frame)
        if targets or event is not None:
            column = _column(tracking, frame, cell, targets, event)
        else:
            column = find_event(tracking, frame, cell)
        explanation = explain_event(tracking, column)
    answer(json, _to_json(explanation), lambda: [explanation.words(8)])


def _to_json(found: Explanation) -> dict[str, Any]:
    return {
        "event": found.event,
        "was_chosen": found.was_chosen,
        "chosen": list(found.kept),
        "alternative": list(found.replaced_by),
        "margin": found.margin if math.isfinite(found.margin) else None,
        "contributions": [{**asdict(c), "contribution": c.value} for c in found.contributions],
        "words": found.words(8),
    }


def _labels(text: str | None) -> tuple[int, ...]:
    try:
        labels = () if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        labels = (0, 0, 0)
    if len(labels) > 2:
        raise typer.BadParameter(f"--to {text!r} must be one label, or two separated by a comma")
    return labels


def tracked_again(given: RunInputs) -> Tracking:
    """Track what a run was given, once more."""
    weights, answers = open_weights(given.model), open_answers(given.annotations)
    if given.project is not None:
        project = load_project(given.project)
        history = project.history if answers is None else AnswerHistory(answers)
        project = replace(project, model=weights or project.model, history=history)
        return show(run_project(project))
    cells, pixels = open_files(given.labels, given.image, given.reading, [])
    with reporting() as report:
        return api.track(
            cells, pixels, weights, answers, without=given.without, memory=given.memory,
            window=given.window, link_scores=given.link_scores, progress=report,
        )  # fmt: skip


def _column(
    tracking: Tracking, frame: int, cell: int, targets: tuple[int, ...], event: str | None
) -> int:
    """The best-scored hypothesis of this kind between these cells."""
    detections, hypotheses = tracking.scene.detections, tracking.scene.hypotheses
    row = detections.row_of(frame, cell)
    fits = (hypotheses.sources == row).any(axis=1)
    if event == "appear":
        fits = (hypotheses.targets == row).any(axis=1)
    for label in targets:
        fits &= (hypotheses.targets == detections.row_of(frame + 1, label)).any(axis=1)
    if targets:
        fits &= (hypotheses.targets >= 0).sum(axis=1) == len(targets)
    if event is not None:
        fits &= hypotheses.event == Event.from_key(event)
    columns = np.flatnonzero(fits)
    if not len(columns):
        raise InputError(
            f"no such event was proposed for cell {cell} in frame {frame}: the cells are too far "
            "apart, or others are much nearer; to add it, annotate the event"
        )
    return int(columns[np.argmax(tracking.scores[columns])])
