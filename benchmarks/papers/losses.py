"""Compare the six losses by test loss and runtime (cf. 001, Table 3).

    python -m papers.losses [--seeds 10] [--sets epidermis ...]

A quarter of the events of the training part is annotated; lambda is the same for all, and the
trained weights are scored as they are, without falling back on the prior. Bridge and max are
trained with the exact difference of convex functions and with the paper's literal treatment of
negative margins.
"""

from __future__ import annotations

import numpy as np

from bridgetrack.learning import L2, LOSSES
from bridgetrack.models.model import untrained_model
from bridgetrack.training.tracking_model import TrackingModel
from common import (
    Task,
    arguments,
    header,
    learned,
    load_task,
    row,
    score,
    spread,
    training_data,
)

STRENGTH = 0.03
CASES = (
    *((name, "exact") for name in LOSSES),
    ("bridge", "literal"),
    ("max", "literal"),
)
Figures = dict[tuple[str, str], list[list[float]]]


def measure(task: Task, seeds: int) -> Figures:
    """For every loss and seed: test loss, division F1, seconds, calls, gap."""
    prior = untrained_model().aligned(task.train.scene.matrix.features)
    found: Figures = {case: [] for case in CASES}
    for seed in range(seeds):
        data = training_data(task.annotated(seed, fraction=0.25))
        for loss, treatment in CASES:
            model, near = TrackingModel(data), L2(STRENGTH, prior=prior)
            result = learned(model, near, loss=loss, treatment=treatment)
            figures = score(task, result.w)
            calls = result.n_inferences + result.n_reward_inferences
            found[loss, treatment].append(
                [figures.loss, figures.division_f1, result.seconds, calls, result.gap]
            )
    return found


def table(name: str, untrained: float, found: Figures) -> str:
    """A table in markdown."""
    lines = [
        f"### {name} (untrained: {100 * untrained:.2f} % of events wrong)",
        "",
        header("loss", "treatment", "wrong %", "division F1 %", "seconds", "oracle calls", "gap"),
    ]
    for (loss, treatment), values in found.items():
        wrong, division, seconds, calls, gap = np.asarray(values).T.tolist()
        lines.append(
            row(loss, treatment, spread(wrong), spread(division),
                spread(seconds, False), spread(calls, False, 0), f"{np.mean(gap):.1e}")
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, and draw."""
    given = arguments(__doc__, 10, ("epidermis", "bacteria", "HeLa, every 4th"))
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        prior = untrained_model().aligned(task.train.scene.matrix.features)
        found = measure(task, given.seeds)
        print(table(name, score(task, prior).loss, found), flush=True)


if __name__ == "__main__":
    main()
