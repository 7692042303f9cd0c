"""Where the answers about a movie are kept, and beside them cells that have no file."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path
from psygnal import Signal

from bridgetrack.annotations.files import SUFFIX
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import write_text
from bridgetrack.movie import Movie, open_labels, save_labels
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline.finding import Finding, beside_labels, finding_to_json, how_found
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.schema import json_text
from bridgetrack.session.movie import MovieAndCells

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "keep cells"
"""Name of the background work: writing the cells down."""


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


class KeptCells:
    """Writes the cells of a movie down where they have no file of their own.

    Answers about masks are kept by themselves. Signals: `aging` when the cells changed by other
    ways, so that they are to be kept soon.
    """

    aging = Signal()

    def __init__(self, movie: Session) -> None:
        self._movie = movie
        self.problem = ""  # why the cells could not be kept last, empty where they could
        self._stale, self._writing = False, False
        self._first = True
        movie.movie_changed.connect(self._on_movie)
        movie.masks_changed.connect(self._on_masks)
        movie.scene_changed.connect(self._on_scene)

    @property
    def path(self) -> Path | None:
        """Where the cells are kept; None where they need not be."""
        movie, answers = self._movie.movie, self._movie.answers
        if movie is None or movie.labels is None or movie.files[1] is not None:
            return None
        return None if answers is None or answers.path is None else cells_path(answers.path)

    @property
    def stale(self) -> bool:
        """Whether there is something that is not kept yet."""
        return self.path is not None and (self._stale or self._writing)

    def keep(self) -> None:
        """Write the cells down in the background."""
        movie, path = self._movie.movie, self.path
        if movie is None or path is None:
            return
        self._stale, self._writing = False, True
        self._movie.run(JOB, lambda: _keeping(movie, path), lambda _: self._done(), self._failed)

    def keep_now(self) -> None:
        """Write the cells down before returning, where that is still to be done."""
        movie, path = self._movie.movie, self.path
        if movie is None or path is None or not self.stale:
            return
        self._movie.cancel(JOB)
        try:
            run(_keeping(movie, path))
        except (BridgetrackError, OSError) as error:
            self.problem = str(error)
        else:
            self._done()

    def _done(self) -> None:
        self._writing, self.problem = False, ""

    def _failed(self, error: Exception) -> None:
        self._writing, self._stale, self.problem = False, True, str(error)

    def _on_movie(self) -> None:
        movie = self._movie.movie
        self._stale, self._writing, self.problem = False, False, ""
        self._first = True
        if movie is not None and not movie.kept:
            self.keep()

    def _on_masks(self, frames: set[int]) -> None:
        if len(frames) > 1:
            self.keep()

    def _on_scene(self) -> None:
        first, self._first = self._first, False
        if not first and self.path is not None:
            self._stale = True
            self.aging.emit()


def _keeping(movie: MovieAndCells, path: Path) -> Steps[None]:
    labels = movie.labels
    assert labels is not None
    yield Progress("Keeping the cells", 0.0)
    highest = 0
    for t in range(labels.n_frames):
        highest = max(highest, int(label_frame(labels, t).max(initial=0)))
        yield Progress("Keeping the cells", 0.3 * t / labels.n_frames)
    save_labels(labels, path, dtype="uint16" if highest < 2**16 else "uint32")
    record = beside_labels(path, "run")
    if movie.found is None:
        record.unlink(missing_ok=True)
    else:
        text = json_text(finding_to_json(movie.found), "how cells were found", ascii_only=False)
        write_text(record, text, "how cells were found")


@dataclass(frozen=True)
class Kept:
    """Cells that were kept, and how they were found, where that is known."""

    labels: Movie
    found: Finding | None


def kept_cells(answers: Path, geometry: Geometry) -> Kept | None:
    """The cells kept beside the answers about a movie; None where there are none that fit."""
    path = cells_path(answers)
    if not path.exists():
        return None
    try:
        labels = open_labels(path, scale=geometry.scale, unit=geometry.unit)
    except InputError:
        return None
    there = labels.geometry
    if (there.n_frames, there.shape) != (geometry.n_frames, geometry.shape):
        return None
    return Kept(labels, how_found(path))
