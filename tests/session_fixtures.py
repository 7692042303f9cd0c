"""A session on a short movie, all work done at once, without a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.annotation import EventRef
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import Journal
from bridgetrack.annotations.history import AnswerHistory
from bridgetrack.files import sample_folder
from bridgetrack.models.library import Library
from bridgetrack.movie import Geometry, Movie, open_labels, open_movie
from bridgetrack.pipeline.project import Settings, settings_of
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.cells import proposals
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session

__all__ = ["library", "own_data_folder", "pixels", "said", "session", "source", "whole_pixels"]

FRAMES = 6
PART = slice(64, 328)
"""Rows and columns of the sample that are the short movie: half of its cells are enough."""
MIDDLE = 0.645 * (PART.stop - PART.start) / 2
"""Row and column of its middle in micrometres."""


def _first(movie: Movie, n: int) -> np.ndarray:
    return np.asarray(movie.array[:n, 0].compute())


def chosen_event(tracking: Tracking, row: int) -> EventRef | None:
    """What becomes of a cell in the present tracking."""
    best = proposals(tracking, row, limit=1)
    return best[0].event if best and best[0].chosen else None


def load_settings(project: Path) -> Settings:
    """What was set and learned about a movie, by its project, or by its file of answers."""
    nothing = AnswerHistory(AnnotationSet(Geometry(1, None, (1.0, 1.0))))
    answers = project / "answers.json" if project.suffix == ".bridgetrack" else project
    return settings_of(Journal(answers).read(nothing).settings, str(answers))


@pytest.fixture(scope="session")
def whole_pixels() -> tuple[np.ndarray, np.ndarray]:
    """Image and labels of the first frames of the sample."""
    folder = sample_folder()
    return (
        _first(open_movie(folder / "01"), FRAMES),
        _first(open_labels(folder / "01_GT" / "TRA"), FRAMES),
    )


@pytest.fixture(scope="session")
def pixels(whole_pixels: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Image and labels of the middle of these frames."""
    image, labels = (frames[:, PART, PART].copy() for frames in whole_pixels)
    return image, labels


@pytest.fixture
def source(pixels: tuple[np.ndarray, np.ndarray]) -> MovieAndCells:
    """The short movie as the session wants it."""
    image, labels = pixels
    return MovieAndCells(
        open_labels(labels.copy(), axes="TYX", scale=(0.645, 0.645)),
        open_movie(image, axes="TYX", scale=(0.645, 0.645)),
        "short",
    )


@pytest.fixture
def session(source: MovieAndCells, library: Library, tmp_path: Path) -> Iterator[Session]:
    """A session with the short movie open, all work done in this thread."""
    made = Session(library=library)
    assert made.open(source, tmp_path / "answers.bridgetrack")
    yield made
    made.close()


@pytest.fixture
def said(session: Session) -> list[tuple[str, str]]:
    """What the session tells people."""
    heard: list[tuple[str, str]] = []
    session.message.connect(lambda level, words: heard.append((level, words)))
    return heard


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Autosaved answers of layers without a file go to a folder of the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / "models")
