"""``bridgetrack segment``: find the cells of a movie."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import answer, note_lines, show
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
    cluster_at,
    make,
    one_option_each,
    out_option,
    parse_channel,
    parse_scale,
)
from bridgetrack.files import refuse_inputs
from bridgetrack.io.may_write import refuse_other, signed
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_movie
from bridgetrack.movie.writers import label_writer
from bridgetrack.notes import Note, NoteKind, collecting_warnings, note_texts, plural
from bridgetrack.pipeline.finding import Finding, FoundMasks, beside_labels, find_masks, open_beside
from bridgetrack.pipeline.inputs import open_mask_answers
from bridgetrack.pipeline.result_folder import masks_record, write_json, write_margins
from bridgetrack.segmentation.probability import open_probability
from bridgetrack.segmentation.settings import Backend, Choose, MaskChoice, SegmentationSettings


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
            "Where to write: a name that ends in .tif gives a TIFF stack, in .ome.zarr an "
            "OME-Zarr, any other a folder of masks.",
        ),
    ],
    backend: Annotated[
        Backend,
        typer.Option("--backend", metavar="NAME", help="builtin, or cellpose if installed."),
    ] = "builtin",
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="NAME", help="Cellpose network: name or file."),
    ] = None,
    candidates: Annotated[
        list[Path] | None,
        typer.Option(
            "--candidates",
            metavar="LABELS...",
            help="Masks of this movie from other programs; their cells become candidates. Cells "
            "chosen from the first file keep their label numbers.",
        ),
    ] = None,
    probability: Annotated[
        Path | None,
        typer.Option(
            "--probability",
            metavar="MOVIE",
            help="Probability map from another program: the probability, 0 to 1, that each pixel "
            "belongs to a cell. If it has several channels, the one named cell is used.",
            parser=a_name,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        answers_option("Annotations of masks: the result agrees with them and learns from them."),
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
    """Segment the cells of a movie; all settings are estimated unless given.

    Beside the labels it writes LABELS.run.json with the settings, and LABELS.masks.csv, which says
    how certain each cell is.
    """
    choose = _way(settings.pop("choose"), backend, context)
    wanted = make(SegmentationSettings, **settings)
    brought = candidates or []
    _refuse_odd(choose, answers, foreign=bool(brought) or probability is not None)
    record_file, margins_file = beside_labels(out, "run"), beside_labels(out, "masks", "csv")
    inputs = [image, None if network is None else Path(network), answers, *brought, probability]
    refuse_inputs([out, record_file, margins_file], inputs)
    for place in (out, record_file, margins_file):
        refuse_other(place)
    notes, began, number = list[Note](), time.perf_counter(), parse_channel(channel)
    with signed(record_file) as record_spare, signed(out) as spare:  # the record comes last
        with collecting_warnings(notes), ExitStack() as cluster:
            movie = open_movie(
                image, axes=axes, scale=parse_scale(scale), unit=unit, frame_interval=frame_interval
            )
            pixels = movie.n_frames * math.prod(movie.geometry.shape or ())
            pixels *= backend == "builtin"  # a network has a device of its own, or all cores
            client = cluster.enter_context(cluster_at(scheduler, pixels))
            how = Finding(
                wanted, choose, backend, network,
                beside=tuple(open_beside(path, movie) for path in brought),
                probability=None if probability is None else open_probability(probability, movie),
            )  # fmt: skip
            said = open_mask_answers(answers, movie, needed=True)
            with label_writer(spare, movie.geometry) as writer:
                steps = find_masks(how, movie, writer.write, said, channel=number, client=client)
                found = show(steps)
        if found.margins is not None:
            with signed(margins_file) as margins_spare:
                write_margins(found.margins, margins_spare)
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
            "annotations": None if answers is None else str(answers),
            "probability": None if probability is None else str(probability),
            "labels": [str(path) for path in brought],
        }
        write_json(masks_record(given, movie, found, number) | record, record_spare)
    if found.margins is None:
        margins_file.unlink(missing_ok=True)  # of other labels
    cells, frames = plural(sum(counts), "cell"), plural(movie.n_frames, "frame")
    lines = [
        f"{cells} in {frames} ({min(counts)} to {max(counts)} per frame)",
        *note_lines(notes),
        f"{seconds:.1f} s; labels: {out}",
    ]
    answer(json, record, lambda: lines)


def _refuse_odd(choose: Choose, answers: Path | None, *, foreign: bool) -> None:
    """Refuse options that have no effect together."""
    if choose != "plain":
        return
    if answers is not None:
        raise typer.BadParameter(
            "--annotations of masks need candidates to choose from: --choose jointly"
        )
    if foreign:
        raise typer.BadParameter(
            "--candidates and --probability add candidates to choose from: --choose jointly"
        )


def _way(choose: str, backend: str, context: typer.Context) -> Choose:
    """How masks are chosen; by default the cells of a network are taken as they are."""
    given = context.get_parameter_source("choose")
    if backend != "builtin" and given is not None and given.name == "DEFAULT":
        return "plain"
    return make(MaskChoice, choose=choose).choose


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
