"""How time and memory of tracking grow with frames and with cells, and the exponents.

    python benchmarks/growth.py [--frames 25 50 100 1000] [--cells 250 1000 3000 10000]
                                [--window N]

Tables of cells that walk and divide (`memory.walk`): so many frames of 300 cells, and 25 frames of
so many cells. Every movie is tracked and written in a process of its own; processor seconds and
peak memory are those above a process that has done the same with 30 cells. The exponent is the
slope of the line through the logarithms: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from memory import walk

CELLS, FRAMES = 300, 25
"""Cells where frames grow, and frames where cells grow."""


def measured(cells: int, frames: int, window: int | None) -> dict[str, Any]:
    """Detections, seconds and megabytes of one movie."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "cells.csv"
        walk(cells, frames, source)
        words = [sys.executable, str(Path(__file__).with_name("memory.py")), "--child", str(source)]
        words += [] if window is None else ["--window", str(window)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def exponent(sizes: list[float], values: list[float]) -> float:
    """Slope of log(value) against log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def print_growth(what: str, movies: list[tuple[int, int]], window: int | None) -> None:
    """A table of movies, each larger than the one before, and the exponents."""
    print(f"| {what} | cells in all | seconds | MB above the start | gap |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    sizes, seconds, memory = [], [], []
    for cells, frames in movies:
        found = measured(cells, frames, window)
        sizes.append(found["detections"])
        seconds.append(found["seconds"] - found["start_seconds"])
        memory.append(found["MB"] - found["start_MB"])
        name = frames if what == "frames" else cells
        print(
            f"| {name:,} | {sizes[-1]:,} | {seconds[-1]:.1f} | {memory[-1]:,.0f} | "
            f"{found['gap']:.3g} |",
            flush=True,
        )
    if len(sizes) > 1:
        print(
            f"\nexponents with {what}: time {exponent(sizes, seconds):.2f}, "
            f"memory {exponent(sizes, memory):.2f}\n",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", nargs="*", type=int, default=[25, 50, 100, 1000])
    parser.add_argument("--cells", nargs="*", type=int, default=[250, 1000, 3000, 10000])
    parser.add_argument("--window", type=int)
    given = parser.parse_args()
    print_growth("frames", [(CELLS, n) for n in given.frames], given.window)
    print_growth("cells a frame", [(n, FRAMES) for n in given.cells], given.window)


if __name__ == "__main__":
    main()
