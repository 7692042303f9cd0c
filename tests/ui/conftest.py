"""Fixtures of the plugin's tests: a short movie, controllers without Qt, a viewer with a desk."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.simulation.sample import sample_folder
from bridgetrack.ui.jobs import InlineRunner
from bridgetrack.ui.session import Session, Source

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
def source(pixels: tuple[np.ndarray, np.ndarray]) -> Source:
    """The short movie as the session wants it."""
    image, labels = pixels
    return Source(
        open_labels(labels.copy(), axes="TYX", scale=(0.645, 0.645)),
        open_movie(image, axes="TYX", scale=(0.645, 0.645)),
        "short",
    )


@pytest.fixture
def session(source: Source, tmp_path: Path) -> Iterator[Session]:
    """A session with the short movie open, all work done in this thread."""
    made = Session(InlineRunner())
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


class Hand:
    """Points, clicks and types on the real canvas."""

    def __init__(self, viewer: Any, qtbot: Any) -> None:
        from qtpy.QtWidgets import QApplication

        self.viewer, self.qtbot = viewer, qtbot
        kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
        self.canvas = next(w for w in kinds if w.isVisible())

    def _pixel(self, world: Any) -> Any:
        from qtpy.QtCore import QPoint

        from bridgetrack.ui.layers import camera_of

        camera = camera_of(self.viewer)
        centre = np.array([self.canvas.height(), self.canvas.width()]) / 2
        y, x = (np.asarray(world)[-2:] - np.array(camera.center[-2:])) * camera.zoom + centre
        return QPoint(round(x), round(y))

    def point(self, world: Any) -> None:
        """Move the pointer to a position in the movie's unit."""
        self.move(self._pixel(world))

    def move(self, pixel: Any, held: bool = False) -> None:
        """Move the pointer; sent to the canvas directly, for warping the pointer needs the X
        server to answer in time."""
        from qtpy.QtCore import QEvent, QPointF, Qt
        from qtpy.QtGui import QMouseEvent
        from qtpy.QtWidgets import QApplication

        none, left = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
        where, above = QPointF(pixel), QPointF(self.canvas.mapToGlobal(pixel))
        event = QMouseEvent(
            QEvent.Type.MouseMove, where, above, none, left if held else none,
            Qt.KeyboardModifier.NoModifier,
        )  # fmt: skip
        QApplication.sendEvent(self.canvas, event)
        self.qtbot.wait(5)

    def click(self, world: Any) -> None:
        """Point and click."""
        from qtpy.QtCore import Qt

        self.point(world)
        self.qtbot.mouseClick(self.canvas, Qt.MouseButton.LeftButton, pos=self._pixel(world))
        self.qtbot.wait(10)

    def key(self, key: str, control: bool = False) -> None:
        """Press a key, e.g. ``"Z"`` or ``"Return"``."""
        from qtpy.QtCore import Qt

        held = Qt.KeyboardModifier.ControlModifier if control else Qt.KeyboardModifier.NoModifier
        self.qtbot.keyClick(self.canvas, getattr(Qt.Key, f"Key_{key}"), held)
        self.qtbot.wait(10)


@pytest.fixture
def hand(viewer: Any, qtbot: Any) -> Hand:
    """A hand for the viewer's mouse and keyboard."""
    return Hand(viewer, qtbot)


@pytest.fixture
def open_short(
    viewer: Any, qtbot: Any, pixels: tuple[np.ndarray, np.ndarray]
) -> Callable[[str], Any]:
    """Opens a panel of the plugin on the short movie and waits until it is tracked."""

    def opened(panel: str) -> Any:
        from bridgetrack.ui.desk import desk_of

        image, labels = pixels
        scale = (1, 0.645, 0.645)
        viewer.add_image(image, name="short", scale=scale)
        viewer.add_labels(labels.copy(), name="cells", scale=scale)
        _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", panel)
        desk = desk_of(viewer)
        if panel in ("Bridgetrack", "Segment"):
            qtbot.waitUntil(lambda: desk.session.tracking is not None, timeout=20_000)
            qtbot.wait(50)
        return widget

    return opened


class Pace:
    """Makes background work wait at each of its steps until the event loop has beaten twice.

    Work that stops the event loop would wait for itself; it fails after `_PATIENCE` seconds.
    """

    _PATIENCE = 30.0

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self.beats = 0
        self.held = False
        self.steps: dict[str, int] = {}
        self.threads: set[int] = set()
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)
        self._timer.start(1)

    def _beat(self) -> None:
        self.beats += 1

    def wrap(self, steps: Generator[Any, None, Any]) -> Generator[Any, None, Any]:
        """The same work, waiting after each step."""
        self.threads.add(threading.get_ident())
        try:
            while True:
                step = next(steps)
                stage = str(getattr(step, "stage", type(step).__name__))
                self.steps[stage] = self.steps.get(stage, 0) + 1
                yield step
                self._wait()
        except StopIteration as stop:
            return stop.value
        finally:
            steps.close()

    def _wait(self) -> None:
        wanted, limit = self.beats + 2, time.monotonic() + self._PATIENCE
        while self.held or self.beats < wanted:
            time.sleep(0.001)
            assert time.monotonic() < limit, "the event loop stands still during work"


@pytest.fixture
def pace(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pace]:
    """Background work that cannot go on unless the event loop beats."""
    from bridgetrack.ui import workers

    made, drive = Pace(), workers._drive

    def paced(work: Any) -> Generator[Any, None, Any]:
        return (yield from drive(lambda: made.wrap(work())))

    monkeypatch.setattr(workers, "_drive", paced)
    yield made
    made.held = False
