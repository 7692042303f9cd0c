"""``bridgetrack segment``: find the cells of a movie."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from bridgetrack.cli.console import Answer, note_lines, show
from bridgetrack.cli.options import cluster_at, parse_channel
from bridgetrack.errors import Note, NoteKind, collecting_warnings, note_texts, plural
from bridgetrack.files import refuse_inputs, signed
from bridgetrack.movie.movie import Movie
from bridgetrack.movie.opening import open_labels
from bridgetrack.movie.writers import label_writer
from bridgetrack.pipeline.finding import (
    Finding,
    FoundMasks,
    find_masks,
    record_beside,
    usual_choice,
)
from bridgetrack.pipeline.runs import (
    OpenOptions,
    masks_record,
    open_mask_answers,
    write_json,
)
from bridgetrack.segmentation.settings import Backend, Choose, SegmentationSettings


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
