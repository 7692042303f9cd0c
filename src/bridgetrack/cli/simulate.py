"""``bridgetrack simulate``: make a movie with exact truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bridgetrack.cli.console import emit, plural, reporting, say
from bridgetrack.cli.options import Json, one_option_each, out_option
from bridgetrack.errors import InputError
from bridgetrack.progress import Progress
from bridgetrack.simulation.settings import SimulationSettings


@one_option_each(SimulationSettings)
def simulate(
    *,
    out: Annotated[Path, out_option("DIR", "Folder to write into.")],
    json: Json = False,
    **settings: Any,
) -> None:
    """Make a movie of dividing nuclei with its exact truth, in Cell Tracking Challenge layout.

    The same options give the same pixels. DIR gets the images in 01 and the truth in 01_GT.
    """
    try:
        wanted = SimulationSettings(**settings)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
    from bridgetrack.simulation.folder import simulate_to_folder

    with reporting() as report:
        report(Progress("Simulating", 0.0))
        images = simulate_to_folder(
            wanted, out, progress=lambda n: report(Progress("Simulating", n / wanted.frames))
        )
    truth = images.with_name(f"{images.name}_GT")
    if json:
        emit({"images": str(images), "truth": str(truth), "settings": settings})
        return
    say(
        f"{plural(wanted.frames, 'frame')} of {' x '.join(map(str, wanted.shape))} pixels",
        f"images: {images}",
        f"truth:  {truth}",
    )
