"""A window that is killed loses nothing: what was clicked is there when the movie is reopened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tifffile

from bridgetrack.annotations.store import load_annotations

pytestmark = pytest.mark.filterwarnings("ignore")

_PATIENCE = 120
"""Seconds after which a window that says nothing is taken for broken."""

# Opens a movie as `bridgetrack open` does, clicks cells on the canvas, tells what it gave, and
# waits to be killed in the middle of training.
_WINDOW = """
import json, sys, time
from pathlib import Path
import numpy as np
import napari
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from bridgetrack.ui.panel import state_of
from bridgetrack.ui.workflow import fill
from bridgetrack.ui.layers import camera_of

viewer = napari.Viewer(show=True)
viewer.window.resize(1200, 800)
widget = fill(viewer, Path(sys.argv[1]), Path(sys.argv[2]))
state = state_of(viewer)
session = state.session
while session.tracking is None:
    QTest.qWait(20)
widget.open_step(1)
QTest.qWait(300)
canvas = next(w for w in QApplication.allWidgets()
              if "CanvasBackend" in type(w).__name__ and w.isVisible())
camera = camera_of(viewer)
detections = session.scene.detections
frame = state.canvas.frame
rows = [r for r in np.flatnonzero(detections.frame == frame)
        if np.abs(detections.position[r] - detections.position.mean(axis=0)).max() < 60][:6]
for row in rows:
    place = detections.position[row] - np.array(camera.center[-2:])
    middle = np.array([canvas.height(), canvas.width()]) / 2
    y, x = place * camera.zoom + middle
    QTest.mouseMove(canvas, QPoint(round(x), round(y)))
    QTest.qWait(10)
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(x), round(y)))
widget.train.go.click()
given = {"path": str(session.answers.path), "ids": [a.id for a in session.annotations]}
print("GIVEN " + json.dumps(given), flush=True)
while True:
    QTest.qWait(20)
"""


@pytest.fixture
def files(tmp_path, pixels) -> tuple[Path, Path]:
    image, labels = pixels
    paths = tmp_path / "movie.tif", tmp_path / "cells.tif"
    tifffile.imwrite(paths[0], image[:4], metadata={"axes": "TYX"})
    tifffile.imwrite(paths[1], labels[:4], metadata={"axes": "TYX"})
    return paths


def clicked_and_killed(files, folder) -> dict:
    """What a window says it was given before it is killed."""
    errors = folder / "errors.txt"
    with errors.open("w") as sink:
        window = subprocess.Popen(
            [sys.executable, "-c", _WINDOW, *map(str, files)],
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
            env={**os.environ, "NAPARI_CONFIG": str(folder / "napari.yaml")},
        )
        try:
            limit = time.monotonic() + _PATIENCE
            assert window.stdout is not None
            for line in window.stdout:
                if line.startswith("GIVEN "):
                    return json.loads(line.removeprefix("GIVEN "))
                assert time.monotonic() < limit
            raise AssertionError(errors.read_text())
        finally:
            if window.poll() is None:
                window.send_signal(signal.SIGKILL)
            window.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_window_loses_nothing(viewer, qtbot, files, tmp_path):
    from bridgetrack.ui.panel import state_of
    from bridgetrack.ui.workflow import fill

    given = clicked_and_killed(files, tmp_path)
    assert len(given["ids"]) >= 4
    path = Path(given["path"])
    assert path.parent == tmp_path, "the answers are kept beside the movie"
    assert [a.id for a in load_annotations(path)] == given["ids"]

    widget = fill(viewer, *files)
    session = state_of(viewer).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert [a.id for a in session.annotations] == given["ids"]
    resume = widget.segment.resume
    assert resume.isVisible()
    assert f"{len(given['ids'])} answers" in resume.words.text()
    session.answers.undo()
    assert len(session.annotations) == len(given["ids"]) - 1, "undo reaches back, too"
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=20_000)
    resume.afresh.click()
    assert len(session.annotations) == 0
    assert len(load_annotations(path)) == 0
    assert len(load_annotations(path.with_name(path.name + ".old"))) == len(given["ids"]) - 1
