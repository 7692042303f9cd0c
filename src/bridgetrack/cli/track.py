"""``bridgetrack segment``, ``track``, ``run``, ``batch`` and ``demo``: from images to tracks."""

from __future__ import annotations

import json
import math
import textwrap
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from bridgetrack.annotations.files import load_mask_answers
from bridgetrack.cli.console import Answer, note_lines, show, table
from bridgetrack.cli.evaluate import evaluate
from bridgetrack.cli.options import cluster_at
from bridgetrack.cli.train import train
from bridgetrack.errors import Note, NoteKind, collecting_warnings, note_texts, plural
from bridgetrack.evaluation.scores import NO_SCORES, can_score
from bridgetrack.files import SAMPLE_SEQUENCE, refuse_inputs, sample_folder, signed
from bridgetrack.io.results import RUN_FILE
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.writers import label_writer
from bridgetrack.pipeline.batch import TABLE, batch_steps
from bridgetrack.pipeline.finding import CellSearch, Finding, record_beside, usual_choice
from bridgetrack.pipeline.inputs import RunInputs, RunOptions, open_answers, open_mask_answers
from bridgetrack.pipeline.runs import REPAIRS, masks_record, run_steps, write_json
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings
from bridgetrack.training.options import TrainingOptions


def segment(
    image: Path,
    /,
    out: Path,
    settings: SegmentationSettings,
    options: Annotated[RunOptions, "axes", "scale", "unit", "frame_interval", "channel"],
    choose: Choose | None = None,
    backend: Backend = "builtin",
    network: str | None = None,
    candidates: list[Path] | None = None,
    annotations: Path | None = None,
    scheduler: str | None = None,
) -> Answer:
    """Segment the cells of a movie; all settings are estimated unless given.

    Beside the labels it writes LABELS.run.json with the settings.
    """
    way = choose or usual_choice(backend)
    brought = candidates or []
    if way == "plain" and (annotations is not None or brought):
        raise typer.BadParameter(
            "--annotations and --candidates need candidates to choose from: --choose jointly"
        )
    record_file = record_beside(out)
    inputs = [image, None if network is None else Path(network), annotations, *brought]
    refuse_inputs([out, record_file], inputs)
    notes, began = list[Note](), time.perf_counter()
    with ExitStack() as places:  # the labels take theirs first, the record the last
        record_spare = places.enter_context(signed(record_file))
        spare = places.enter_context(signed(out))
        with collecting_warnings(notes), ExitStack() as cluster:
            movie = options.open_image(image)
            pixels = movie.n_frames * math.prod(movie.geometry.shape or ())
            pixels *= backend == "builtin"  # a network has a device of its own, or all cores
            client = cluster.enter_context(cluster_at(scheduler, pixels))
            how = Finding(
                settings, way, backend, network,
                beside=tuple(map(open_labels, brought)),
            )  # fmt: skip
            said = open_mask_answers(annotations, movie)
            found = CellSearch(movie, how, said, channel=options.channel, client=client)
            with label_writer(spare, movie.geometry) as write:
                show(found.steps(write))
        notes += _remarks(found)
        counts, seconds = found.counts, time.perf_counter() - began
        files = {
            "image": str(image),
            "network": network,
            "annotations": None if annotations is None else str(annotations),
            "labels": [str(path) for path in brought],
        }
        record = masks_record(files, out, found, notes)
        record |= {"frames": movie.n_frames, "seconds": round(seconds, 3)}
        write_json(record, record_spare)
    cells, frames = plural(sum(counts), "cell"), plural(movie.n_frames, "frame")
    lines = [
        f"{cells} in {frames} ({min(counts)} to {max(counts)} per frame)",
        *note_lines(notes),
        f"{seconds:.1f} s; labels: {out}",
    ]
    return Answer(record, lines)


