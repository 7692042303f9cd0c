"""``bridgetrack evaluate``, ``check`` and ``explain``: accuracy of a result, reasons of events."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import typer

from bridgetrack.cli.console import Answer, show, table
from bridgetrack.errors import InputError, collecting_warnings, plural
from bridgetrack.evaluation.sample import (
    Sample,
    SampleOptions,
    draw_sample,
    read_sample,
    write_sample,
)
from bridgetrack.evaluation.scores import SPARSE
from bridgetrack.evaluation.scores import evaluate as score
from bridgetrack.files import check_file, is_ours, sign, signed, write_text
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.results import METHODS, RUN_FILE, read_tracks
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.explain import explain_event, find_event
from bridgetrack.pipeline.inputs import is_table, open_cells
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.report import with_checked
from bridgetrack.pipeline.runs import given_run, write_json
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.windows import near

Kind = Literal["move", "divide", "split", "merge", "appear", "disappear", "skip", "false"]


def evaluate(
    result: Path, /, ground_truth: Path, labels: Path | None = None, sparse: bool = False
) -> Answer:
    """Score tracks with py-ctcmetrics and traccuracy."""
    scores = score(result, ground_truth, labels=_masks(result, labels), sparse=sparse)
    known = scores.to_dict()
    figures = {name: value for name, value in known.items() if isinstance(value, float)}
    sparse_too = ["yes" if name in SPARSE else "no" for name in figures]
    rows = {"score": [*figures], "": [*figures.values()], "valid for sparse truth": sparse_too}
    size = f"the truth has {scores.n_cells:,} cells, {scores.n_edges:,} edges and "
    lines = [
        *table(pd.DataFrame(rows)),
        f"{size}{plural(scores.n_divisions, 'division')}",
        *(f"note: {note}" for note in scores.notes),
    ]
    return Answer(known, lines)


def _masks(result: Path, labels: Path | None) -> Movie | None:
    """The tracked label movie, opened as the run did: the given one, or that of ``run.json``."""
    if labels is None and (result / "ctc").is_dir():
        return None
    try:
        given = given_run(result)
    except InputError:
        return None if labels is None else open_labels(labels)
    if labels is not None:
        alike = labels.suffix == given.labels.suffix  # else it may be the same in another form
        return open_labels(labels, axes=given.options.axes if alike else None)
    if is_table(given.labels) or not given.labels.exists():
        return None
    if given.project is not None and given.project.exists():
        cells = load_project(given.project).cells()
    else:
        cells, _ = open_cells(given.labels, options=given.options)
    return cells if isinstance(cells, Movie) else None


# ------------------------------------------------------------------ check


def check(
    result: Path, /, options: SampleOptions, out: Path | None = None, judged: Path | None = None
) -> Answer:
    """Estimate how accurate a result is, from random events that you judge.

    With --out, it writes a table of random events, one per row. With --judged, it reads your
    judgements from this table, prints a sentence for the methods section, and adds it to
    methods.txt and run.json of the result.
    """
    if (out is None) == (judged is None):
        raise typer.BadParameter(
            "give either --out, to draw events to judge, or --judged with the completed table"
        )
    tracks = read_tracks(result)
    if judged is not None:
        return _judged(read_sample(judged, tracks), result, judged)
    assert out is not None
    check_file(out, *(result, *(p for p in result.glob("*") if p.is_file())))
    sample = draw_sample(tracks, options)
    with signed(out) as spare:
        write_sample(sample, spare)
    record = {"sample": str(out), "count": len(sample.events), "population": sample.population}
    lines = [
        f"{plural(len(sample.events), 'event')} drawn at random from {sample.population:,} "
        f"({options.of}): {out}",
        "Look at each event in the movie, write yes, no or ? into the last column, then run: "
        f"bridgetrack check {result} --judged {out}",
    ]
    return Answer(record, lines)


def _judged(sample: Sample, result: Path, judged: Path) -> Answer:
    """The outcome of a sample; added to the result of a run."""
    accuracy = sample.accuracy
    if accuracy is None:
        raise InputError(
            f"{judged}: no event is judged yet; write yes or no into the column 'right' of every "
            "row"
        )
    left, run, methods = len(sample.left), result / RUN_FILE, result / METHODS
    keep = not left and run.is_file() and methods.is_file()
    lines = [f"{accuracy.words}."]
    if left:
        lines.append(
            f"note: {left} of {len(sample.events)} events are not judged yet, so this estimate "
            "is not valid: without the difficult events it is too high; write ? if you cannot "
            f"tell; {METHODS} is not changed until all rows are filled in"
        )
    if keep:
        ours, known = is_ours(result), json.loads(run.read_text(encoding="utf-8"))
        text = with_checked(methods.read_text(encoding="utf-8"), sample)
        write_text(methods, text, "the methods")
        write_json(known | {"checked": accuracy.to_json()}, run)
        if ours:
            sign(result)
        lines.append(f"added to {METHODS} and {RUN_FILE} in {result}")
    return Answer({**accuracy.to_json(), "left": left, "kept": keep}, lines)


# ------------------------------------------------------------------ explain


def explain(
    result: Path, /, frame: int, cell: int, to: str | None = None, event: Kind | None = None
) -> Answer:
    """Explain what happens to a cell, feature by feature, against the best alternative.

    Without --to and --event it explains the event that was chosen. The movie is tracked again with
    the image, model and annotations of the run whose result this is.
    """
    targets = _labels(to)
    with collecting_warnings([]):
        tracking = near(show(given_run(result).open().tracked()), frame)
        if targets or event is not None:
            column = _column(tracking, frame, cell, targets, event)
        else:
            column = find_event(tracking, frame, cell)
        found = explain_event(tracking, column)
    record = {
        "event": found.event,
        "was_chosen": found.was_chosen,
        "chosen": list(found.kept),
        "alternative": list(found.replaced_by),
        "margin": found.margin if math.isfinite(found.margin) else None,
        "contributions": [c._asdict() for c in found.contributions],
        "words": found.words(8),
    }
    return Answer(record, [found.words(8)])


def _labels(text: str | None) -> tuple[int, ...]:
    try:
        labels = () if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        labels = (0, 0, 0)
    if len(labels) > 2:
        raise typer.BadParameter(f"--to {text!r} must be one label, or two separated by a comma")
    return labels


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
