"""Which events turn as answers become more: right before and wrong after training, and back.

    python benchmarks/more_clicks.py [--seeds 5] [--sets S ...]

Stratified answers about the first part of a movie (60 % moves, 20 % divisions and 20 % of the
rest), `bridgetrack train` with its defaults, the other part scored with no answer honoured. *Lost*
are true events that the untrained model chose and the trained one does not, *won* the others that
changed; both by kind, means over seeds.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Task, header, load_task, option, row, score
from unseen import UNSEEN, load

COUNTS = (20, 50, 100, 200)
MOVIES = ("iPSC 01, every 2nd", "iPSC 04, every 2nd")


def kinds(task: Task, numbers: set[int]) -> Counter[str]:
    """How many of some scored events are of each kind."""
    events = np.concatenate([part.events.event for part in task.test])
    return Counter(Event(int(events[k])).key for k in numbers)


def told(counted: list[Counter[str]]) -> str:
    """Means over seeds."""
    names = sorted({name for one in counted for name in one})
    return ", ".join(f"{n} {np.mean([one[n] for one in counted]):.1f}" for n in names) or "–"


def main() -> None:
    """Print a table a movie."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 5))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(MOVIES)
    for name in names:
        task = load(name) if name in UNSEEN else load_task(name)
        if task is None:
            continue
        start = set(score(task, shipped_model().aligned(task.train.scene.matrix.features)).wrong)
        n = sum(len(part.events) for part in task.test)
        print(f"### {name}: {n:,} events scored, {len(start)} wrong untrained\n")
        print(header("answers", "wrong", "all the way", "lost", "won"), flush=True)
        for count in COUNTS:
            now, whole = [], []
            for seed in range(seeds):
                given_answers = task.clicks(seed, count=count)
                training = run(train_steps(annotate(task.train.scene, given_answers)))
                weights = training.model.aligned(task.train.scene.matrix.features)
                now.append(set(score(task, weights).wrong))
                whole.append(len(score(task, training.result.w).wrong))
            wrong = [len(one) for one in now]
            spread = f"{np.mean(wrong):.1f} ± {np.std(wrong, ddof=1):.1f}"
            lost = told([kinds(task, one - start) for one in now])
            won = told([kinds(task, start - one) for one in now])
            print(row(count, spread, f"{np.mean(whole):.1f}", lost, won), flush=True)
        print()


if __name__ == "__main__":
    main()
