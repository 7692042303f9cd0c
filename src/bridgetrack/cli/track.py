"""``bridgetrack track``, ``run`` and ``batch``: from labels, projects or folders to tracks."""

from __future__ import annotations

import json as json_library
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack import api
from bridgetrack.cli.console import answer, note_lines, reporting, show, table
from bridgetrack.cli.options import (
    Formats,
    Image,
    Json,
    Labels,
    LinkScoresFile,
    OutFolder,
    Repair,
    Scheduler,
    Weights,
    Without,
    answers_option,
    channel_option,
    cluster_at,
    make,
    one_option_each,
    parse_channel,
    parse_choices,
    parse_kinds,
    reads_movie,
    refuse_masks_alone,
)
from bridgetrack.files import lent_folder
from bridgetrack.io.may_write import check_folder
from bridgetrack.io.results import FORMATS, RUN_FILE
from bridgetrack.models.library import find_model_file
from bridgetrack.models.model import check_usable
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import Note, NoteKind, collecting_warnings, plural
from bridgetrack.pipeline.batch import TABLE, BatchRow, BatchRun, batch_steps, table_of
from bridgetrack.pipeline.inputs import Reading, RunInputs, open_answers, open_files, open_weights
from bridgetrack.pipeline.project import load_project, run_project
from bridgetrack.pipeline.result_folder import (
    REPAIRS,
    repair_into,
    save_run,
)
from bridgetrack.pipeline.summary import misfit
from bridgetrack.pipeline.windows import parse_memory
from bridgetrack.segmentation.settings import MaskChoice, SegmentationSettings
from bridgetrack.session.project import found_of

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory limit, such as 4GB: a movie that needs more is tracked in windows of frames. "
        "By default the free memory of the computer.",
    ),
]
_ROUNDING = 1e-8
"""Differences in score below this share are rounding errors."""


@reads_movie
def track(
    labels: Labels,
    out: OutFolder,
    *,
    image: Image = None,
    model: Weights = None,
    annotations: Annotated[
        Path | None,
        answers_option(
            "Annotations that the tracks must agree with; with --repair also annotations of "
            "masks, either this file or one beside it."
        ),
    ] = None,
    formats: Formats = "csv",
    repair: Repair = False,
    channel: Annotated[str | None, channel_option(" for --repair")] = None,
    memory: Memory = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", metavar="N", min=2, help="Number of frames that are tracked together."
        ),
    ] = None,
    scheduler: Scheduler = None,
    without: Without = "",
    link_scores: LinkScoresFile = None,
    reading: Reading,
    json: Json = False,
) -> None:
    """Track the cells of a label movie, or of a table of detections.

    Writes tables of cells, links and events into DIR, and run.json with everything needed to
    repeat the run.
    """
    if memory is not None:
        parse_memory(memory)  # refused before the work
    refuse_masks_alone(annotations, "--repair", repair)
    given = RunInputs(
        labels, image, None if model is None else find_model_file(model), annotations, reading,
        parse_choices(formats, FORMATS, "--format"), repair=repair,
        without=parse_kinds(without).words, link_scores=link_scores,
        channel=parse_channel(channel), memory=memory, window=window,
    )  # fmt: skip
    check_folder(out, *given.inputs)
    notes, began = list[Note](), time.perf_counter()
    beside = None
    with collecting_warnings([]), ExitStack() as temporary:
        weights = open_weights(given.model) or shipped_model()
        answers = open_answers(annotations)
        cells, pixels = open_files(labels, image, reading, notes)
        with collecting_warnings(notes):
            client = temporary.enter_context(cluster_at(scheduler))
            if repair:
                beside = temporary.enter_context(lent_folder(out))
                work = repair_into(beside, out, cells, pixels, weights, given, client)
                cells = show(work)
            with reporting() as report:
                tracking = api.track(
                    cells, pixels, weights, answers, without=given.without,
                    memory=memory, window=window, client=client, link_scores=link_scores,
                    progress=report,
                )  # fmt: skip
        said = misfit(tracking.scene.anchored, str(labels), str(annotations))
        notes += [Note(NoteKind.WARNING, said)] if said else []
        record, notes = save_run(tracking, out, given, began, notes, beside)
    answer(json, record, lambda: run_lines(record, notes))


def run(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="Project file saved from the plugin.")
    ],
    out: OutFolder,
    json: Json = False,
) -> None:
    """Track the movie of a project with its model, annotations and export formats.

    The result is the same as that of the plugin's export, with run.json in addition.
    """
    loaded = load_project(project)
    check_usable(loaded.model, f"{project}, model")
    image = loaded.image
    reading = Reading(
        loaded.labels.axes, loaded.scale, loaded.unit, loaded.frame_interval,
        None if image is None else image.axes,
    )  # fmt: skip
    given = RunInputs(
        loaded.labels.path, None if image is None else image.path, None, None, reading,
        loaded.formats, project, "run", without=loaded.without,
    )  # fmt: skip
    check_folder(out, *given.inputs)
    notes, began = list[Note](), time.perf_counter()
    with collecting_warnings(notes):
        tracking = show(run_project(loaded))
    found = found_of(loaded, project)
    record, notes = save_run(tracking, out, given, began, notes, found=found)
    answer(json, record, lambda: run_lines(record, notes))


