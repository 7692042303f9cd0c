"""The sample movie that comes with the package.

Write a simulated movie in the layout of the Cell Tracking Challenge.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import tifffile
from numpy.typing import NDArray

from bridgetrack.errors import InputError, OutputError
from bridgetrack.simulation.movie import SimulatedFrame, SimulatedMovie, Simulation
from bridgetrack.simulation.settings import SimulationSettings

SAMPLE_SEQUENCE = "01"


def sample_settings() -> SimulationSettings:
    """Settings from which the sample was made: the defaults."""
    return SimulationSettings()


def sample_folder() -> Path:
    """Folder of the sample: images in ``01``, truth in ``01_GT/TRA``, annotations beside them.

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


SETTINGS_FILE = "simulation.json"
"""Beside the truth: the settings from which the movie can be made again."""


def write_ctc(movie: SimulatedMovie, folder: Path, sequence: str = "01") -> Path:
    """Write image, truth and settings below `folder`.

    Files are ``NN/tTTT.tif``, ``NN_GT/TRA/man_trackTTT.tif`` (full masks whose ids are track
    ids), ``NN_GT/TRA/man_track.txt`` (rows ``L B E P``) and ``NN_GT/simulation.json``, with NN
    the `sequence`; TIFFs are compressed by zlib and carry scale and frame interval.

    Returns
    -------
    Path
        The folder of the images.

    Raises
    ------
    OutputError
        Where the sequence exists already or cannot be written; nothing partial is left.
    """
    frames = (
        SimulatedFrame(t, movie.image[t], movie.labels[t], movie.nodes[movie.nodes["frame"] == t])
        for t in range(movie.settings.frames)
    )
    return _write(movie.settings, frames, lambda: movie.tracks, Path(folder), sequence)


def simulate_to_folder(
    settings: SimulationSettings,
    folder: Path,
    sequence: str = "01",
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Simulate a movie straight into `folder` with one frame in memory at a time.

    Parameters
    ----------
    settings
        What the movie looks like.
    folder, sequence
        See `write_ctc`, also for what is returned and raised.
    progress
        Called with the number of frames done after each frame.
    """
    simulation = Simulation(settings)

    def counted() -> Iterable[SimulatedFrame]:
        for frame in simulation:
            yield frame
            if progress is not None:
                progress(frame.t + 1)

    return _write(settings, counted(), lambda: simulation.tracks, Path(folder), sequence)


def _write(
    settings: SimulationSettings,
    frames: Iterable[SimulatedFrame],
    tracks: Callable[[], pd.DataFrame],
    folder: Path,
    sequence: str,
) -> Path:
    image_name, truth_name = sequence, f"{sequence}_GT"
    for name in (image_name, truth_name):
        if (folder / name).exists():
            raise OutputError(
                f"{folder / name} exists already; choose another folder or remove it first"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    except OSError as error:
        raise OutputError(f"cannot write into {folder}: {error.strerror}") from error
    try:
        _write_frames(settings, frames, partial / image_name, partial / truth_name)
        _write_tables(settings, tracks(), partial / truth_name)
        # Images last: where they are, the truth is there too.
        for name in (truth_name, image_name):
            (partial / name).replace(folder / name)
    except OSError as error:
        raise OutputError(f"cannot write the movie into {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder / image_name


def _write_frames(
    settings: SimulationSettings, frames: Iterable[SimulatedFrame], images: Path, truth: Path
) -> None:
    digits = 3 if settings.frames <= 1000 else len(str(settings.frames - 1))
    images.mkdir()
    (truth / "TRA").mkdir(parents=True)
    for frame in frames:
        number = f"{frame.t:0{digits}d}"
        _write_tiff(images / f"t{number}.tif", frame.image, settings)
        _write_tiff(truth / "TRA" / f"man_track{number}.tif", frame.labels, settings)


def _write_tables(settings: SimulationSettings, tracks: pd.DataFrame, truth: Path) -> None:
    rows = tracks[["label", "begin", "end", "parent"]].to_numpy().tolist()
    lines = "".join(f"{a} {b} {c} {d}\n" for a, b, c, d in rows)
    (truth / "TRA" / "man_track.txt").write_text(lines, encoding="ascii", newline="\n")
    text = json.dumps(asdict(settings), indent=2) + "\n"
    (truth / SETTINGS_FILE).write_text(text, encoding="ascii", newline="\n")


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
