"""``bridgetrack track``, ``run``, ``batch`` and ``demo``: from labels or images to tracks."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack import api
from bridgetrack.annotations.files import load_annotations
from bridgetrack.cli.console import Answer, note_lines, show, table
from bridgetrack.cli.options import (
    Channel,
    Formats,
    Image,
    Labels,
    LinkScoresFile,
    Memory,
    OutFolder,
    Repair,
    Scheduler,
    Weights,
    Without,
    cluster_at,
    parse_channel,
    parse_formats,
    parse_kinds,
    path_argument,
    path_option,
    refuse_masks_alone,
    word_option,
)
from bridgetrack.cli.train import learn, training_record
from bridgetrack.evaluation.scores import evaluate
from bridgetrack.files import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.io.ctc import read_ctc
from bridgetrack.io.may_write import check_file, check_folder, signed
from bridgetrack.io.results import RUN_FILE
from bridgetrack.models.library import find_model_file
from bridgetrack.models.model import check_usable
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.movie.writers import label_writer
from bridgetrack.notes import Note, collecting_warnings, plural
from bridgetrack.pipeline.batch import TABLE, BatchRow, batch_steps, table_of
from bridgetrack.pipeline.finding import Finding, find_masks
from bridgetrack.pipeline.inputs import Reading, RunInputs
from bridgetrack.pipeline.project import load_project, run_project
from bridgetrack.pipeline.result_folder import REPAIRS, run_steps, save_run
from bridgetrack.pipeline.scene import annotate, prepare
from bridgetrack.pipeline.summary import count_words
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.segmentation.settings import Choose, SegmentationSettings

_ROUNDING = 1e-8
"""Differences in score below this share are rounding errors."""
_DEMO_SCORES = {
    "edges F1": "edge_f1",
    "divisions F1": "division_f1",
    "TRA": "tra",
    "complete tracks": "ct",
}


def track(
    labels: Labels,
    out: OutFolder,
    reading: Reading,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None,
        path_option(
            "--annotations",
            "A.json",
            "Annotations that the tracks must agree with; with --repair also annotations of "
            "masks, either this file or one beside it.",
        ),
    ] = None,
    formats: Formats = "csv",
    repair: Repair = False,
    channel: Channel = None,
    memory: Memory = None,
    window: Annotated[
        int | None,
        word_option("--window", "N", "Number of frames that are tracked together.", min=2),
    ] = None,
    scheduler: Scheduler = None,
    without: Without = "",
    link_scores: LinkScoresFile = None,
) -> Answer:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything needed to
    repeat the run.
    """
    refuse_masks_alone(annotations, "--repair", repair)
    given = RunInputs(
        labels, image, None if model is None else find_model_file(model), annotations, reading,
        parse_formats(formats), repair=repair, without=parse_kinds(without).words,
        link_scores=link_scores, channel=parse_channel(channel), memory=memory, window=window,
    )  # fmt: skip
    with cluster_at(scheduler) as client:
        _, record, notes = show(run_steps(given, out, client=client))
    return run_answer(record, notes)


def run(
    project: Annotated[Path, path_argument("PROJECT", "Project, NAME.bridgetrack beside a movie.")],
    out: OutFolder,
) -> Answer:
    """Track the movie of a project with its model, annotations and export formats.

    The result is the same as that of the plugin's export, with run.json in addition.
    """
    loaded = load_project(project)
    check_usable(loaded.model, f"{project}, model")
    image = loaded.image
    movie = loaded.geometry
    reading = Reading(
        loaded.labels.axes, movie.scale, movie.unit, movie.frame_interval,
        None if image is None else image.axes,
    )  # fmt: skip
    given = RunInputs(
        loaded.labels.path, None if image is None else image.path, None, None, reading,
        loaded.formats, project, "run", without=loaded.settings.kinds.words,
    )  # fmt: skip
    check_folder(out, *given.inputs)
    notes, began = list[Note](), time.perf_counter()
    with collecting_warnings(notes):
        tracking = show(run_project(loaded))
    return run_answer(*save_run(tracking, out, given, began, notes, found=loaded.found))


