"""Where the answers about a movie are kept, and beside them what else is known about it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from platformdirs import user_data_path

from bridgetrack.annotations.files import SUFFIX
from bridgetrack.movie.geometry import Geometry


def autosave_path(movie: Path | None, name: str, geometry: Geometry) -> Path:
    """Where the answers about a movie are kept.

    Beside the movie, or in the user's data folder where there is no file or its folder cannot
    be written to.
    """
    if movie is not None and _writable(movie.parent):
        stem = movie.name if movie.is_dir() else movie.stem
        return movie.parent / f"{stem}{SUFFIX}"
    known = f"{movie.resolve() if movie else name}|{geometry.n_frames}|{geometry.shape}"
    mark = hashlib.sha256(known.encode()).hexdigest()[:12]
    plain = "".join(c if c.isalnum() else "_" for c in (movie.stem if movie else name))[:40]
    folder = user_data_path("bridgetrack", appauthor=False) / "annotations"
    return folder / f"{plain}-{mark}{SUFFIX}"


def project_answers(project: Path, geometry: Geometry) -> Path:
    """Where the answers given after a project was saved are kept: beside it."""
    if _writable(project.parent):
        return project.with_name(f"{project.stem}{SUFFIX}")
    return autosave_path(project, project.stem, geometry)


def check_path(answers: Path) -> Path:
    """Where a sample of the tracks is kept with what was said of it: beside the answers."""
    return _beside(answers, ".check.csv")


def cells_path(answers: Path) -> Path:
    """Where cells that are in no file are kept: beside the answers."""
    # no .tif, which would be taken for a frame in a folder of frames
    return _beside(answers, ".cells.zarr")


def _beside(answers: Path, suffix: str) -> Path:
    return answers.with_name(answers.name.removesuffix(SUFFIX) + suffix)


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)
