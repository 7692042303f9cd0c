"""How long the window stands still while the plugin measures, asks, trains, tracks, finds cells.

Run with a screen: `xvfb-run -a python benchmarks/heartbeat.py [FOLDER of a CTC movie]`; without a
folder the sample is taken. A timer beats every 5 ms in the event loop. For each kind of work the
longest pauses between two beats are printed. On a machine that does other things as well, a pause
is longer than the plugin makes it, as the window's thread waits for its turn. So each is followed
by what is left of it without that wait, as Linux counts it, and by the processor time that the
window's own thread and that all threads used in it. What is left is the pause on a machine that
does nothing else, or a little more: it still has the wait for other threads of the program that
wait for their turn themselves.

    --without finding     leave "finding cells" out, which takes minutes
    --why 60              print what the window's thread did in pauses with so many ms of its
                          processor time; slower, so that the figures are too high then
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GOAL = 0.100
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where a movie is looked for by its name."""
SHOWN = 3
QUESTIONS = 20
BETWEEN = 0.5
_LINES = 45


class Beat(NamedTuple):
    """Seconds at a beat: on the clock, waited for a processor, used by this thread, by all."""

    wall: float
    waited: float
    own: float
    total: float


class Pulse:
    """Beats in the event loop; `why` is the processor time from which on a pause is explained."""

    def __init__(self, why: float | None = None) -> None:
        from qtpy.QtCore import Qt, QTimer

        self._beats: list[Beat] = []
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        waits = Path("/proc/thread-self/schedstat")
        self._waits = os.open(waits, os.O_RDONLY) if waits.exists() else -1
        self._why = why
        self._profile = None if why is None else cProfile.Profile()

    def _beat(self) -> None:
        profile = self._profile
        if profile is not None:
            profile.disable()
        waited = 0.0 if self._waits < 0 else 1e-9 * int(os.pread(self._waits, 80, 0).split()[1])
        beat = Beat(time.perf_counter(), waited, time.thread_time(), time.process_time())
        if profile is not None and self._why is not None:
            if self._beats and beat.own - self._beats[-1].own > self._why:
                _explain(profile, self._beats[-1], beat)
            profile.clear()
            beat = beat._replace(own=time.thread_time())
            profile.enable()
        self._beats.append(beat)

    def during(self, name: str, start: Callable[[], Any], done: Callable[[], bool]) -> None:
        """Print the longest pauses from `start` until `done`."""
        from qtpy.QtTest import QTest

        self._beats.clear()
        self._timer.start(5)
        begin = time.perf_counter()
        if self._why is not None:
            print(f"== {name}", flush=True)
        self._beat()
        start()
        # Ten more beats, so that the drawing of the result is in it.
        quiet = 0
        while quiet < 10:
            QTest.qWait(10)
            quiet = quiet + 1 if done() else 0
        self._timer.stop()
        if self._profile is not None:
            self._profile.disable()
        seconds = time.perf_counter() - begin
        print(f"- {name}: {seconds:.1f} s, {told(self._beats)}", flush=True)


def told(beats: list[Beat]) -> str:
    """The longest pauses in words."""
    pauses, waited, own, total = np.diff(np.array(beats), axis=0).T
    alone = pauses - waited
    longest = np.argsort(alone)[::-1][:SHOWN]
    shown = ", ".join(
        f"{1000 * pauses[k]:.0f} ({1000 * alone[k]:.0f}; {1000 * own[k]:.0f}, "
        f"{1000 * total[k]:.0f})"
        for k in longest
    )
    return (
        f"longest pauses {shown} ms; above {1000 * GOAL:.0f} ms: {(pauses > GOAL).sum()}, "
        f"{(alone > GOAL).sum()} without the wait for a processor, {(own > GOAL).sum()} by the "
        f"processor time of the window's thread, of which one pause has {1000 * own.max():.0f} ms "
        "at most"
    )


def _explain(profile: cProfile.Profile, before: Beat, now: Beat) -> None:
    """Print what was done between two beats."""
    lines = io.StringIO()
    pstats.Stats(profile, stream=lines).sort_stats("cumulative").print_stats(_LINES)
    wall, waited, own, _ = 1000 * (np.array(now) - np.array(before))
    print(f"-- {wall:.0f} ms, waited {waited:.0f}, own {own:.0f}")
    shown = [line for line in lines.getvalue().splitlines() if "/" in line or "{" in line]
    print("\n".join(line[30:170] for line in shown), flush=True)


def open_movie_of(viewer: Any, folder: Path | None) -> None:
    """The sample, or a CTC movie with its truth as the segmentation."""
    if folder is None:
        viewer.open_sample("bridgetrack", "sample")
        return
    from napari.layers import Layer

    from bridgetrack.movie import open_labels, open_movie
    from bridgetrack.ui.file_layers import image_data, labels_data

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


