"""Where CCCP ends: the objective with R linearised at the weights, or a little beyond them.

    python benchmarks/overshoot.py [--seeds 10] [--sets epidermis bacteria ...]

One training with the default lambda from 20, 50 and 200 clicks around each learner. An overshoot
of 0 is CCCP as printed; 0.1 is the default (`learning.schedule`). *J* is the mean objective at the
end, *calls* are loss-augmented inferences of all samples, seconds are processor seconds.
"""

from __future__ import annotations

import time

import numpy as np

from bridgetrack.learning import L2, LearningOptions
from bridgetrack.models.shipped import shipped_model
from bridgetrack.training.options import default_strength
from bridgetrack.training.tracking_model import TrackingModel
from common import Task, arguments, header, learned, load_task, row, score, spread, training_data

SETS = ("epidermis", "bacteria", "HeLa, every 4th", "DIC")
CLICKS = (20, 50, 200)
LEARNERS = ("n-slack", "bundle", "frank-wolfe")
STEPS = (0.0, 0.05, 0.1, 0.2)
COLUMNS = ("learner", "overshoot", "J", "wrong %", "calls", "seconds")
Figures = tuple[float, float, float, float]


def trained(task: Task, clicks: int, seed: int, options: LearningOptions) -> Figures:
    """Objective, test loss in percent, calls and seconds of one training."""
    model, features = shipped_model(), task.train.scene.matrix.features
    data = training_data(task.annotated(seed, count=clicks))
    regularizer = L2(
        default_strength(data.n_annotations),
        prior=model.aligned(features),
        metric=model.tightness_for(features),
    )
    start = time.process_time()
    found = learned(TrackingModel(data), regularizer, options=options)
    seconds = time.process_time() - start
    return found.objective, 100 * score(task, found.w).loss, float(found.n_inferences), seconds


def main() -> None:
    """Print one table for each movie and number of clicks."""
    given = arguments(__doc__, 10, SETS)
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        for clicks in CLICKS:
            print(f"\n*{name}, {clicks} clicks:*\n\n{header(*COLUMNS)}", flush=True)
            for learner in LEARNERS:
                for step in STEPS:
                    options = LearningOptions(learner=learner, overshoot=step)
                    runs = [trained(task, clicks, seed, options) for seed in range(given.seeds)]
                    j, loss, calls, seconds = np.array(runs).T
                    cells = [
                        f"{j.mean():.4f}",
                        spread(list(loss), percent=False),
                        f"{calls.mean():.1f}",
                    ]
                    print(row(learner, f"{step:g}", *cells, f"{seconds.mean():.2f}"), flush=True)


if __name__ == "__main__":
    main()
