"""Time from an answer to the next suggestion on screen, on the sample and on a large movie.

    xvfb-run -a python benchmarks/suggest_latency.py [--folder DIR] [--answers 30] [--pause 1.0]
    xvfb-run -a python benchmarks/suggest_latency.py --large 1000 [--folder DIR]

Answers are key presses on the real canvas, a pause apart, while the model is updated in the
background. A figure ends when the canvas has been painted with the next question. CPU is that of
the window's thread; wall time grows with whatever else the machine does. The large movie (100
frames of 300 cells) is simulated. With ``--large`` it has so many cells a frame, and an image;
measured are the seconds from opening to the first question, until all frames are tracked, and those
of training with 200 answers drawn from the truth.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.movie import open_labels
from bridgetrack.sample import sample_folder
from common import header, row
from speed import movie_of

GOAL = 0.3


def wait(milliseconds: int) -> None:
    """Let the event loop run."""
    from qtpy.QtTest import QTest

    QTest.qWait(milliseconds)


def press(canvas: Any, key: str) -> tuple[float, float]:
    """Wall and CPU seconds from a key to the painted canvas."""
    from qtpy.QtCore import Qt
    from qtpy.QtTest import QTest

    wall, cpu = time.perf_counter(), time.thread_time()
    QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{key}"))
    canvas.repaint()
    return time.perf_counter() - wall, time.thread_time() - cpu


def measure(labels: np.ndarray, answers: int, pause: float) -> dict[str, Any]:
    """Figures of one movie."""
    import napari
    from qtpy.QtWidgets import QApplication

    from bridgetrack.session.questions import JOB
    from bridgetrack.ui.panel import state_of

    viewer = napari.Viewer(show=True)
    viewer.window.resize(1280, 800)
    viewer.add_labels(labels, name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    while state.session.tracking is None:
        wait(50)
    widget.open_step(1)
    start = time.perf_counter()
    state.session.questions.prepare()
    while state.session.questions.busy:
        wait(20)
    first = time.perf_counter() - start
    kinds = [w for w in QApplication.allWidgets() if "CanvasBackend" in type(w).__name__]
    canvas = next(w for w in kinds if w.isVisible())
    wait(300)
    opening = press(canvas, "G")
    wait(500)
    began: list[float] = []
    updates: list[float] = []

    def on_progress(name: str, step: object) -> None:
        if name == JOB and step is None and began:
            updates.append(time.perf_counter() - began.pop())
        elif name == JOB and step is not None and not began:
            began.append(time.perf_counter())

    state.session.progress.connect(on_progress)
    scene = state.session.scene
    cells = 0 if scene is None else len(scene.detections)
    figures, empty = [], 0
    for k in range(answers):
        before = state.session.questions.current
        figures.append(press(canvas, "U" if k % 10 == 9 else "Return"))
        if state.session.questions.current is None or state.session.questions.current is before:
            empty += 1
        wait(round(1000 * pause))
        while state.session.questions.current is None and state.session.questions.busy:
            wait(20)
    found = {
        "cells": cells, "first": first, "opening": opening,
        "figures": np.asarray(figures), "empty": empty, "updates": updates,
    }  # fmt: skip
    viewer.close()
    wait(200)
    return found


def drawn_from(truth: Path, session: Any) -> Any:
    """200 answers from the truth of a movie."""
    from bridgetrack.annotations.truth import draw_annotations
    from bridgetrack.evaluation.truth import match_detections, true_events
    from bridgetrack.io.ctc import read_ctc

    tracks, detections = read_ctc(truth), session.scene.detections
    match = match_detections(detections, session.movie.labels, tracks.tracks, tracks.labels)
    events = true_events(detections, tracks.tracks, match)
    return draw_annotations(events, detections, count=200, seed=0)


def no_answers_beside(movie: Path) -> Path:
    """Where the answers of a simulated movie are kept, of which there must be none yet."""
    kept = movie / "01.annotations.json"
    if kept.exists():
        raise SystemExit(f"{kept}: answers given before would be taken up; remove them first")
    return kept


def measure_large(folder: Path, cells: int) -> None:
    """Print the seconds of a large movie with its image."""
    import napari
    from napari.layers import Layer

    from bridgetrack.annotations.annotation import Kind
    from bridgetrack.movie import open_movie
    from bridgetrack.ui.file_layers import image_data, labels_data
    from bridgetrack.ui.panel import state_of

    movie = movie_of(folder, 100, cells)
    truth, kept = movie / "01_GT" / "TRA", no_answers_beside(movie)
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1280, 800)
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    wait(500)
    image = image_data(open_movie(movie / "01"), "movie", movie / "01")
    labels = labels_data(open_labels(truth), "Cells", movie / "copy" / "TRA")
    session, questions = state.session, state.session.questions
    start = np.array([time.perf_counter(), time.process_time()])

    def told(what: str) -> None:
        wall, cpu = np.array([time.perf_counter(), time.process_time()]) - start
        print(row(what, f"{wall:.1f}", f"{cpu:.1f}"), flush=True)

    print(header(f"100 x {cells}, from opening to", "seconds", "processor seconds"))
    viewer.add_layer(Layer.create(*image))
    viewer.add_layer(Layer.create(*labels))
    told("layers shown")
    while session.movie is None:
        wait(20)
    widget.by_model.click()
    while questions.current is None:
        wait(20)
    told("first question")
    while session.tracking is None:
        wait(20)
    told("all frames tracked")
    while questions.busy:
        wait(20)
    told("questions from all frames")
    state.annotator.stop_asking()
    drawn = drawn_from(truth, session)
    session.note_all([(Kind.CONFIRM, a.events[0]) for a in drawn], "truth", "")
    while session.busy("correct", "suggest"):
        wait(20)
    start = np.array([time.perf_counter(), time.process_time()])
    session.trainer.train()
    while session.trainer.busy or session.trainer.training is None:
        wait(20)
    told(f"training with {len(session.annotations)} answers, from its start")
    viewer.close()
    kept.unlink(missing_ok=True)


def main() -> None:
    """Print one table for both movies."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--answers", type=int, default=30)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--large", type=int, metavar="CELLS")
    given = parser.parse_args()
    if given.large:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["XDG_DATA_HOME"] = str(Path(scratch) / "data")
            measure_large(given.folder or Path(scratch), given.large)
        return
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_DATA_HOME"] = str(Path(scratch) / "data")
        large = movie_of(given.folder or Path(scratch), 100, 300) / "01_GT" / "TRA"
        movies = {"sample": sample_folder() / "01_GT" / "TRA", "100 x 300": large}
        print(header("movie", "cells", "wall ms: median", "95 %", "longest", "CPU ms: median",
                     "95 %", "longest", "no question ready", "first questions, s", "G, ms",
                     "update, s"))  # fmt: skip
        for name, path in movies.items():
            labels = np.asarray(open_labels(path).array[:, 0].compute())
            found = measure(labels, given.answers, given.pause)
            cells = []
            for column in (0, 1):
                values = 1e3 * found["figures"][:, column]
                cells += [np.median(values), np.quantile(values, 0.95), values.max()]
            print(row(name, f"{found['cells']:,}", *(f"{c:.0f}" for c in cells),
                      f"{found['empty']} of {given.answers}", f"{found['first']:.1f}",
                      f"{1e3 * found['opening'][0]:.0f}",
                      f"{np.median(found['updates'] or [np.nan]):.1f}"), flush=True)  # fmt: skip
    print(f"\nThe goal is {1000 * GOAL:.0f} ms.")


if __name__ == "__main__":
    main()
