"""How often the interval of the accuracy that `train` estimates holds the true accuracy.

    python benchmarks/train_coverage.py [--seeds 3] [--sets S ...]

Answers about one half of a movie are drawn at random or by kind (*stratified*, as people seek out
divisions); the truth is the share of its true events that the kept model finds, without the help
of the answers. Clicks that people choose in other ways are not measured.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Task, arguments, header, load_task, row

SETS = ("DIC", "HeLa, every 4th", "bacteria", "iPSC 01, every 2nd", "HeLa")
WAYS: dict[str, dict[str, Any]] = {"stratified": {}, "at random": {"stratified": False}}
CLICKS = (20, 50, 100)


def measure(task: Task, way: str, seeds: int) -> tuple[list[bool], str]:
    """Whether every interval covers, and a row."""
    train, found = task.train, []
    for seed in range(seeds):
        for count in CLICKS:
            scene = annotate(train.scene, task.clicks(seed, count=count, **WAYS[way]))
            made = run(train_steps(scene, shipped_model()))
            if made.estimate is None:
                continue
            weights = made.model.aligned(scene.matrix.features)
            chosen = solve(train.scene.problem, train.scene.matrix.scores(weights)).chosen
            truth = float(((train.column >= 0) & chosen[np.maximum(train.column, 0)]).mean())
            e = made.estimate
            found.append((e.low <= truth <= e.high, e.accuracy - truth, e.high - e.low, truth))
    covers, bias, width, truth = np.asarray(found, dtype=np.float64).T
    cells = (f"{100 * truth.mean():.1f}", f"{covers.sum():.0f} of {len(covers)}",
             f"{100 * bias.mean():+.1f}", f"{100 * width.mean():.1f}")  # fmt: skip
    return [bool(c) for c in covers], row(task.name, way, *cells)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 3, SETS)
    print(header("movie", "answers", "truth %", "covers", "bias, points", "width, points"))
    totals: dict[str, list[bool]] = {way: [] for way in WAYS}
    for name in given.sets:
        task = load_task(name, given.data)
        for way in WAYS if task is not None else ():
            covers, line = measure(task, way, given.seeds)
            totals[way] += covers
            print(line, flush=True)
    for way, covers in totals.items():
        print(f"\n{way}: covers in {100 * np.mean(covers):.1f} % of {len(covers)}.")


if __name__ == "__main__":
    main()
