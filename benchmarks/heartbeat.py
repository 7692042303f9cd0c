"""How long the window stands still while the plugin measures, asks, trains, tracks, finds cells.

Run with a screen: `xvfb-run -a python benchmarks/heartbeat.py [FOLDER of a CTC movie]`; without a
folder the sample is taken. A timer beats every 5 ms in the event loop. For each kind of work the
longest pauses between two beats are printed, each with the CPU time that the window's own thread
and that all threads used in it: on a busy machine a pause is longer than both. The most CPU time
that was used in any pause is what remains of it on a machine that does nothing else.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GOAL = 0.100
SHOWN = 3
QUESTIONS = 20
BETWEEN = 0.5


class Pulse:
    """Beats in the event loop."""

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self._beats: list[tuple[float, float, float]] = []
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)

    def _beat(self) -> None:
        self._beats.append((time.perf_counter(), time.thread_time(), time.process_time()))

    def during(self, name: str, start: Callable[[], Any], done: Callable[[], bool]) -> None:
        """Print the longest pauses from `start` until `done`."""
        from qtpy.QtTest import QTest

        self._beats.clear()
        self._timer.start(5)
        begin = time.perf_counter()
        self._beat()
        start()
        # Ten more beats, so that the drawing of the result is in it.
        quiet = 0
        while quiet < 10:
            QTest.qWait(10)
            quiet = quiet + 1 if done() else 0
        self._timer.stop()
        pauses, own, total = np.diff(np.array(self._beats), axis=0).T
        longest = np.argsort(pauses)[::-1][:SHOWN]
        shown = ", ".join(
            f"{1000 * pauses[k]:.0f} ({1000 * own[k]:.0f}, {1000 * total[k]:.0f})" for k in longest
        )
        late = int((pauses > GOAL).sum())
        seconds = time.perf_counter() - begin
        print(
            f"{name}: {seconds:.1f} s, longest pauses {shown} ms, "
            f"{late} above {1000 * GOAL:.0f} ms; most CPU time in a pause "
            f"{1000 * own.max():.0f} ms of the window's thread, {1000 * total.max():.0f} ms of all",
            flush=True,
        )


def open_movie_of(viewer: Any, folder: Path | None) -> None:
    """The sample, or a CTC movie with its truth as the segmentation."""
    if folder is None:
        viewer.open_sample("bridgetrack", "sample")
        return
    from napari.layers import Layer

    from bridgetrack.movie import open_labels, open_movie
    from bridgetrack.ui.file_menu import image_data, labels_data

    truth = next(p for n in ("FULL", "TRA") if (p := folder / "01_GT" / n).is_dir())
    if (folder / "01").is_dir():
        image = open_movie(folder / "01")
        viewer.add_layer(Layer.create(*image_data(image, folder.name, folder / "nowhere" / "01")))
    viewer.add_layer(Layer.create(*labels_data(open_labels(truth), "Cells", folder / "none" / "x")))


def _asked(state: Any) -> bool:
    """Whether a question is in view and nothing is under way."""
    return state.session.questions.current is not None and not state.session.questions.busy


class Answering:
    """Answers question after question, as somebody who looks at each for a moment."""

    def __init__(self, state: Any) -> None:
        from qtpy.QtCore import QTimer

        self._questions, self._annotator = state.session.questions, state.annotator
        self._left = QUESTIONS
        self._last = time.perf_counter()
        self._timer = QTimer()
        self._timer.timeout.connect(self._answer)
        self._timer.start(20)

    @property
    def done(self) -> bool:
        """Whether everything is answered and learned."""
        return self._left == 0 and not self._questions.busy

    def _answer(self) -> None:
        """Yes to most; now and then no, "I cannot tell", and a change of mind."""
        if self._questions.current is None or time.perf_counter() - self._last < BETWEEN:
            return
        self._last = time.perf_counter()
        self._left -= 1
        k, annotator = self._left, self._annotator
        acts = {3: annotator.reject, 6: annotator.cannot_tell, 9: annotator.undo}
        acts.get(k % 10, annotator.accept)()
        if self._left == 0:
            self._timer.stop()


def measure_masks(pulse: Pulse, session: Any, widget: Any) -> None:
    """Find cells, mend a mask, and choose the masks again."""
    widget.open_step(0)
    find, found = widget.segment.find, widget.segment.source.labels
    before = found.layer

    def settled() -> bool:
        there = session.movie is not None and session.movie.layers[1] is found.layer
        busy = session.busy("choose", "measure", "track")
        return bool(there and session.tracking is not None and not busy)

    def new() -> bool:
        return found.layer is not before and settled()

    pulse.during("finding cells", find.run, new)
    place = tuple(session.scene.detections.table[["y", "x"]].to_numpy()[3].tolist())
    pulse.during("mending a mask", lambda: session.mend("remove", 0, place), settled)
    pulse.during("choosing masks again", session.choose_again, settled)


def main() -> None:
    """Measure a movie from opening to correcting."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        import napari
        from qtpy.QtTest import QTest

        from bridgetrack.ui.panel import state_of

        viewer = napari.Viewer(show=True)
        viewer.window.resize(1280, 800)
        QTest.qWait(500)
        chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else None
        pulse = Pulse()
        pulse.during("napari alone", lambda: open_movie_of(viewer, chosen), lambda: True)
        viewer.layers.clear()
        _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
        state = state_of(viewer)
        session, annotator, trainer = state.session, state.annotator, state.session.trainer
        QTest.qWait(500)
        open_movie_of(viewer, chosen)
        pulse.during("measuring", lambda: None, lambda: session.tracking is not None)
        QTest.qWait(500)
        pulse.during("looking for questions", widget.by_model.click, lambda: _asked(state))
        answering = Answering(state)
        pulse.during(f"answering {QUESTIONS} questions", lambda: None, lambda: answering.done)
        widget.open_step(1)
        annotator.cancel()
        n = len(session.scene.detections)
        rows = range(0, min(n, 20000), max(n // 40, 1))
        pulse.during("pointing", lambda: annotator.point_at(rows[1]), lambda: True)
        frames = session.scene.detections.frame
        for row in rows:
            annotator.frame = int(frames[row])
            annotator.point_at(row)
            annotator.accept()
            QTest.qWait(10)
        while session.busy("correct"):
            QTest.qWait(20)
        widget.open_step(2)
        pulse.during("training", widget.train.go.click, lambda: trainer.training is not None)
        while session.busy("track", "correct"):
            QTest.qWait(20)
        widget.open_step(3)
        doubts = widget.track.doubts
        pulse.during("showing the tracks", widget.track.go.click, lambda: doubts.rowCount() > 0)
        pulse.during("tracking", session.track, lambda: not session.busy("track"))
        annotator.frame = int(frames[rows[5] + 3])
        annotator.point_at(rows[5] + 3)
        pulse.during("correcting", annotator.reject, lambda: not session.busy("correct"))
        measure_masks(pulse, session, widget)
        viewer.close()


if __name__ == "__main__":
    main()
