"""What slips among the answers do to `train`, and how many of them it finds.

    python benchmarks/slips.py [--seeds 10] [--sets S ...] [--clicks 50] [--wrong 0.05]

A simulated annotator draws stratified clicks about the first half of a movie, some of them wrong
(`annotations.mistakes`); the other half is scored. *Found* are the slips among the answers that
`train` says to look at once more, *true ones* the others among these. *Mended* is `train` after
somebody has looked at them: wrong ones are put right, right ones stay.

A second table says how often the starting model is wrong where it is sure: the events of the first
half that it chooses by a margin, without any answers.
"""

from __future__ import annotations

import warnings

import numpy as np

from active_events import SETS, prior_for
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.solve import solve
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sure import DOUBT, SURE
from bridgetrack.training.train import train_steps
from common import Task, arguments, header, load_task, option, row, score, spread

COLUMNS = ("movie", "slips", "found", "true ones found", "no slips", "nothing held", "as shipped",
           "mended")  # fmt: skip

WORDS = ("% from margin", "wrong % from")


def trained(task: Task, said: AnnotationSet, hold: bool = True) -> tuple[float, Training]:
    """Test loss and what the training says."""
    scene = annotate(task.train.scene, said)
    made = run(train_steps(scene, prior_for(task.name), TrainingOptions(hold_sure=hold)))
    return score(task, made.model.aligned(scene.matrix.features)).loss, made


def measure(task: Task, seeds: int, clicks: int, wrong: float) -> str:
    """The row of a movie."""
    counts = [0, 0, 0]
    losses: list[list[float]] = [[], [], [], []]
    for seed in range(seeds):
        true = task.clicks(seed, count=clicks)
        said = task.clicks(seed, count=clicks, wrong=wrong)
        slips = {a.id for a in said if a.events != true[a.id].events}
        loss, made = trained(task, said)
        found = {a.id for a in made.doubtful}
        mended = AnnotationSet(said.geometry, [true[a.id] if a.id in found else a for a in said])
        each = (slips, found & slips, found - slips)
        counts = [n + len(more) for n, more in zip(counts, each, strict=True)]
        values = (
            trained(task, true)[0],
            trained(task, said, hold=False)[0],
            loss,
            trained(task, mended)[0],
        )
        for kept, value in zip(losses, values, strict=True):
            kept.append(value)
    return row(task.name, *map(str, counts), *(spread(values) for values in losses))


def sureness(task: Task) -> str:
    """How many events the starting model chooses by a margin, and how many of these are wrong."""
    scene, events = task.train.scene, task.train.events
    scores = scene.matrix.scores(prior_for(task.name).aligned(scene.matrix.features))
    solution = solve(scene.problem, scores)
    margin = margin_bounds(scene.problem, scores, solution)
    known = scene.hypotheses.find(events)
    true = np.zeros(len(scores), dtype=bool)
    true[known[known >= 0]] = True
    covered = scene.problem.incidence @ (scene.problem.incidence.T @ true.astype(float)) > 0
    judged = covered & solution.chosen & np.isfinite(margin)
    cells: list[object] = [task.name, int(judged.sum())]
    for wide in (0.0, DOUBT, SURE):
        mine = judged & (margin >= wide)
        cells.append(f"{100 * mine.sum() / judged.sum():.0f}")
        cells.append(f"{100 * (~true[mine]).mean():.2f}")
    return row(*cells)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    clicks, wrong = int(option("--clicks", 50)), option("--wrong", 0.05)
    given = arguments(__doc__, 10, SETS)
    print(f"{clicks} clicks, {100 * wrong:g} % of them wrong; wrong events in %\n")
    print(header(*COLUMNS))
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            print(measure(task, given.seeds, clicks, wrong), flush=True)
    print(
        "\n" + header("movie", "events", *(f"{w} {m:g}" for m in (0, DOUBT, SURE) for w in WORDS))
    )
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            print(sureness(task), flush=True)


if __name__ == "__main__":
    main()
