"""Processor seconds of finding cells, by stage.

    python benchmarks/stages.py [--data ../shared/data] [--frames A:B] [NAME ...]

Seconds are those of this process and its children, a frame; those of looking at the whole movie
(readings, size, score) are shared by its frames.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np
import tifffile

from bridgetrack.movie.opening import open_movie
from bridgetrack.pipeline import cell_size, finding, mask_candidates
from bridgetrack.pipeline.joint import FrameChoice
from bridgetrack.regions import describe
from common import DATA, header, row

MOVIES = {"hela": "Fluo-N2DL-HeLa-01", "psc": "PhC-C2DL-PSC-01"}
STAGES: dict[str, list[tuple[Any, str]]] = {
    "readings": [(finding, "estimate_settings"), (cell_size, "estimate_settings")],
    "size": [(finding, "fitted_settings")],
    "score": [(finding, "learned_score")],
    "plain": [(mask_candidates, "segment_builtin")],
    "candidates": [(mask_candidates, "propose_frame")],
    "description": [(mask_candidates, "describe_frame"), (describe, "describe_in_time")],
    "pruning": [(mask_candidates, "prune")],
    "measuring": [(mask_candidates, "measure_regions")],
    "program": [(finding, "choose_jointly")],
}


class Clock:
    """Seconds of stages; those of a stage within another are its own."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._within = ["rest"]
        self._last = self._now()

    @staticmethod
    def _now() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    def _tick(self) -> None:
        now = self._now()
        self.seconds[self._within[-1]] += now - self._last
        self._last = now

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        """A stage that lasts as long as the block."""
        self._tick()
        self._within.append(stage)
        try:
            yield
        finally:
            self._tick()
            self._within.pop()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose seconds count as those of the stage."""

        def called(*args: Any, **options: Any) -> Any:
            with self.running(stage):
                found = function(*args, **options)
            return self._resumed(stage, found) if isinstance(found, GeneratorType) else found

        return called

    def _resumed(self, stage: str, steps: Any) -> Any:
        while True:
            with self.running(stage):
                try:
                    step = next(steps)
                except StopIteration as end:
                    return end.value
            yield step


def main() -> None:
    """Print one row a movie."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MOVIES))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--frames", default="60:66")
    options = parser.parse_args()
    first, last = map(int, options.frames.split(":"))
    clock = Clock()
    for stage, places in STAGES.items():
        for module, name in places:
            setattr(module, name, clock.timed(stage, getattr(module, name)))
    print(header("movie", "cells", *STAGES, "all"))
    for movie in options.names:
        files = sorted((options.data / MOVIES[movie]).glob("[0-9][0-9]/t*.tif"))[first:last]
        image = open_movie(np.stack([tifffile.imread(file) for file in files]))
        clock.seconds.clear()
        chosen = [
            step.chosen.sum()
            for step in finding.Finding().choices(image)
            if isinstance(step, FrameChoice)
        ]
        each = {stage: f"{s / len(files):.2f}" for stage, s in clock.seconds.items()}
        every = f"{clock.seconds.total() / len(files):.2f}"
        print(row(movie, int(np.sum(chosen)), *(each.get(s, "0.00") for s in STAGES), every))


if __name__ == "__main__":
    main()
