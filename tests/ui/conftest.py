"""Fixtures of the plugin's tests: a short movie, controllers without Qt, a viewer with a state."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asking_table import OPTIONS, Table
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.library import Library
from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.session.keep_model import ModelKeeper
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.proposals import proposals
from bridgetrack.session.session import Session
from bridgetrack.session.start_choice import StartChoice
from bridgetrack.simulation.folder import sample_folder
from bridgetrack.ui.annotator import Annotator
from hand import Hand
from pace import Pace

FRAMES = 8


def _first(movie: Movie, n: int) -> np.ndarray:
    return np.asarray(movie.array[:n, 0].compute())


@pytest.fixture(scope="session")
def pixels() -> tuple[np.ndarray, np.ndarray]:
    """Image and labels of the first frames of the sample."""
    folder = sample_folder()
    return (
        _first(open_movie(folder / "01"), FRAMES),
        _first(open_labels(folder / "01_GT" / "TRA"), FRAMES),
    )


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
    made = Session(library=library, options=OPTIONS)
    assert made.open(source, tmp_path / "answers.json")
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
def annotator(session: Session) -> Annotator:
    """Turns pointing on the short movie into answers."""
    return Annotator(session)


@pytest.fixture
def at(session: Session) -> Callable[[int], tuple[int, tuple[float, float]]]:
    """Frame and position in pixels of a row."""

    def place(row):
        table = session.scene.detections.table
        return int(table["frame"][row]), (float(table["y"][row]), float(table["x"][row]))

    return place


@pytest.fixture
def row(session: Session, annotator: Annotator) -> int:
    """Row of a cell that moves on and could do otherwise."""
    # The annotator was made after the movie was opened; tell it.
    session.scene_changed.emit()
    found = [proposals(session.tracking, r) for r in range(len(session.scene.detections))]
    return next(r for r, p in enumerate(found) if len(p) > 2 and p[0].event.event == Event.MOVE)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """An empty library."""
    return Library(tmp_path / "models")


@pytest.fixture
def starts(session: Session) -> StartChoice:
    """What training can start from; the short movie is tracked already."""
    return session.starts


@pytest.fixture
def keeper(session: Session) -> ModelKeeper:
    """Keeps models in the library."""
    return session.keeper


@pytest.fixture
def table(session: Session) -> Table:
    """The controllers of the short movie's questions."""
    return Table(session)


@pytest.fixture
def asked(table: Table) -> Table:
    """As `table`, with a question in view."""
    table.annotator.suggest()
    assert table.questions.current is not None
    return table


def _has_screen() -> bool:
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or shutil.which("Xvfb"))


@pytest.fixture
def viewer(request: pytest.FixtureRequest) -> Any:
    """A visible viewer."""
    pytest.importorskip("napari", reason="napari is not installed")
    if not _has_screen():
        pytest.skip("no display: install Xvfb (see .ci/system-packages.sh)")
    factory = request.getfixturevalue("make_napari_viewer")
    # napari and its dependencies warn about their own futures.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = factory(show=True)
    made.window.resize(1200, 800)
    return made


@pytest.fixture
def hand(viewer: Any, qtbot: Any) -> Hand:
    """A hand for the viewer's mouse and keyboard."""
    return Hand(viewer, qtbot)


@pytest.fixture
def stack(viewer: Any) -> Any:
    """A Labels layer of four cells in three dimensions that move to the right."""
    labels = np.zeros((4, 8, 60, 60), dtype=np.uint16)
    for t in range(4):
        for k, (z, y, x) in enumerate([(2, 15, 15), (5, 15, 40), (3, 45, 20), (6, 45, 45)], 1):
            labels[t, z - 1 : z + 2, y - 5 : y + 6, x - 5 + t : x + 6 + t] = k
    return viewer.add_labels(labels, name="stack", scale=(1, 2, 0.5, 0.5))


@pytest.fixture
def open_short(
    viewer: Any, qtbot: Any, pixels: tuple[np.ndarray, np.ndarray]
) -> Callable[[str], Any]:
    """Opens a panel of the plugin on the short movie and waits until it is tracked."""

    def opened(panel: str) -> Any:
        from bridgetrack.ui.viewer_state import state_of

        image, labels = pixels
        scale = (1, 0.645, 0.645)
        viewer.add_image(image, name="short", scale=scale)
        viewer.add_labels(labels.copy(), name="cells", scale=scale)
        _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", panel)
        state = state_of(viewer)
        if panel in ("Bridgetrack", "Segment"):
            qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=20_000)
            qtbot.wait(50)
        return widget

    return opened


@pytest.fixture
def pace(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pace]:
    """Background work that cannot go on unless the event loop beats."""
    from bridgetrack.ui import background

    made, drive = Pace(), background._drive

    def paced(work: Any) -> Generator[Any, None, Any]:
        return (yield from drive(lambda: made.wrap(work())))

    monkeypatch.setattr(background, "_drive", paced)
    yield made
    made.held = False
