"""``bridgetrack track``, ``run``, ``batch`` and ``demo``: from labels or images to tracks."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from bridgetrack.annotations.files import load_mask_answers
from bridgetrack.cli.console import Answer, note_lines, show, table
from bridgetrack.cli.evaluate import evaluate
from bridgetrack.cli.options import cluster_at, parse_channel, parse_formats, parse_kinds
from bridgetrack.cli.segment import segment
from bridgetrack.cli.train import train
from bridgetrack.errors import Note, plural
from bridgetrack.files import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.io.results import RUN_FILE
from bridgetrack.models.library import find_model_file
from bridgetrack.pipeline.batch import TABLE, batch_steps
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.runs import REPAIRS, OpenOptions, RunInputs, open_answers, run_steps
from bridgetrack.segmentation.settings import Choose, SegmentationSettings
from bridgetrack.training.options import TrainingOptions


def track(
    labels: Path,
    /,
    out: Path,
    reading: OpenOptions,
    image: Path | None = None,
    model: Path | None = None,
    annotations: Path | None = None,
    format: str = "csv",
    repair: bool = False,
    channel: str | None = None,
    memory: str | None = None,
    window: int | None = None,
    scheduler: str | None = None,
    without: str = "",
    link_scores: Path | None = None,
) -> Answer:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything needed to
    repeat the run.
    """
    of_events = None if repair else annotations
    if of_events and not open_answers(of_events) and load_mask_answers(of_events):
        raise typer.BadParameter(
            f"--annotations {annotations}: these annotations are about masks and need --repair"
        )
    given = RunInputs(
        labels, image, None if model is None else find_model_file(model), annotations, reading,
        parse_formats(format), repair=repair, without=parse_kinds(without).words,
        link_scores=link_scores, channel=parse_channel(channel), memory=memory, window=window,
    )  # fmt: skip
    with cluster_at(scheduler) as client:
        _, record, notes = show(run_steps(given, out, client=client))
    return _run_answer(record, notes)


def run(project: Path, /, out: Path) -> Answer:
    """Track the movie of a project with its model, annotations and export formats.

    The result is the same as that of the plugin's export, with run.json in addition.
    """
    _, record, notes = show(run_steps(RunInputs.of_project(project), out))
    return _run_answer(record, notes)


def batch(
    folder: Path,
    /,
    out: Path,
    settings: Annotated[SegmentationSettings, "diameter"],
    reading: OpenOptions,
    model: Path | None = None,
    labels: Path | None = None,
    format: str = "csv",
    choose: Choose = "jointly",
    channel: str | None = None,
    repair: bool = False,
    without: str = "",
    memory: str | None = None,
) -> Answer:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a result folder in DIR, and
    DIR/batch.csv lists all movies, the least certain first. If a movie fails, the others are still
    tracked, and the exit status is 1.
    """
    given = RunInputs(
        folder, None, None if model is None else find_model_file(model), None, reading,
        parse_formats(format), channel=parse_channel(channel), repair=repair,
        without=parse_kinds(without).words, memory=memory,
    )  # fmt: skip
    how = Finding(settings, choose)
    rows = show(batch_steps(folder, out, given, masks=labels, how=how))
    failed, good = rows[rows["problem"] != ""], rows[rows["problem"] == ""]
    movies = json.loads(rows.to_json(orient="records"))
    record = {"table": str(out / TABLE), "movies": movies, "failed": len(failed)}
    problem = ""
    if len(failed):
        many = f"{len(failed)} of {plural(len(rows), 'movie')} failed"
        first = movies[-len(failed)]  # failed ones come last
        problem = f"{many}; {first['movie']}: {first['problem']}"
    shown = ["movie", "cells", "tracks", "divisions", "certainty", "doubtful"]
    lines = table(good[shown]) if len(good) else []
    lines += [f"warning: {m['movie']}: {m['warnings']}" for m in movies if m["warnings"]]
    lines.append(f"{plural(len(good), 'movie')} tracked; table: {out / TABLE}")
    return Answer(record, lines, problem)


# ------------------------------------------------------------------ what is shown


def _run_answer(record: dict[str, Any], notes: Sequence[Note]) -> Answer:
    """The record of a run, and its counts, least certain events and files in words."""
    repair, events = record.get("repair"), record["least_certain"]
    use = record["annotations"]
    lines = textwrap.wrap(record["words"], 100)
    if repair is not None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in repair.items())
        changed = f"{plural(sum(repair.values()), 'change')} ({kinds}), see {REPAIRS}"
        lines.append(f"labels repaired: {changed if repair else 'no changes needed'}")
    left = [*use["lost"], *use["unused"]]
    lines += [f"annotation {item['id']} was not used: {item['reason']}" for item in left[:5]]
    if len(left) > 5:
        lines.append(f"{len(left) - 5} more annotations were not used, see {RUN_FILE}")
    if events:
        lines.append("least certain events (margin to the best alternative):")
    for event in events:
        bound = "at least " if "at_least" in event else ""
        lines.append(f"  {bound}{event['margin']:.3f}  {event['words']}")
    files = ", ".join([*record["files"], RUN_FILE])
    lines += [*note_lines(notes), f"{record['seconds']:.1f} s; files in {record['out']}: {files}"]
    return Answer(record, lines)


# ------------------------------------------------------------------ the demo


def demo(out: Path = Path("demo")) -> Answer:
    """Segment and track the sample movie, train, track again, and score both results.

    This is what the commands segment, track, train and evaluate do one after another.
    """
    sample = sample_folder()
    image, truth = sample / SAMPLE_SEQUENCE, sample / f"{SAMPLE_SEQUENCE}_GT"
    clicks, labels, model = sample / "annotations.json", out / "labels.tif", out / "model.json"
    results = {"untrained": out / "untrained", "trained, with annotations": out / "result"}
    before, after = results.values()
    reading = OpenOptions()
    segment(image, labels, SegmentationSettings(), reading)
    track(labels, before, reading, image)
    learned = train(labels, model, reading, TrainingOptions(), clicks, image)
    done = track(labels, after, reading, image, model, clicks, "csv,ctc,geff,lineage")
    scores = {name: evaluate(result, truth).record for name, result in results.items()}
    figures = ["edge_f1", "division_f1", "tra", "ct"]
    scored = pd.DataFrame([{"": name, **scores[name]} for name in scores])[["", *figures]]
    lines = [*learned.lines, "", *done.lines, "", *table(scored)]
    return Answer({"run": done.record, "training": learned.record, "scores": scores}, lines)
