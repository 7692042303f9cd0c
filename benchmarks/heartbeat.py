"""How long the window stands still while the plugin measures, trains and tracks the sample.

Run with a screen: `xvfb-run -a python benchmarks/heartbeat.py`. A timer beats every 5 ms in the
event loop; the longest pauses between two beats are printed for each kind of work.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

GOAL = 0.100


class Pulse:
    """Beats in the event loop."""

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self._beats: list[float] = []
        self._timer = QTimer()
        self._timer.timeout.connect(lambda: self._beats.append(time.perf_counter()))

    def during(self, name: str, start: Callable[[], Any], done: Callable[[], bool]) -> None:
        """Print the longest pauses from `start` until `done`."""
        from qtpy.QtTest import QTest

        self._beats.clear()
        self._timer.start(5)
        start()
        begin = time.perf_counter()
        while not done() or len(self._beats) < 10:
            QTest.qWait(10)
        self._timer.stop()
        pauses = np.sort(np.diff(self._beats))[::-1]
        shown = ", ".join(f"{1000 * p:.0f}" for p in pauses[:3])
        late = int((pauses > GOAL).sum())
        seconds = time.perf_counter() - begin
        print(f"{name}: {seconds:.1f} s, longest pauses {shown} ms, {late} above {1000 * GOAL:.0f}")


def main() -> None:
    """Measure the sample from opening to correcting."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        import napari
        from qtpy.QtTest import QTest

        from bridgetrack.ui.desk import desk_of

        viewer = napari.Viewer(show=True)
        _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
        desk = desk_of(viewer)
        session, annotator, trainer = desk.session, desk.annotator, desk.trainer
        viewer.open_sample("bridgetrack", "sample")
        QTest.qWait(100)
        pulse = Pulse()
        pulse.during("measuring", lambda: None, lambda: session.tracking is not None)
        for row in range(0, 2000, 60):
            annotator.point_at(row)
            annotator.accept()
        while session.busy("correct"):
            QTest.qWait(20)
        widget.open_step(2)
        pulse.during("training", widget.train.go.click, lambda: trainer.training is not None)
        widget.open_step(3)
        widget.track.go.click()
        QTest.qWait(500)
        pulse.during("tracking", session.track, lambda: not session.busy("track"))
        annotator.point_at(700)
        pulse.during("correcting", annotator.break_link, lambda: not session.busy("correct"))
        viewer.close()


if __name__ == "__main__":
    main()
