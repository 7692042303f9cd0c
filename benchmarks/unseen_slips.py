"""Movies that no choice has seen, with one answer in twenty wrong: the worst of single trainings.

    python benchmarks/unseen_slips.py [--seeds 3] [--sets S ...]

As `unseen.py`, with suggested answers of which 5 % are plausible mistakes when first given.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from bridgetrack.models.shipped import shipped_model
from common import header, option, row, score
from no_harm import suggested
from unseen import UNSEEN, load, trained

COUNTS = (10, 20, 50, 100)
WRONG = 0.05


def main() -> None:
    """Print a row a movie: wrong events, and the worst training in points above untrained."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 3))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(UNSEEN)
    print(header("wrong events, 5 % slips", "scored", "untrained", *COUNTS, "worst, points"))
    for name in names:
        task = load(name)
        if task is None:
            continue
        n = len(task.test[0].events)
        start = len(score(task, shipped_model().aligned(task.train.scene.matrix.features)).wrong)
        found: dict[int, list[int]] = {count: [] for count in COUNTS}
        for seed in range(seeds):
            for count, given, _ in suggested(
                task, seed, WRONG, start=shipped_model(), counts=COUNTS
            ):
                found[count].append(trained(task, given).now)
                print(f"{name}, seed {seed}, {count}: {found[count][-1]}", file=sys.stderr)
        cells = [f"{np.mean(v):.1f} ± {np.std(v, ddof=1):.1f}" for v in found.values()]
        worst = max(max(v) for v in found.values()) - start
        print(row(name, f"{n:,}", start, *cells, f"{100 * worst / n:+.2f}"), flush=True)


if __name__ == "__main__":
    main()
