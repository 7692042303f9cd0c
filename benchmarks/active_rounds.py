"""Time of a round of active learning, and memory over many of them.

    python benchmarks/active_rounds.py [--frames 100] [--cells 300] [--rounds 500] [--folder DIR]

A round is one answer, one update of the model with everything that follows (annotations tied to the
movie, training, choosing the events of the whole movie, new suggestions), and the next suggestion.
The movie is simulated; a simulated annotator answers. Processor seconds stand beside wall seconds,
because other programs may be using the machine.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import bridgetrack as bt
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by, true_accuracy
from bridgetrack.annotations.truth import read_events
from bridgetrack.pipeline.scene import prepare
from bridgetrack.progress import run
from common import header, row
from speed import movie_of

SHOWN = (1, 10, 50, 100, 200, 300, 400, 500)


def memory() -> float:
    """Resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--cells", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        movie = movie_of(given.folder or Path(scratch), given.frames, given.cells)
        truth = bt.read_ctc(movie / "01_GT")
        scene = run(prepare(truth.labels))
        match = bt.match_detections(scene.detections, truth.labels, truth.tracks, truth.labels)
    events = read_events(bt.true_events(scene.detections, truth.tracks, match), scene.detections)
    annotator = SimulatedAnnotator(events, scene.detections)
    print(f"{len(scene.detections):,} cells, {len(scene.hypotheses):,} hypotheses\n")
    session = ActiveSession(scene)
    start = time.perf_counter()
    session.adopt(run(session.update()))
    first = time.perf_counter() - start
    print(header("round", "MB", "answer and next, ms", "update, s", "CPU s", "right events, %"))
    figures = []
    for number in range(1, given.rounds + 1):
        start = time.perf_counter()
        suggestion = session.next()
        if suggestion is None:
            break
        answer_by(session, annotator, suggestion)
        session.next()
        answered, cpu = time.perf_counter(), time.process_time()
        session.adopt(run(session.update()))
        done = time.perf_counter()
        figures.append((answered - start, done - answered, time.process_time() - cpu))
        if number in SHOWN or number == given.rounds:
            gc.collect()
            last = np.asarray(figures[-50:])
            right = 100 * true_accuracy(session, events)
            print(row(number, f"{memory():,.0f}", f"{1e3 * np.median(last[:, 0]):.1f}",
                      f"{np.median(last[:, 1]):.2f}", f"{np.median(last[:, 2]):.2f}",
                      f"{right:.2f}"), flush=True)  # fmt: skip
    table = np.asarray(figures)
    print(f"\nfirst update {first:.2f} s; over all rounds:\n")
    print(header("seconds", "median", "95 %", "longest"))
    for name, column in (("answer and next", 0), ("update", 1), ("update, CPU", 2)):
        values = table[:, column]
        print(row(name, *(f"{q:.3f}" for q in (np.median(values), np.quantile(values, 0.95),
                                               values.max()))))  # fmt: skip


if __name__ == "__main__":
    main()
