"""Movies that no choice has seen: wrong events of one half after answers about the other.

    python benchmarks/unseen.py [--seeds 2] [--many 2000] [--sets S ...]

Neither weights nor rules of the program were set while looking at these parts of movies. Events of
the earlier half (by events) are answered, ``bridgetrack train`` learns with its defaults, and the
other half is scored, no answer honoured. *Stratified* are 60 % moves, 20 % divisions and 20 % of
the rest, *suggested* what a session asks. *At random* are ``--many`` events of the earlier half, or
all that there are; 0 leaves them out.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import DATA, Task, frame_pair, header, option, part_of, row, score, with_truth
from domains import Domain, load_domain
from no_harm import suggested

COUNTS = (20, 50, 100)
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
    part = load_domain(UNSEEN[name], DATA)
    if part is None:
        return None
    pair = frame_pair(part.scene, part.events)
    early = pair < np.median(pair)
    mine, others = (part.events.take(np.flatnonzero(k)) for k in (early, ~early))
    scene = with_truth(part.scene, mine)
    return Task(name, part_of(scene, mine), (part_of(scene, others),))


def wrong(task: Task, given: AnnotationSet) -> tuple[int, float]:
    """Wrong events of the other half after training, and the share of the step that was gone."""
    scene = annotate(task.train.scene, given)
    training = run(train_steps(scene))
    found = score(task, training.model.aligned(scene.matrix.features))
    return len(found.wrong), training.step if training.kept == "trained" else 0.0


def measure(task: Task, seeds: int, many: int) -> dict[str, list[int]]:
    """Wrong events by way of asking, one number a seed."""
    start = shipped_model().aligned(task.train.scene.matrix.features)
    found = {"untrained": [len(score(task, start).wrong)]}
    print(f"{task.name}, untrained: {found['untrained'][0]}", file=sys.stderr, flush=True)

    def add(key: str, given: AnnotationSet) -> None:
        n, step = wrong(task, given)
        found.setdefault(key, []).append(n)
        print(f"{task.name}, {key}: {n}, step {step:g}", file=sys.stderr, flush=True)

    for seed in range(seeds):
        for count in COUNTS:
            add(f"stratified {count}", task.clicks(seed, count=count))
        for count, given, _ in suggested(task, seed, start=shipped_model()):
            if count in COUNTS:
                add(f"suggested {count}", given)
    if many:
        count = min(many, len(task.train.events))
        add("at random", task.clicks(0, count=count, stratified=False))
    return found


def told(values: list[int] | None) -> str:
    """Mean, and the values where there are several."""
    if not values:
        return "–"
    if len(set(values)) == 1:
        return str(values[0])
    return f"{np.mean(values):.1f} ({', '.join(map(str, values))})"


def main() -> None:
    """Print a row a movie."""
    warnings.simplefilter("ignore")
    seeds, many = int(option("--seeds", 2)), int(option("--many", 2000))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(UNSEEN)
    kinds = [f"{how} {n}" for how in ("stratified", "suggested") for n in COUNTS]
    last = [f"{many:,} at random"] if many else []
    print(header("wrong events", "scored", "untrained", *kinds, *last))
    for name in names:
        task = load(name)
        if task is None:
            continue
        found = measure(task, seeds, many)
        scored = len(task.test[0].events)
        columns = ["untrained", *kinds, *(["at random"] if many else [])]
        print(row(name, f"{scored:,}", *(told(found.get(k)) for k in columns)), flush=True)


if __name__ == "__main__":
    main()
