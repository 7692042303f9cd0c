"""``bridgetrack segment``: find the cells of a movie."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgetrack.cli.console import Stopwatch, answer, note_lines, note_texts, plural, show
from bridgetrack.cli.options import (
    Axes,
    FrameInterval,
    Json,
    Scale,
    Unit,
    keep_inputs,
    make,
    one_option_each,
    out_option,
    parse_choice,
    parse_scale,
)
from bridgetrack.cli.sources import collecting_warnings
from bridgetrack.export.may_write import refuse_other, sign
from bridgetrack.notes import Note, NoteKind
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.segmentation.settings import SegmentationSettings

if TYPE_CHECKING:
    from bridgetrack.movie.movie import Movie
    from bridgetrack.segmentation.movie import SegmentedFrame

BACKENDS = ("builtin", "cellpose", "stardist")


@one_option_each(SegmentationSettings)
def segment(
    *,
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
            "Where to write: a name that ends in .tif for a stack, any other for a folder.",
        ),
    ],
    backend: Annotated[
        str,
        typer.Option(
            "--backend", metavar="NAME", help="builtin, or cellpose or stardist where installed."
        ),
    ] = "builtin",
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="NAME", help="Network of cellpose or stardist."),
    ] = None,
    channel: Annotated[
        str,
        typer.Option(
            "--channel", metavar="C", help="Number or name of the channel with the cells."
        ),
    ] = "0",
    scale: Scale = None,
    unit: Unit = None,
    frame_interval: FrameInterval = None,
    axes: Axes = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Segment the cells of a movie, frame by frame; works without any option."""
    from bridgetrack.movie.opening import open_movie

    wanted = make(SegmentationSettings, **settings)
    parse_choice(backend, BACKENDS, "--backend")
    keep_inputs([out], [image, None if network is None else Path(network)])
    refuse_other(out)
    notes: list[Note] = []
    watch = Stopwatch()
    with collecting_warnings(notes):
        movie = open_movie(
            image, axes=axes, scale=parse_scale(scale), unit=unit, frame_interval=frame_interval
        )
        number = int(channel) if channel.isdecimal() else channel
        steps = segmenting(movie, out, wanted, channel=number, backend=backend, network=network)
        path, counts = show(steps, watch)
    sign(path)
    notes += _remarks(movie, counts, number)
    seconds = sum(watch.seconds.values())
    record = {
        "labels": str(path),
        "frames": movie.n_frames,
        "cells": counts,
        "seconds": round(seconds, 3),
        "notes": note_texts(notes),
    }
    cells, frames = plural(sum(counts), "cell"), plural(movie.n_frames, "frame")
    lines = [
        f"{cells} in {frames} ({min(counts)} to {max(counts)} a frame)",
        *note_lines(notes),
        f"{seconds:.1f} s; labels: {path}",
    ]
    answer(json, record, lambda: lines)


def _remarks(movie: Movie, counts: list[int], channel: int | str) -> list[Note]:
    """What is odd about a segmentation, with a cure."""
    found = []
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
    return [Note(NoteKind.REMARK, words) for words in found]


def segmenting(
    movie: Movie,
    out: Path,
    settings: SegmentationSettings | None = None,
    *,
    channel: int | str = 0,
    backend: str = "builtin",
    network: str | None = None,
) -> Steps[tuple[Path, list[int]]]:
    """Segment a movie into a file; the file and the number of cells of every frame."""
    from bridgetrack.segmentation.movie import segment_to_file

    counts: list[int] = []
    yield Progress("Segmenting", 0.0)
    frames = segment_to_file(movie, out, settings, channel=channel, backend=backend, model=network)

    def told(done: SegmentedFrame) -> Progress:
        counts.append(int(done.labels.max(initial=0)))
        return Progress("Segmenting", (done.frame + 1) / done.n_frames)

    with closing(frames):
        return (yield from relayed(frames, told)), counts
