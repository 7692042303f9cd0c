"""CPU time from a click to the annotation drawn, with 1,000 and 5,000 cells in the frame.

Run with a screen (`xvfb-run -a python benchmarks/click_latency.py`). The click goes through the
real canvas: hit test, answer, autosave, overlay and panel are all in the first figure. The second
also has the drawing of the whole canvas and of the panel, by a software renderer under xvfb.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

GOALS = {1000: 0.050, 5000: 0.150}
CLICKS = 15


def movie(cells: int, frames: int = 3) -> np.ndarray:
    """Label frames with small discs on a jittered grid."""
    rng = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(cells)))
    pitch, radius = 16, 5
    labels = np.zeros((frames, side * pitch, side * pitch), dtype=np.uint16)
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    inside = y**2 + x**2 <= radius**2
    for t in range(frames):
        for k in range(cells):
            row, column = divmod(k, side)
            cy, cx = (np.array([row, column]) * pitch + 8 + rng.integers(-2, 3, 2)).tolist()
            cy, cx = (int(np.clip(c, radius, side * pitch - radius - 1)) for c in (cy, cx))
            labels[t, cy + y[inside], cx + x[inside]] = k + 1
    return labels


def measure(cells: int) -> list[tuple[float, float]]:
    """CPU seconds of the window's thread for each click: until noted, and until drawn."""
    import napari
    from qtpy.QtCore import QPoint, Qt
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QApplication

    from bridgetrack.ui.layers import camera_of
    from bridgetrack.ui.panel import state_of

    viewer = napari.Viewer(show=True)
    viewer.window.resize(1200, 800)
    viewer.add_labels(movie(cells), name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    while state.session.tracking is None:
        QTest.qWait(50)
    widget.open_step(1)
    QTest.qWait(300)
    kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
    canvas = next(w for w in kinds if w.isVisible())
    detections = state.session.scene.detections
    camera: Any = camera_of(viewer)
    seconds = []
    rng = np.random.default_rng(1)
    frame = state.canvas.frame
    rows = rng.choice(np.flatnonzero(detections.frame == frame), CLICKS, replace=False)
    for row in rows.tolist():
        centre = np.array([canvas.height(), canvas.width()]) / 2
        where = (detections.position[row] - np.array(camera.center[-2:])) * camera.zoom + centre
        before = len(state.session.annotations)
        spot = QPoint(round(where[1]), round(where[0]))
        QTest.mouseMove(canvas, spot)
        QTest.qWait(50)
        start = time.thread_time()
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=spot)
        noted = time.thread_time() - start
        QApplication.processEvents()
        seconds.append((noted, time.thread_time() - start))
        assert len(state.session.annotations) == before + 1, "the click hit its cell"
        QTest.qWait(50)
        while state.session.busy("correct"):
            QTest.qWait(20)
    viewer.close()
    return seconds


def main() -> None:
    """Print one line per size."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = str(Path(folder))
        for cells, goal in GOALS.items():
            noted, drawn = 1000 * np.array(measure(cells)).T
            print(
                f"- {cells} cells in the frame, ms of CPU a click: until noted median "
                f"{np.median(noted):.0f}, worst {noted.max():.0f}; until drawn median "
                f"{np.median(drawn):.0f}, worst {drawn.max():.0f} (goal {1000 * goal:.0f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
