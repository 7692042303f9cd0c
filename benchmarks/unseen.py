"""Movies that no choice has seen: wrong events of one half after answers about the other.

    python benchmarks/unseen.py [--seeds 3] [--many 2000] [--sets S ...]

Neither weights nor rules of the program were set while looking at these parts of movies. Events of
the earlier half (by events) are answered, ``bridgetrack train`` learns with its defaults, and the
other half is scored, no answer honoured. *Stratified* are 60 % moves, 20 % divisions and 20 % of
the rest, *suggested* what a session asks. *At random* are ``--many`` events of the earlier half, or
all that there are; 0 leaves them out. *All the way* are the learned weights even where training
keeps its start, or goes part of the way.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Part, Task, frame_pair, header, option, part_of, row, score, with_truth
from domains import Domain, load_domain
from no_harm import suggested

COUNTS = (10, 20, 50, 100, 200)
UNSEEN = {
    "epidermis, second half": Domain("epidermis", "MouseEpidermis-01-masks", start=7),
    "iPSC 04, every 2nd": Domain("iPSC", "iPSC-04-masks", "04", stride=2),
    "CellMigration, every 4th": Domain("CellMigration", "CellMigration-masks", stride=4),
    "PSC, second half, every 4th": Domain(
        "PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, start=50, stride=4
    ),
    "Phallusia Pm04": Domain(
        "Phallusia", "Phallusia-lineages-csv3D", "Pm04", interval=2, masks="points"
    ),
    "C2C12 F0018": Domain(
        "C2C12", "C2C12-csv2D", "090318-C2C12P7_F0018", interval=5, masks="points"
    ),
}


def load(name: str) -> Task | None:
    """A movie, halved by events."""
    part = load_domain(UNSEEN[name])
    return None if part is None else halved(name, part)


def halved(name: str, part: Part) -> Task:
    """The earlier half of the events of a movie to learn from, the later one to score."""
    pair = frame_pair(part.scene, part.events)
    early = pair < np.median(pair)
    mine, others = (part.events.take(np.flatnonzero(k)) for k in (early, ~early))
    scene = with_truth(part.scene, mine)
    return Task(name, part_of(scene, mine), (part_of(scene, others),))


@dataclass(frozen=True)
class Run:
    """Wrong events of the other half after one training.

    Parameters
    ----------
    now
        By the model that training gives.
    learned
        By what was learned, all the way, whatever was kept.
    step
        Share of the way that was gone; 0 where the start was kept.
    """

    now: int
    learned: int
    step: float


def trained(task: Task, given: AnnotationSet) -> Run:
    """Learn from answers, and score the other half."""
    scene = annotate(task.train.scene, given)
    training = run(train_steps(scene))
    now = len(score(task, training.model.aligned(scene.matrix.features)).wrong)
    learned = len(score(task, training.result.w).wrong)
    return Run(now, learned, training.step if training.kept == "trained" else 0.0)


def measure(task: Task, seeds: int, many: int) -> dict[str, list[Run]]:
    """Trainings by way of asking, one a seed."""
    found: dict[str, list[Run]] = {}

    def add(key: str, given: AnnotationSet) -> None:
        one = trained(task, given)
        found.setdefault(key, []).append(one)
        print(f"{task.name}, {key}: {one}", file=sys.stderr, flush=True)

    for seed in range(seeds):
        for count in COUNTS:
            add(f"stratified {count}", task.clicks(seed, count=count))
        for count, given, _ in suggested(task, seed, start=shipped_model(), counts=COUNTS):
            add(f"suggested {count}", given)
    if many:
        count = min(many, len(task.train.events))
        add("at random", task.clicks(0, count=count, stratified=False))
    return found


def told(values: list[int]) -> str:
    """Mean ± standard deviation, and the range where they differ."""
    if not values:
        return "–"
    if len(set(values)) == 1:
        return str(values[0])
    spread = f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
    return f"{spread} ({min(values)} to {max(values)})"


def rows(task: Task, found: dict[str, list[Run]], columns: list[str]) -> str:
    """What the model does, how often the start was kept, and what was learned."""
    start = shipped_model().aligned(task.train.scene.matrix.features)
    untrained = len(score(task, start).wrong)
    runs = [found.get(k, []) for k in columns]
    kept = [f"{sum(r.step == 0 for r in each)} of {len(each)}" if each else "–" for each in runs]
    scored = f"{len(task.test[0].events):,}"
    return "\n".join(
        (
            row(task.name, scored, untrained, *(told([r.now for r in each]) for each in runs)),
            row("start kept", "", "", *kept),
            row("learned, all the way", "", "", *(told([r.learned for r in e]) for e in runs)),
        )
    )


def main() -> None:
    """Print a row a movie."""
    warnings.simplefilter("ignore")
    seeds, many = int(option("--seeds", 3)), int(option("--many", 2000))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(UNSEEN)
    kinds = [f"{how} {n}" for how in ("stratified", "suggested") for n in COUNTS]
    last = [f"{many:,} at random"] if many else []
    print(header("wrong events", "scored", "untrained", *kinds, *last))
    for name in names:
        task = load(name)
        if task is None:
            continue
        columns = [*kinds, *(["at random"] if many else [])]
        print(rows(task, measure(task, seeds, many), columns), flush=True)


if __name__ == "__main__":
    main()
