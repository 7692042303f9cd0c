"""``bridgetrack segment``: find the cells of a movie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from bridgetrack.cli.console import Stopwatch, answer, note_lines, note_texts, show
from bridgetrack.cli.options import (
    Axes,
    FrameInterval,
    Json,
    Scale,
    Scheduler,
    Unit,
    a_name,
    answers_option,
    channel_option,
    keep_inputs,
    make,
    one_option_each,
    out_option,
    parse_channel,
    parse_choice,
    parse_scale,
)
from bridgetrack.cli.record import geometry_record, write_json
from bridgetrack.cli.sources import cluster_at, collecting_warnings, open_mask_answers
from bridgetrack.files import staged_files
from bridgetrack.io.may_write import refuse_other, sign
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.progress import Kept, Progress, Steps
from bridgetrack.segmentation.settings import Backend, Choose, MaskChoice, SegmentationSettings

if TYPE_CHECKING:
    import pandas as pd

    from bridgetrack.annotations.mask_answers import MaskAnswers
    from bridgetrack.movie.movie import Movie
    from bridgetrack.pipeline.finding import Finding
    from bridgetrack.segmentation.readings import SettingsEstimate
    from bridgetrack.spread import Workers

Given = Path | str | list[Path] | None
"""What a command was given: a file, files, a name or nothing."""


@one_option_each(MaskChoice)
@one_option_each(SegmentationSettings)
def segment(
    *,
    context: typer.Context,
    image: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGE",
            help="Movie: TIFF stack, folder of TIFFs, OME-TIFF, zarr, .npy.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        out_option(
            "LABELS",
            "Where to write: a name that ends in .tif for a stack, in .ome.zarr for an OME-Zarr, "
            "any other for a folder.",
        ),
    ],
    backend: Annotated[
        str,
        typer.Option("--backend", metavar="NAME", help="builtin, or cellpose where installed."),
    ] = "builtin",
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="NAME", help="Network of cellpose, by name or file."),
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="LABELS",
            help="Masks of this movie by another program, whose cells are candidates, too; may be "
            "given several times. Cells that stay keep the numbers of the first.",
        ),
    ] = None,
    probability: Annotated[
        Path | None,
        typer.Option(
            "--probability",
            metavar="MOVIE",
            help="How probably each pixel belongs to a cell, 0 to 1, as another program says; of "
            "several channels that called cell.",
            parser=a_name,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        answers_option("Answers about masks, which hold and which teach what a cell looks like."),
    ] = None,
    channel: Annotated[str | None, channel_option()] = None,
    scale: Scale = None,
    unit: Unit = None,
    frame_interval: FrameInterval = None,
    axes: Axes = None,
    scheduler: Scheduler = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Segment the cells of a movie, frame by frame; works without any option.

    Beside the labels it leaves LABELS.run.json, which says what was done, and LABELS.masks.csv,
    how sure each cell is.
    """
    from bridgetrack.movie.opening import open_movie
    from bridgetrack.pipeline.finding import open_beside
    from bridgetrack.pipeline.finding_record import beside_labels
    from bridgetrack.segmentation.probability import open_probability

    parse_choice(backend, get_args(Backend), "--backend")
    choose = _way(settings.pop("choose"), backend, context)
    wanted = make(SegmentationSettings, **settings)
    brought = labels or []
    _refuse_odd(choose, answers, foreign=bool(brought) or probability is not None)
    beside = [beside_labels(out, "run"), beside_labels(out, "masks", "csv")]
    inputs = [image, None if network is None else Path(network), answers]
    inputs += [*brought, probability]
    keep_inputs([out, *beside], inputs)

    def refuse() -> tuple[str, ...]:
        for place in (out, *beside):
            refuse_other(place)
        return (beside[1].name,) if choose == "plain" else ()  # which would be of other labels

    refuse()
    notes: list[Note] = []
    watch = Stopwatch()
    with staged_files(out.parent, refuse) as staging:
        with collecting_warnings(notes), ExitStack() as cluster:
            movie = open_movie(
                image, axes=axes, scale=parse_scale(scale), unit=unit, frame_interval=frame_interval
            )
            pixels = movie.n_frames * math.prod(movie.geometry.shape or ())
            pixels *= backend == "builtin"  # a network has a device of its own, or all cores
            workers = cluster.enter_context(cluster_at(scheduler, pixels))
            number = parse_channel(channel)
            foreign = None if probability is None else open_probability(probability, movie)
            steps = segmenting(
                movie, out, wanted, channel=number, backend=backend, network=network,
                choose=choose, staging=staging,
                answers=open_mask_answers(answers, movie, needed=True),
                labels=[open_beside(path, movie) for path in brought], probability=foreign,
                workers=workers,
            )  # fmt: skip
            found = show(steps, watch)
        path, counts = found.path, found.counts
        if found.margins is not None:
            sign(write_margins(found.margins, staging / beside[1].name))
        sign(staging / path.name)
        notes += _remarks(movie, found, number)
        seconds = sum(watch.seconds.values())
        record = {
            "labels": str(path),
            "frames": movie.n_frames,
            "cells": counts,
            "seconds": round(seconds, 3),
            "notes": note_texts(notes),
        }
        given = {
            "image": image, "network": network, "annotations": answers,
            "probability": probability, "labels": brought,
        }  # fmt: skip
        done = described(given, movie, found, number) | record
        write_json(done, staging / beside[0].name)
        sign(staging / beside[0].name)
    cells, frames = plural(sum(counts), "cell"), plural(movie.n_frames, "frame")
    lines = [
        f"{cells} in {frames} ({min(counts)} to {max(counts)} a frame)",
        *note_lines(notes),
        f"{seconds:.1f} s; labels: {path}",
    ]
    answer(json, record, lambda: lines)


