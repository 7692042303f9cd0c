"""Untrained, random forest, L1 and L2 on full annotation: the analogue of 000, Table 1.1.

    python -m papers.classifiers [--seeds 4] [--sets epidermis ...]

Every movie is cut into blocks of frames with equally many events; each block is scored with what
is learned from all events of the others (``--seeds`` is the number of blocks).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import train_steps
from common import Task, arguments, header, load_folds, row, score_parts, spread
from papers.forest import train_forest

Scores = Callable[[Scene], Any]


def _untrained(scene: Scene, number: int) -> Scores:
    return lambda other: other.matrix.scores(untrained_model().aligned(other.matrix.features))


def _forest(scene: Scene, number: int) -> Scores:
    return train_forest(scene, number).scores


def _structured(regularizer: Any) -> Callable[[Scene, int], Scores]:
    def train(scene: Scene, number: int) -> Scores:
        model = run(train_steps(scene, options=TrainingOptions(regularizer=regularizer))).model
        return lambda other: other.matrix.scores(model.aligned(other.matrix.features))

    return train


METHODS: dict[str, Callable[[Scene, int], Scores]] = {
    "untrained": _untrained,
    "random forest": _forest,
    "structured, L1": _structured("l1"),
    "structured, L2": _structured("l2"),
}


def measure(tasks: list[Task]) -> dict[str, list[list[float]]]:
    """For every method and block: test loss, edge and division F1, seconds."""
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    for number, task in enumerate(tasks):
        scene = task.annotated(0, fraction=1.0)
        for name, train in METHODS.items():
            start = time.perf_counter()
            scores_of = train(scene, number)
            seconds = time.perf_counter() - start
            figures = score_parts(task.test, scores_of)
            found[name].append([figures.loss, figures.edge_f1, figures.division_f1, seconds])
    return found


def main() -> None:
    """Print the table."""
    given = arguments(__doc__, 4, ("epidermis", "bacteria", "HeLa, every 4th", "DIC", "SIM+"))
    if given.seeds < 2:
        sys.exit("--seeds is the number of blocks here: give 2 or more, one is left to learn from")
    print(header("movie", "method", "wrong %", "edge F1 %", "division F1 %", "seconds"), flush=True)
    for name in given.sets:
        for method, values in measure(load_folds(name, given.seeds, given.data)).items():
            if values:
                wrong, edge, division, seconds = np.asarray(values).T.tolist()
                print(
                    row(name, method, spread(wrong), spread(edge), spread(division),
                        spread(seconds, False, 1)),
                    flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