def measure_masks(pulse: Pulse, session: Any, widget: Any, given: Any = None) -> None:
    """Find cells (or show those given as if they were found), mend a mask, choose masks again."""
    from bridgetrack.pipeline.finding import Finding

    widget.open_step(0)
    find, source = widget.segment.find, widget.segment.source
    before = source.labels.layer

    def settled() -> bool:
        found = source.labels.layer
        there = session.movie is not None and session.movie.layers[1] is found
        busy = session.busy("choose", "measure", "track")
        return bool(there and session.tracking is not None and not busy)

    def new() -> bool:
        return source.labels.layer is not before and settled()

    if given is None:
        pulse.during("finding cells", find.run, new)
    else:
        made = Finding(choose="plain")
        pulse.during("cells found appear", lambda: find._add(source.image.layer, given, made), new)
    place = tuple(session.scene.detections.table[["y", "x"]].to_numpy()[3].tolist())
    pulse.during("mending a mask", lambda: session.mend("remove", 0, place), settled)
    if given is None:
        pulse.during("choosing masks again", session.choose_again, settled)


def measure_answers(pulse: Pulse, state: Any, widget: Any) -> list[int]:
    """Ask, answer, point, and answer about the cells whose rows are returned."""
    from qtpy.QtTest import QTest

    session, annotator = state.session, state.annotator
    pulse.during("looking for questions", widget.by_model.click, lambda: _asked(state))
    answering = Answering(state)
    pulse.during(f"answering {QUESTIONS} questions", lambda: None, lambda: answering.done)
    widget.open_step(1)
    annotator.cancel()
    n = len(session.scene.detections)
    rows = list(range(0, min(n, 20000), max(n // 40, 1)))
    pulse.during("pointing", lambda: annotator.point_at(rows[1]), lambda: True)
    for row in rows:
        annotator.frame = int(session.scene.detections.frame[row])
        annotator.point_at(row)
        annotator.accept()
        QTest.qWait(10)
    while session.busy("correct"):
        QTest.qWait(20)
    return rows


def measure_tracks(pulse: Pulse, state: Any, widget: Any, row: int) -> None:
    """Train, show the tracks, track, and correct what becomes of a cell."""
    from qtpy.QtTest import QTest

    session, annotator, trainer = state.session, state.annotator, state.session.trainer
    widget.open_step(2)
    pulse.during("training", widget.train.go.click, lambda: trainer.training is not None)
    while session.busy("track", "correct"):
        QTest.qWait(20)
    widget.open_step(3)
    doubts = widget.track.doubts

    def shown() -> bool:
        """Whether the tracks and the cells in their colours are there, and nothing is under way."""
        coloured = state.coloured_cells.layer
        under_way = session.busy("track", "correct", "colour cells")
        return coloured is not None and coloured.visible and not under_way

    pulse.during("showing the tracks", widget.track.go.click, lambda: doubts.rowCount() > 0)
    pulse.during("tracking", session.track, shown)
    annotator.frame = int(session.scene.detections.frame[row])
    annotator.point_at(row)
    pulse.during("correcting", annotator.reject, shown)


def main() -> None:
    """Measure a movie from opening to mending."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("movie", nargs="?", type=Path, help="folder with 01 and 01_GT")
    parser.add_argument("--without", choices=("finding",))
    parser.add_argument("--why", type=float, metavar="MS")
    options = parser.parse_args()
    if options.movie is not None and not options.movie.is_dir():
        options.movie = DATA / options.movie
    print(f"- load {os.getloadavg()[0]:.1f} at the beginning")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        import napari
        from qtpy.QtTest import QTest

        from bridgetrack.ui.panel import state_of

        viewer = napari.Viewer(show=True)
        viewer.window.resize(1280, 800)
        QTest.qWait(500)
        pulse = Pulse(None if options.why is None else options.why / 1000)
        pulse.during("napari alone", lambda: open_movie_of(viewer, options.movie), lambda: True)
        viewer.layers.clear()
        _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
        state = state_of(viewer)
        session = state.session
        QTest.qWait(500)
        open_movie_of(viewer, options.movie)
        pulse.during("measuring", lambda: None, lambda: session.tracking is not None)
        QTest.qWait(500)
        rows = measure_answers(pulse, state, widget)
        measure_tracks(pulse, state, widget, rows[5] + 3)
        given = None
        if options.without:
            given = np.array(widget.segment.source.labels.layer.data)
        measure_masks(pulse, session, widget, given)
        viewer.close()
    print(f"- load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