def _remarks(done: CellSearch) -> list[Note]:
    """What may be wrong with a segmentation, and what to do about it."""
    movie, counts, found = done.movie, done.counts, []
    n = len(movie.channels)
    if n > 1:
        names = ", ".join(f"{k} ({name})" for k, name in enumerate(movie.channels))
        rgb = "; the colours of an RGB image are channels, too" if n in (3, 4) else ""
        found.append(
            f"{movie.source}: of the channels {names} only {done.channel} was segmented; choose "
            f"another with --channel{rgb}; if this axis is not channels, give the axis order with "
            "--axes"
        )
    if not any(counts):
        size = " x ".join(str(k) for k in movie.geometry.shape or ())
        found.append(
            f"{movie.source}: no cell was found in {plural(movie.n_frames, 'frame')} of "
            f"{size} pixels; check the channel (--channel), the axis order (--axes, e.g. TYX or "
            "TZYX), and whether cells are bright or dark (--foreground); otherwise segment with "
            "another program or --backend"
        )
    remarks = [Note(NoteKind.REMARK, words) for words in found]
    return remarks + [Note(NoteKind.WARNING, words) for words in done.doubts]


def track(
    labels: Path,
    /,
    out: Path,
    options: RunOptions,
    image: Path | None = None,
    model: Path | None = None,
    annotations: Path | None = None,
    scheduler: str | None = None,
    link_scores: Path | None = None,
) -> Answer:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything needed to
    repeat the run.
    """
    of_events = None if options.repair else annotations
    if of_events and not open_answers(of_events) and load_mask_answers(of_events):
        raise typer.BadParameter(
            f"--annotations {annotations}: these annotations are about masks and need --repair"
        )
    given = RunInputs(labels, image, model, annotations, link_scores, options)
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
    options: RunOptions,
    model: Path | None = None,
    labels: Path | None = None,
    choose: Choose = "jointly",
) -> Answer:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a result folder in DIR, and
    DIR/batch.csv lists all movies, the least certain first. If a movie fails, the others are still
    tracked, and the exit status is 1.
    """
    given = RunInputs(folder, model=model, options=options, command="batch")
    how = Finding(settings, choose)
    notes = list[Note]()
    with collecting_warnings(notes):
        rows = show(batch_steps(folder, out, given, masks=labels, how=how))
    failed, good = rows[rows["problem"] != ""], rows[rows["problem"] == ""]
    movies = json.loads(rows.to_json(orient="records"))
    record = {"table": str(out / TABLE), "movies": movies, "failed": len(failed)}
    record["notes"] = note_texts(notes)
    problem = ""
    if len(failed):
        whys = [f"{m['movie']}: {m['problem']}" for m in movies if m["problem"]]
        problem = "\n".join([f"{len(failed)} of {plural(len(rows), 'movie')} failed", *whys])
    shown = ["movie", "cells", "tracks", "divisions", "certainty", "doubtful"]
    lines = table(good[shown]) if len(good) else []
    lines += [f"warning: {m['movie']}: {m['warnings']}" for m in movies if m["warnings"]]
    lines += note_lines(notes)
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
    left = (f"{a['id']} was not used: {a['reason']}" for a in (*use["lost"], *use["unused"]))
    notes = [*notes, *(Note(NoteKind.UNUSED, f"annotation {words}") for words in left)]
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

    This is what the commands segment, track, train and evaluate do one after another. Without
    the packages that scores need, nothing is scored.
    """
    scored = can_score()
    sample = sample_folder()
    image, truth = sample / SAMPLE_SEQUENCE, sample / f"{SAMPLE_SEQUENCE}_GT"
    clicks, labels, model = sample / "annotations.json", out / "labels.tif", out / "model.json"
    results = {"untrained": out / "untrained", "trained, with annotations": out / "result"}
    before, after = results.values()
    plain, every = RunOptions(), RunOptions(format=("csv", "ctc", "geff", "lineage"))
    segment(image, labels, SegmentationSettings(), plain)
    track(labels, before, plain, image)
    learned = train(labels, model, plain, TrainingOptions(), clicks, image)
    done = track(labels, after, every, image, model, clicks)
    lines = [*learned.lines, "", *done.lines, ""]
    record = {"run": done.record, "training": learned.record}
    if not scored:
        return Answer(record, [*lines, f"note: not scored: {NO_SCORES}"])
    scores = {name: evaluate(result, truth).record for name, result in results.items()}
    figures = ["edge_f1", "division_f1", "tra", "ct"]
    compared = pd.DataFrame([{"": name, **scores[name]} for name in scores])[["", *figures]]
    # beside these, an estimate of right events looks far too good
    why = "These scores count cells that were not found, or share a mask, as errors of the tracks."
    return Answer(record | {"scores": scores}, [*lines, *table(compared), "", why])
