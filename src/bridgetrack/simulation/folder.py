"""Simulated movies on disk, as the Cell Tracking Challenge lays them out; the sample among them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import staged_files
from bridgetrack.simulation.movie import Simulation
from bridgetrack.simulation.settings import SimulationSettings

SAMPLE_SEQUENCE = "01"


def sample_folder() -> Path:
    """Folder of the sample: images in ``01``, truth in ``01_GT/TRA``, annotations beside them.

    It was made by the default `SimulationSettings`.
    In an installed package it lies inside the package, in a working copy at the top level.

    Raises
    ------
    InputError
        Where the sample did not come with the package.
    """
    here = Path(__file__).resolve()
    packaged, working_copy = here.parents[1] / "_sample", here.parents[3] / "sample_data"
    for folder in (packaged, working_copy):
        if (folder / SAMPLE_SEQUENCE).is_dir():
            return folder
    raise InputError(
        f"the sample movie is missing (looked in {packaged} and {working_copy}); reinstall "
        "bridgetrack, or make it again with `bridgetrack simulate --out sample_data`"
    )


def simulate_to_folder(
    settings: SimulationSettings,
    folder: Path,
    sequence: str = "01",
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Simulate a movie straight into `folder` with one frame in memory at a time.

    Files are ``NN/tTTT.tif``, ``NN_GT/TRA/man_trackTTT.tif`` (full masks whose ids are track
    ids), ``NN_GT/TRA/man_track.txt`` (rows ``L B E P``) and ``NN_GT/simulation.json`` (the
    settings from which the movie can be made again), with NN the `sequence`; TIFFs are compressed
    by zlib and carry scale and frame interval.

    Parameters
    ----------
    settings
        What the movie looks like.
    folder, sequence
        Where to, and the two digits of its name.
    progress
        Called with the number of frames done after each frame.

    Returns
    -------
    Path
        The folder of the images.

    Raises
    ------
    OutputError
        Where the sequence exists already or cannot be written; nothing partial is left.
    """
    folder = Path(folder)
    for name in (sequence, f"{sequence}_GT"):
        if (folder / name).exists():
            raise OutputError(
                f"{folder / name} exists already; choose another folder or remove it first"
            )
    digits = 3 if settings.frames <= 1000 else len(str(settings.frames - 1))
    simulation = Simulation(settings)
    with staged_files(folder) as staging:
        images, truth = staging / sequence, staging / f"{sequence}_GT"
        images.mkdir()
        (truth / "TRA").mkdir(parents=True)
        for frame in simulation:
            number = f"{frame.t:0{digits}d}"
            _write_tiff(images / f"t{number}.tif", frame.image, settings)
            _write_tiff(truth / "TRA" / f"man_track{number}.tif", frame.labels, settings)
            if progress is not None:
                progress(frame.t + 1)
        _write_tables(settings, simulation.tracks, truth)
    return folder / sequence


def _write_tables(settings: SimulationSettings, tracks: pd.DataFrame, truth: Path) -> None:
    rows = tracks[["label", "begin", "end", "parent"]].to_numpy().tolist()
    lines = "".join(f"{a} {b} {c} {d}\n" for a, b, c, d in rows)
    (truth / "TRA" / "man_track.txt").write_text(lines, encoding="ascii", newline="\n")
    text = json.dumps(asdict(settings), indent=2) + "\n"
    (truth / "simulation.json").write_text(text, encoding="ascii", newline="\n")


def _write_tiff(path: Path, pixels: NDArray[Any], settings: SimulationSettings) -> None:
    metadata: dict[str, Any] = {
        "axes": "ZYX" if pixels.ndim == 3 else "YX",
        "unit": "micron",
        "finterval": settings.frame_interval * 60,
        "tunit": "sec",
    }
    if pixels.ndim == 3:
        metadata["spacing"] = settings.scale[0]
    tifffile.imwrite(
        path,
        pixels,
        imagej=True,
        compression="zlib",
        compressionargs={"level": 9},
        predictor=False,
        resolution=(1 / settings.pixel_size, 1 / settings.pixel_size),
        metadata=metadata,
    )
