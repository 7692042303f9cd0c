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
from bridgetrack.cli.options import cluster_at, parse_channel, parse_formats, parse_kinds
from bridgetrack.cli.train import train
from bridgetrack.errors import Note, NoteKind, collecting_warnings, note_texts, plural
from bridgetrack.evaluation.scores import NO_SCORES, can_score
from bridgetrack.files import SAMPLE_SEQUENCE, refuse_inputs, sample_folder, signed
from bridgetrack.io.results import RUN_FILE
from bridgetrack.models.library import find_model_file
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.writers import label_writer
from bridgetrack.pipeline.batch import TABLE, batch_steps
from bridgetrack.pipeline.finding import (
    Finding,
    FoundMasks,
    find_masks,
    record_beside,
    usual_choice,
)
from bridgetrack.pipeline.runs import (
    REPAIRS,
    OpenOptions,
    RunInputs,
    masks_record,
    open_answers,
    open_mask_answers,
    run_steps,
    write_json,
)
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings
from bridgetrack.training.options import TrainingOptions


def segment(
    image: Path,
    /,
    out: Path,
    settings: SegmentationSettings,
    reading: Annotated[OpenOptions, "axes", "scale", "unit", "frame_interval"],
    choose: Choose | None = None,
    backend: Backend = "builtin",
    network: str | None = None,
    candidates: list[Path] | None = None,
    annotations: Path | None = None,
    channel: str | None = None,
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
    notes, began, number = list[Note](), time.perf_counter(), parse_channel(channel)
    with ExitStack() as places:  # the labels take theirs first, the record the last
        record_spare = places.enter_context(signed(record_file))
        spare = places.enter_context(signed(out))
        with collecting_warnings(notes), ExitStack() as cluster:
            movie = reading.open_image(image)
            pixels = movie.n_frames * math.prod(movie.geometry.shape or ())
            pixels *= backend == "builtin"  # a network has a device of its own, or all cores
            client = cluster.enter_context(cluster_at(scheduler, pixels))
            how = Finding(
                settings, way, backend, network,
                beside=tuple(map(open_labels, brought)),
            )  # fmt: skip
            said = open_mask_answers(annotations, movie, needed=True)
            with label_writer(spare, movie.geometry) as write:
                found = show(find_masks(how, movie, write, said, channel=number, client=client))
        notes += _remarks(movie, found, number)
        counts, seconds = found.counts, time.perf_counter() - began
        record = {
            "labels": str(out),
            "frames": movie.n_frames,
            "cells": counts,
            "seconds": round(seconds, 3),
            "notes": note_texts(notes),
        }
        given = {
            "image": str(image),
            "network": network,
            "annotations": None if annotations is None else str(annotations),
            "labels": [str(path) for path in brought],
        }
        write_json(masks_record(given, movie, found, number) | record, record_spare)
    cells, frames = plural(sum(counts), "cell"), plural(movie.n_frames, "frame")
    lines = [
        f"{cells} in {frames} ({min(counts)} to {max(counts)} per frame)",
        *note_lines(notes),
        f"{seconds:.1f} s; labels: {out}",
    ]
    return Answer(record, lines)


def _remarks(movie: Movie, done: FoundMasks, channel: int | str) -> list[Note]:
    """What may be wrong with a segmentation, and what to do about it."""
    counts, found = done.counts, []
    n = len(movie.channels)
    if n > 1:
        names = ", ".join(f"{k} ({name})" for k, name in enumerate(movie.channels))
        rgb = "; the colours of an RGB image are channels, too" if n in (3, 4) else ""
        found.append(
            f"{movie.source}: of the channels {names} only {channel} was segmented; choose another "
            f"with --channel{rgb}; if this axis is not channels, give the axis order with --axes"
        )
    if not any(counts):
        size = " x ".join(str(k) for k in movie.geometry.shape or ())
        found.append(
            f"{movie.source}: no cell was found in {plural(movie.n_frames, 'frame')} of "
            f"{size} pixels; check the channel (--channel), the axis order (--axes, e.g. TYX or "
            "TZYX), and whether cells are bright or dark (--foreground); otherwise segment with "
            "another program or --backend"
        )
    elif movie.n_frames == 1:
        found.append(
            f"{movie.source}: there is only one frame; tracking needs a movie: give the folder of "
            "all frames or the whole stack, or the axis order (--axes, e.g. TYX)"
        )
    remarks = [Note(NoteKind.REMARK, words) for words in found]
    return remarks + [Note(NoteKind.WARNING, words) for words in done.doubts]


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

    This is what the commands segment, track, train and evaluate do one after another. Without
    the packages that scores need, nothing is scored.
    """
    scored = can_score()
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
    lines = [*learned.lines, "", *done.lines, ""]
    record = {"run": done.record, "training": learned.record}
    if not scored:
        return Answer(record, [*lines, f"note: not scored: {NO_SCORES}"])
    scores = {name: evaluate(result, truth).record for name, result in results.items()}
    figures = ["edge_f1", "division_f1", "tra", "ct"]
    compared = pd.DataFrame([{"": name, **scores[name]} for name in scores])[["", *figures]]
    # beside these, an estimate of right events looks far too good
    why = "These scores count cells that were not found, or drawn as one, as errors of the tracks."
    return Answer(record | {"scores": scores}, [*lines, *table(compared), "", why])
