"""How long the window stands still while it works, and how soon the next question is shown.

    xvfb-run -a python benchmarks/window.py [FOLDER of a CTC movie] [--answers 30]

Without a folder the sample is taken. A timer beats every 5 ms in the event loop; for each kind of
work the longest pauses between two beats are printed, and behind each what is left of it without
the wait for a processor, as Linux counts it: the pause on a machine that does nothing else. Answers
are key presses on the real canvas, half a second apart, while the model is updated in the
background; a figure ends when the canvas has been painted with the next question.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOAL = 100.0
SHOWN = 3


def wait(milliseconds: int) -> None:
    """Let the event loop run."""
    from qtpy.QtTest import QTest

    QTest.qWait(milliseconds)


class Pulse:
    """Beats in the event loop."""

    def __init__(self) -> None:
        from qtpy.QtCore import Qt, QTimer

        self._beats: list[tuple[float, float]] = []
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        waits = Path("/proc/thread-self/schedstat")
        self._waits = os.open(waits, os.O_RDONLY) if waits.exists() else -1

    def _beat(self) -> None:
        waited = 0.0 if self._waits < 0 else 1e-9 * int(os.pread(self._waits, 80, 0).split()[1])
        self._beats.append((time.perf_counter(), waited))

    def during(self, name: str, start: Callable[[], Any], done: Callable[[], bool]) -> None:
        """Print the longest pauses from `start` until `done`."""
        self._beats.clear()
        self._timer.start(5)
        begin = time.perf_counter()
        self._beat()
        start()
        quiet = 0
        while quiet < 10:  # ten more beats, so that the drawing of the result is in it
            wait(10)
            quiet = quiet + 1 if done() else 0
        self._timer.stop()
        print(f"- {name}: {time.perf_counter() - begin:.1f} s, {self._told()}", flush=True)

    def _told(self) -> str:
        """The longest pauses in words."""
        pauses, waited = 1000 * np.diff(np.array(self._beats), axis=0).T
        alone = pauses - waited
        longest = np.argsort(alone)[::-1][:SHOWN]
        shown = ", ".join(f"{pauses[k]:.0f} ({alone[k]:.0f})" for k in longest)
        return f"longest pauses {shown} ms; above {GOAL:.0f} ms: {(alone > GOAL).sum()}"


def open_movie_of(state: Any, folder: Path | None) -> None:
    """The sample, or a CTC movie with its truth as the segmentation, read as what people drop."""
    if folder is None:
        state.viewer.open_sample("bridgetrack", "sample")
        return
    from bridgetrack.movie import open_labels, open_movie
    from bridgetrack.ui.file_menu import image_data, labels_data

    truth = next(p for n in ("FULL", "TRA") if (p := folder / "01_GT" / n).is_dir())

    def read() -> list[Any]:
        cells = labels_data(open_labels(truth), "Cells", folder / "none" / "x")
        if not (folder / "01").is_dir():
            return [cells]
        image = open_movie(folder / "01")
        return [image_data(image, folder.name, folder / "nowhere" / "01"), cells]

    state.read(folder.name, read, state.add_layers)


def paints_of(canvas: Any, layer: Any) -> list[float]:
    """A list that gets the time of each painting of a canvas after a layer changed."""
    from qtpy.QtCore import QEvent, QObject

    painted: list[float] = []
    changed: list[bool] = []

    class Filter(QObject):
        def eventFilter(self, _: QObject, event: QEvent) -> bool:  # noqa: N802
            if changed and event.type() == QEvent.Type.Paint:
                changed.clear()
                painted.append(time.perf_counter())
            return False

    canvas.installEventFilter(Filter(canvas))
    layer.events.set_data.connect(lambda: changed.append(True))
    return painted


def answer(state: Any, answers: int) -> None:
    """Answer question after question by keys, and print how soon the next was drawn."""
    from qtpy.QtCore import Qt
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QApplication

    kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
    canvas = next(w for w in kinds if w.isVisible())
    painted = paints_of(canvas, state.viewer.layers["Marks"])
    questions, figures, late = state.session.questions, [], 0
    for k in range(answers):
        painted.clear()
        before, start = questions.current, time.perf_counter()
        QTest.keyClick(canvas, Qt.Key.Key_U if k % 10 == 9 else Qt.Key.Key_Return)
        while not painted:
            wait(1)
        figures.append(1000 * (time.perf_counter() - start))
        late += questions.current is None or questions.current is before
        wait(500)
        while questions.current is None and questions.busy:
            wait(20)
    print(
        f"- from an answer to the next question: median {np.median(figures):.0f}, 95 % "
        f"{np.quantile(figures, 0.95):.0f}, longest {max(figures):.0f} ms; "
        f"none was ready {late} times of {answers}",
        flush=True,
    )


def measure(viewer: Any, pulse: Pulse, movie: Path | None, answers: int) -> None:
    """From opening a movie to correcting its tracks."""
    from bridgetrack.ui.state import state_of

    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    session, annotator = state.session, state.annotator
    wait(500)
    opened = lambda: open_movie_of(state, movie)  # noqa: E731
    pulse.during("opening and measuring", opened, lambda: session.tracking is not None)
    pulse.during("opening the questions", lambda: widget.open_step(1), lambda: True)
    asked = lambda: session.questions.current is not None and not session.questions.busy  # noqa: E731
    pulse.during("looking for questions", widget.annotate.next.click, asked)
    pulse.during("answering", lambda: answer(state, answers), lambda: not session.questions.busy)
    annotator.cancel()
    row = len(session.scene.detections) // 2
    pulse.during("pointing", lambda: annotator.point_at(row), lambda: True)
    pulse.during("opening the training", lambda: widget.open_step(2), lambda: True)
    trainer = session.trainer
    pulse.during("training", widget.train.go.click, lambda: trainer.training is not None)
    settled = lambda: not (session.busy("track") or session.busy("correct"))  # noqa: E731
    while not settled():
        wait(20)
    pulse.during("opening the tracks", lambda: widget.open_step(3), lambda: True)
    pulse.during("tracking", session.tracker.track, settled)
    annotator.frame = int(session.scene.detections.frame[row])
    annotator.point_at(row)
    pulse.during("correcting", annotator.reject, settled)


def main() -> None:
    """Print the pauses of every kind of work."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("movie", nargs="?", type=Path, help="folder with 01 and 01_GT")
    parser.add_argument("--answers", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        import napari

        viewer = napari.Viewer(show=True)
        viewer.window.resize(1280, 800)
        wait(500)
        measure(viewer, Pulse(), given.movie, given.answers)
        viewer.close()


if __name__ == "__main__":
    main()