def batch(
    folder: Annotated[
        Path,
        path_argument(
            "FOLDER",
            "Folder of movies: images, masks, or tables of detections; NAME.tif belongs to "
            "NAME_labels.tif, NAME_masks.tif or NAME_cells.tif.",
        ),
    ],
    out: OutFolder,
    settings: Annotated[SegmentationSettings, "diameter"],
    reading: Reading,
    model: Weights = None,
    labels: Annotated[
        Path | None,
        path_option("--labels", "DIR", "Folder with the masks, named like their movies."),
    ] = None,
    formats: Formats = "csv",
    choose: Annotated[
        Choose, word_option("--choose", "WORD", "How cells are found, see segment: jointly, plain.")
    ] = "jointly",
    channel: Channel = None,
    repair: Repair = False,
    without: Without = "",
    memory: Memory = None,
) -> Answer:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a result folder in DIR, and
    DIR/batch.csv lists all movies, the least certain first. If a movie fails, the others are still
    tracked, and the exit status is 1.
    """
    given = RunInputs(
        folder, None, None if model is None else find_model_file(model), None, reading,
        parse_formats(formats), channel=parse_channel(channel), repair=repair,
        without=parse_kinds(without).words, memory=memory,
    )  # fmt: skip
    how = Finding(settings, choose)
    rows = show(batch_steps(folder, out, given, masks=labels, how=how))
    failed = [r for r in rows if r.problem]
    movies = json.loads(table_of(rows).to_json(orient="records"))
    record = {"table": str(out / TABLE), "movies": movies, "failed": len(failed)}
    problem = ""
    if failed:
        many = f"{len(failed)} of {plural(len(rows), 'movie')} failed"
        problem = f"{many}; {failed[0].name}: {failed[0].problem}"
    return Answer(record, _batch_lines(rows, out), problem)


def _batch_lines(rows: Sequence[BatchRow], out: Path) -> list[str]:
    """The table of movies, and their warnings."""
    good = [r for r in rows if not r.problem]
    cells = [
        [
            r.name,
            *(f"{(r.counts or {}).get(key, 0):,}" for key in ("cells", "tracks", "divide")),
            *("-" if math.isnan(v) else f"{v:.1%}" for v in (r.certainty, r.doubtful)),
        ]
        for r in good
    ]
    header = ["movie", "cells", "tracks", "divisions", "certain", "doubtful"]
    lines = table(header, cells) if good else []
    lines += [f"warning: {r.name}: {words}" for r in good for words in r.warnings]
    return [*lines, f"{plural(len(good), 'movie')} tracked; table: {out / TABLE}"]


# ------------------------------------------------------------------ what is shown


def run_answer(record: dict[str, Any], notes: Sequence[Note]) -> Answer:
    """The record of a run, and its counts, least certain events and files in words."""
    repair, events = record.get("repair"), record["least_certain"]
    lines = [count_words(record["counts"])]
    if repair is not None:
        kinds = ", ".join(f"{count} {kind}" for kind, count in repair.items())
        changed = f"{plural(sum(repair.values()), 'change')} ({kinds}), see {REPAIRS}"
        lines.append(f"labels repaired: {changed if repair else 'no changes needed'}")
    lines += [*_annotations(record["annotations"]), *_inference(record["inference"])]
    if events:
        lines.append("least certain events (margin to the best alternative):")
    for event in events:
        bound = "at least " if "at_least" in event else ""
        lines.append(f"  {bound}{event['margin']:.3f}  {event['words']}")
    files = ", ".join([*record["files"], RUN_FILE])
    lines += [*note_lines(notes), f"{record['seconds']:.1f} s; files in {record['out']}: {files}"]
    return Answer(record, lines)


def _annotations(use: dict[str, Any]) -> list[str]:
    if not use["given"]:
        return []
    lines = [f"{use['used']} of {plural(use['given'], 'annotation')} used"]
    left = [*use["lost"], *use["unused"]]
    lines += [f"  not used: {item['id']} ({item['reason']})" for item in left[:5]]
    if len(left) > 5:
        lines.append(f"  ... and {len(left) - 5} more, listed in {RUN_FILE}")
    return lines


def _inference(found: dict[str, Any]) -> list[str]:
    """The windows of frames, and how much better another choice could be."""
    gap, value, lines = found["gap"], found["objective"], []
    share = gap / max(abs(value), 1.0)
    if "windows" in found:
        windows = found["windows"]
        lines.append(
            f"tracked in {plural(windows['count'], 'window')} of up to {windows['frames']} frames; "
            f"events were chosen again in {windows['overlap']} frames where two windows meet"
            + ("; the result is the same as without windows" if share <= _ROUNDING else "")
        )
    if share > _ROUNDING:
        lines.append(
            f"not proven to be optimal: the score is {value:,.1f}, the optimum is at most "
            f"{gap:.3g} higher ({100 * share:.2g} %)"
        )
    return lines


# ------------------------------------------------------------------ the demo


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")] = (
        Path("demo")
    ),
) -> Answer:
    """Segment and track the sample movie, train, track again, and score all results."""
    folder, notes = sample_folder(), list[Note]()
    images, clicks = folder / SAMPLE_SEQUENCE, folder / "annotations.json"
    masks, weights, result = out / "labels.tif", out / "model.json", out / "result"
    formats = ("csv", "ctc", "geff", "lineage")
    given = RunInputs(masks, images, weights, clicks, formats=formats, command="demo")
    check_folder(result, *given.inputs)
    for path in (masks, weights):
        check_file(path, images, clicks)
    with collecting_warnings(notes):
        began, image = time.perf_counter(), open_movie(images)
        with signed(masks) as spare, label_writer(spare, image.geometry) as writer:
            found = show(find_masks(Finding(SegmentationSettings()), image, writer.write))
        labels = open_labels(masks)
        scene = show(prepare(labels, image))
        clicked = annotate(scene, load_annotations(clicks))
        training = learn(lambda report: api.train(clicked, progress=report), weights)
        model, held = training.model, "trained, with annotations as constraints"
        tracked = {
            "untrained": show(track_scene(scene)),
            f"trained on {plural(training.n_annotations, 'annotation')}": show(
                track_scene(scene, model)
            ),
            held: show(track_scene(clicked, model)),
        }
        truth = read_ctc(folder / f"{SAMPLE_SEQUENCE}_GT")
        scores = {
            name: evaluate(t.tracks, truth, labels=labels).to_dict() for name, t in tracked.items()
        }
        done = run_answer(
            *save_run(tracked[held], result, given, began, notes, found=found.finding)
        )
    learned = training_record(training, weights, began, ())
    record = {"run": done.record, "training": learned, "scores": scores}
    rows = [[name, *(_figure(s[k]) for k in _DEMO_SCORES.values())] for name, s in scores.items()]
    lines = [
        *done.lines,
        "",
        f"training: {learned['words']}",
        *([learned["estimate_words"]] if learned["estimate_words"] else []),
        "",
        *table(["compared with ground truth", *_DEMO_SCORES], rows),
    ]
    return Answer(record, lines)


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}"