@reads_movie
@one_option_each(MaskChoice)
@one_option_each(SegmentationSettings, "diameter")
def batch(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of movies: images, masks, or tables of detections; NAME.tif belongs to "
            "NAME_labels.tif, NAME_masks.tif or NAME_cells.tif.",
            show_default=False,
        ),
    ],
    out: OutFolder,
    *,
    model: Weights = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", metavar="DIR", help="Folder with the masks, named like their movies."
        ),
    ] = None,
    formats: Formats = "csv",
    channel: Annotated[str | None, channel_option()] = None,
    repair: Repair = False,
    without: Without = "",
    memory: Memory = None,
    reading: Reading,
    json: Json = False,
    **settings: Any,
) -> None:
    """Track every movie of a folder with one model.

    Movies without masks are segmented first. Every movie gets a result folder in DIR, and
    DIR/batch.csv lists all movies, the least certain first. If a movie fails, the others are still
    tracked, and the exit status is 1.
    """
    if memory is not None:
        parse_memory(memory)  # refused before the work
    choose = make(MaskChoice, choose=settings.pop("choose"))
    given = BatchRun(
        folder, out, model, labels, parse_choices(formats, FORMATS, "--format"), choose,
        make(SegmentationSettings, **settings), parse_channel(channel), repair,
        parse_kinds(without), reading, memory,
    )  # fmt: skip
    rows = show(batch_steps(given))
    failed = [r for r in rows if r.problem]
    record = {
        "table": str(out / TABLE),
        "movies": json_library.loads(table_of(rows).to_json(orient="records")),
        "failed": len(failed),
    }
    answer(json, record, lambda: _batch_lines(rows, out))
    if failed:
        first = failed[0]
        typer.echo(
            f"error: {len(failed)} of {plural(len(rows), 'movie')} failed; {first.name}: "
            f"{first.problem}",
            err=True,
        )
        raise typer.Exit(1)


def _batch_lines(rows: Sequence[BatchRow], out: Path) -> list[str]:
    """The table of movies, and their warnings."""
    good = [r for r in rows if not r.problem]
    cells = [
        [
            r.name,
            *(f"{(r.counts or {}).get(key, 0):,}" for key in ("cells", "tracks", "divide")),
            *(_share(value) for value in (r.certainty, r.doubtful)),
        ]
        for r in good
    ]
    header = ["movie", "cells", "tracks", "divisions", "certain", "doubtful"]
    lines = table(header, cells) if good else []
    lines += [f"warning: {r.name}: {words}" for r in good for words in r.warnings]
    return [*lines, f"{plural(len(good), 'movie')} tracked; table: {out / TABLE}"]


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"


# ------------------------------------------------------------------ what is shown


def run_lines(record: dict[str, Any], notes: Sequence[Note]) -> list[str]:
    """Counts, least certain events, and where the files are."""
    return [
        *_found(record["counts"]),
        *_repaired(record.get("repair")),
        *_annotations(record["annotations"]),
        *_inference(record["inference"]),
        *_least_certain(record["least_certain"]),
        *note_lines(notes),
        f"{record['seconds']:.1f} s; files in {record['out']}: "
        + ", ".join([*record["files"], RUN_FILE]),
    ]


def _found(counts: dict[str, int]) -> list[str]:
    events = [
        plural(counts["divide"], "division"),
        plural(counts["appear"], "appearance"),
        plural(counts["disappear"], "disappearance"),
        plural(counts["skip"], "cell missed for some frames", "cells missed for some frames"),
        plural(counts["split"], "split"),
        plural(counts["merge"], "merge"),
        plural(counts["false"], "false detection"),
    ]
    return [
        f"{plural(counts['cells'], 'cell')} in {plural(counts['frames'], 'frame')}: "
        f"{plural(counts['tracks'], 'track')}, {plural(counts['lineages'], 'lineage')}",
        ", ".join(events),
    ]


def _repaired(repair: dict[str, int] | None) -> list[str]:
    if repair is None:
        return []
    if not repair:
        return ["labels repaired: no changes needed"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in repair.items())
    return [f"labels repaired: {plural(sum(repair.values()), 'change')} ({kinds}), see {REPAIRS}"]


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


def _least_certain(events: list[dict[str, Any]]) -> list[str]:
    if not events:
        return []
    lines = [
        f"  {'at least ' if 'at_least' in event else ''}{event['margin']:.3f}  {event['words']}"
        for event in events
    ]
    return ["least certain events (margin to the best alternative):", *lines]