def _refuse_odd(choose: Choose, answers: Path | None, *, foreign: bool) -> None:
    """Refuse options that mean nothing together."""
    if choose != "plain":
        return
    if answers is not None:
        raise typer.BadParameter(
            "--annotations about masks needs masks to choose among: --choose jointly"
        )
    if foreign:
        raise typer.BadParameter(
            "--labels and --probability give candidates to choose among: --choose jointly"
        )


def _way(choose: str, backend: str, context: typer.Context) -> Choose:
    """How masks are chosen; a network's cells stay as they are, unless somebody asks for more."""
    parse_choice(choose, get_args(Choose), "--choose")
    given = context.get_parameter_source("choose")
    if backend != "builtin" and given is not None and given.name == "DEFAULT":
        return "plain"
    return cast(Choose, choose)


def _remarks(movie: Movie, done: Segmented, channel: int | str) -> list[Note]:
    """What is odd or doubtful about a segmentation, with a cure."""
    counts, found = done.counts, []
    if done.finding.short:
        found.append(
            f"the cells were found {done.finding.words}: some windows of frames took too long; "
            "fewer candidates, as with another --diameter, or --choose plain are faster"
        )
    n = len(movie.channels)
    if n > 1:
        names = ", ".join(f"{k} ({name})" for k, name in enumerate(movie.channels))
        rgb = "; an RGB picture has its colours as channels" if n in (3, 4) else ""
        found.append(
            f"{movie.source}: of the channels {names} only {channel} was segmented; --channel "
            f"chooses another{rgb}, and --axes says the axis order where these are no channels"
        )
    if not any(counts):
        size = " x ".join(str(k) for k in movie.geometry.shape or ())
        found.append(
            f"{movie.source}: no cell was found in {plural(movie.n_frames, 'frame')} of "
            f"{size} pixels; look whether this is the right channel (--channel) and axis order "
            "(--axes, e.g. TYX or TZYX), and whether cells are bright on dark; otherwise segment "
            "with another program or --backend"
        )
    elif movie.n_frames == 1:
        found.append(
            f"{movie.source}: there is only one frame; tracking needs a movie: give the folder of "
            "all frames or the whole stack, or say the axis order (--axes, e.g. TYX)"
        )
    doubts = () if done.estimate is None else done.estimate.doubts
    remarks = [Note(NoteKind.REMARK, words) for words in found]
    return remarks + [Note(NoteKind.WARNING, words) for words in doubts]


@dataclass(frozen=True)
class Segmented:
    """Where the labels are, the number of cells of every frame, and what found them.

    `margins` says how sure each cell is, see `SegmentedFrame`.
    """

    path: Path
    counts: list[int]
    finding: Finding
    estimate: SettingsEstimate | None = None
    margins: pd.DataFrame | None = None


def segmenting(
    movie: Movie,
    out: Path,
    settings: SegmentationSettings | None = None,
    *,
    channel: int | str = 0,
    backend: str = "builtin",
    network: str | None = None,
    choose: Choose = "jointly",
    answers: MaskAnswers | None = None,
    labels: Sequence[Movie] = (),
    probability: Movie | None = None,
    staging: Path | None = None,
    workers: Workers | None = None,
) -> Steps[Segmented]:
    """Segment a movie into a file, taught by answers where there are some.

    Cells of `labels`, and those that `probability` shows, are candidates, too.

    With `staging` the file is left in that folder; see `label_writer`.
    """
    import numpy as np
    import pandas as pd

    from bridgetrack.movie.writers import label_writer
    from bridgetrack.pipeline.finding import Finding

    counts: list[int] = []
    tables: list[pd.DataFrame] = []
    finding = Finding(
        settings or SegmentationSettings(), choose, backend, network, beside=tuple(labels),
        probability=probability,
    )  # fmt: skip
    finding, estimate = yield from finding.prepared(
        movie, answers, channel=channel, workers=workers
    )
    with label_writer(out, movie.geometry, staging=staging) as writer:
        work = Kept(finding.steps(movie, answers, channel=channel, workers=workers))
        for step in work:
            if isinstance(step, Progress):
                yield step
                continue
            writer.write(step.labels)
            tables += [] if step.margins is None else [step.margins]
            counts.append(len(np.unique(step.labels[step.labels > 0])))
    margins = pd.concat(tables) if tables else None
    return Segmented(writer.path, counts, work.result or finding, estimate, margins)


def write_margins(margins: pd.DataFrame, path: Path) -> Path:
    """Write how sure masks are, the least sure first; returns where."""
    ordered = margins.sort_values(["margin_at_least", "frame", "label"])
    ordered.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
    return path


def described(
    given: Mapping[str, Given], movie: Movie, found: Segmented, channel: int | str = 0
) -> dict[str, Any]:
    """What was done, as JSON values."""
    from bridgetrack.pipeline.finding_record import finding_to_json
    from bridgetrack.pipeline.methods import versions

    return {
        **finding_to_json(found.finding),
        "command": "segment",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {
            key: [str(p) for p in path] if isinstance(path, list) else path and str(path)
            for key, path in given.items()
        },
        "channel": channel,
        "geometry": geometry_record(movie.geometry),
        "readings": [] if found.estimate is None else [
            {**asdict(reading), "worth": reading.worth} for reading in found.estimate.readings
        ],
        "versions": versions(),
    }  # fmt: skip
