"""``bridgetrack segment``: find the cells of a movie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import Stopwatch
from bridgetrack.cli.options import Axes, FrameInterval, Json, Scale, Unit, parse_scale
from bridgetrack.cli.settings import one_option_each
from bridgetrack.errors import InputError
from bridgetrack.segmentation.settings import SegmentationSettings


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
        typer.Option(
            "--out",
            metavar="LABELS",
            help="Where to write: a name that ends in .tif for a stack, any other for a folder.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="NAME", help="builtin, or cellpose or stardist where installed."
        ),
    ] = "builtin",
    channel: Annotated[
        str | None,
        typer.Option(
            "--channel", metavar="C", help="Number or name of the channel with the cells."
        ),
    ] = None,
    scale: Scale = None,
    unit: Unit = None,
    frame_interval: FrameInterval = None,
    axes: Axes = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Segment the cells of a movie, frame by frame; works without any option."""
    from bridgetrack.movie.opening import open_movie

    try:
        wanted = SegmentationSettings(**settings)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    movie = open_movie(
        image,
        axes=axes,
        scale=parse_scale(scale),
        unit=unit,
        frame_interval=frame_interval,
    )
    watch = Stopwatch()
