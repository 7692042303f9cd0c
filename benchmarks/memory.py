"""Memory of tracking per detection, stage by stage, against the numbers of frames and of cells.

    python benchmarks/memory.py [--sizes 300x50 300x100 1000x50 1000x100] [--masks] [--window N]

Makes a table of cells that walk at random and divide (with ``--masks`` simulated masks and images,
which takes longer), tracks it in a process of its own and prints a table in markdown: the highest
resident memory at the end of each stage above that of a process that has imported everything, in kB
per detection, and the whole process in MB with its processor time. ``--window`` tracks so many
frames at a time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

STAGES = (
    "Measuring cells",
    "Comparing frames",
    "Proposing events",
    "Choosing events",
    "Joining windows",
    "Joining tracks",
    "Writing tables",
)
RATE, STEP, SPACING = 0.005, 2.5, 18.0
"""Divisions a cell and frame, pixels of a step and between neighbours."""


def walk(cells: int, frames: int, path: Path, spacing: float = SPACING) -> None:
    """A table of cells that walk and divide; as many leave as are born.

    Tracks are numbered, and a born cell has the number of its mother as ``parent_track``.
    """
    draw = np.random.default_rng(1)
    number, parent, last = np.arange(1, cells + 1), np.zeros(cells, dtype=int), cells
    side = spacing * np.sqrt(cells)
    place, area = draw.uniform(0, side, (cells, 2)), draw.normal(110, 15, cells).clip(40)
    tables = []
    for t in range(frames):
        table = {"t": t, "y": place[:, 0], "x": place[:, 1], "area": area.round()}
        numbers = {"track": number, "parent_track": parent}
        tables.append(pd.DataFrame(table | numbers).round(2))
        stay = draw.random(len(place)) > RATE
        place, area, number, parent = place[stay], area[stay], number[stay], parent[stay]
        born = np.flatnonzero(draw.random(len(place)) < RATE)
        place = np.concatenate([place, place[born] + draw.normal(0, 5, (len(born), 2))])
        area = np.concatenate([area, area[born] / 2])
        parent = np.concatenate([parent, number[born]])
        number = np.concatenate([number, np.arange(last + 1, last + 1 + len(born))])
        last += len(born)
        place = place + draw.normal(0, STEP, place.shape)
        area = area + 0.1 * (110 - area) + draw.normal(0, 2, len(area))
    pd.concat(tables).to_csv(path, index=False)


def simulate(cells: int, frames: int, folder: Path) -> None:
    """Masks and images of nuclei."""
    from simulator import SimulationSettings, simulate_to_folder

    size = int(SPACING * 1.6 * np.sqrt(cells))
    simulate_to_folder(SimulationSettings(frames=frames, cells=cells, size=size), folder)


def peak() -> float:
    """Highest resident memory of this process so far, in kB."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure(source: Path, window: int | None) -> dict[str, Any]:
    """Track a movie in this process; peaks above what the imports take."""
    import bridgetrack as bt

    with tempfile.TemporaryDirectory() as folder:
        walk(30, 4, Path(folder) / "few.csv")
        bt.track(Path(folder) / "few.csv").save(Path(folder) / "out")  # imports everything
        start, peaks, stage = peak(), {}, STAGES[0]
        begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime

        def watch(step: bt.Progress) -> None:
            nonlocal stage
            peaks[stage] = peak() - start
            stage = step.stage

        if source.is_dir():
            labels, image = source / "01_GT" / "TRA", source / "01"
            tracking = bt.track(labels, image, progress=watch, window=window)
        else:
            tracking = bt.track(source, progress=watch, window=window)
        watch(bt.Progress(STAGES[-1], 0.0))
        tracking.save(Path(folder) / "out")
        watch(bt.Progress("", 0.0))
    n, windows = len(tracking.scene.detections), tracking.windows
    hypotheses = len(tracking.scene.hypotheses) if windows is None else windows.hypotheses
    return {
        "detections": n,
        "hypotheses": hypotheses,
        "kB": {stage: kilo / n for stage, kilo in peaks.items()},
        "objective": tracking.solution.value,
        "gap": tracking.solution.gap,
        "MB": peak() / 1024,
        "start_MB": start / 1024,
        "start_seconds": begun,
        "seconds": resource.getrusage(resource.RUSAGE_SELF).ru_utime,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=["300x50", "300x100", "1000x50", "1000x100"])
    parser.add_argument("--masks", action="store_true")
    parser.add_argument("--window", type=int)
    parser.add_argument("--child", type=Path)
    options = parser.parse_args()
    if options.child:
        sys.stdout.write(json.dumps(measure(options.child, options.window)))
        return
    head = ["cells x frames", "detections", "hypotheses", *STAGES, "MB", "s", "gap", "objective"]
    sys.stdout.write(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}\n")
    for size in options.sizes:
        cells, frames = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) if options.masks else Path(folder) / "cells.csv"
            (simulate if options.masks else walk)(cells, frames, source)
            words = [sys.executable, __file__, "--child", str(source)]
            words += [] if options.window is None else ["--window", str(options.window)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        kilos = [f"{found['kB'][s]:.2f}" if s in found["kB"] else "-" for s in STAGES]
        row = [size, f"{found['detections']:,}", f"{found['hypotheses']:,}", *kilos]
        row += [f"{found['MB']:.0f}", f"{found['seconds']:.1f}", f"{found['gap']:.3g}"]
        sys.stdout.write(f"| {' | '.join(row)} | {found['objective']!r} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
