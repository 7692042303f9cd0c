"""What the shipped starting model is worth: few clicks with it against more clicks without.

    python benchmarks/starting_model.py [--seeds 10] [--sets epidermis bacteria ...]

The shipped model has the hand-set weights, so that it tracks as they do without any click; what
it adds is how tightly training ties each weight. Movies of a family that it was learned from are
scored with a model that never saw that family. Prints wrong events without clicks, with 20, 50
and 100 clicks from the shipped model, and with as many from the hand-set weights alone, whose
weights are all tied alike.
"""

from __future__ import annotations

import warnings

import numpy as np

from bridgetrack.models.model import Model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Task, arguments, header, load_task, row, score, spread
from learning_curve import FAMILIES
from pretrain import start_without

SETS = ("epidermis", "bacteria", "HeLa, every 4th", "DIC", "SIM+", "HeLa", "iPSC 03")
CLICKS = (20, 50, 100)


def measure(task: Task, prior: Model, clicks: int, seed: int) -> float:
    """Share of wrong events of the test part after training on some clicks."""
    scene = task.annotated(seed, count=clicks)
    model = run(train_steps(scene, prior)).model
    return score(task, model.aligned(scene.matrix.features)).loss


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 10, SETS)
    starts = ("shipped", "by hand")
    print(
        header(
            "movie",
            "no click",
            *(f"{start}, {n} clicks" for start in starts for n in CLICKS),
            "20 shipped at least as good as 100 by hand",
        )
    )
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        priors = (start_without(FAMILIES.get(name, "")), untrained_model())
        plain = score(task, priors[0].aligned(task.train.scene.matrix.features)).loss
        found = {
            (k, n): [measure(task, prior, n, seed) for seed in range(given.seeds)]
            for k, prior in enumerate(priors)
            for n in CLICKS
        }
        difference = np.asarray(found[0, 20]) - np.asarray(found[1, 100])
        good = difference.mean() <= 1e-9
        verdict = "yes" if good else f"no ({100 * difference.mean():+.2f})"
        cells = [spread(found[k, n]) for k in range(2) for n in CLICKS]
        print(row(name, f"{100 * plain:.2f}", *cells, verdict), flush=True)


if __name__ == "__main__":
    main()
