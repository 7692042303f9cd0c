"""What `train` should keep: what was learned, the start, or the weights halfway.

    python benchmarks/keep_rule.py [--seeds 4] [--sets S ...]

Development movies, learned from 20, 50 and 100 answers about one half, right or one in twenty
wrong, and scored on the other half: wrong events, means over seeds and numbers of answers, and how
many trainings end above and below the start. *More right* is the better of the two ends on answers
set aside, a tie to the start; *the rule* is that of `training.keep`, and *train* what comes of it
after `training.reach` and `training.kinds`.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from active_events import prior_for
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.paired import compare
from bridgetrack.training.train import train_steps
from common import SETS, Task, header, load_task, option, row, score
from domains import Domain, load_domain
from no_harm import suggested
from unseen import halved

CLICKS = (20, 50, 100)
WAYS = ("stratified", "suggested")
SLIPS = (0.0, 0.05)
POLICIES = ("learned", "halfway", "more right", "the rule", "train")
PARTS = {
    "epidermis, first half": Domain("epidermis", "MouseEpidermis-01-masks", stop=8),
    "PSC, first half, every 4th": Domain(
        "PSC", "PhC-C2DL-PSC-01", scale=(1.6, 1.6), interval=10, stop=50, stride=4
    ),
    "iPSC 03, every 2nd": Domain("iPSC", "iPSC-03-masks", "03", stride=2),
    "C2C12 F0002": Domain(
        "C2C12", "C2C12-csv2D", "090303-C2C12P7_F0002", interval=5, masks="points"
    ),
    "CE 3D, every 2nd": Domain(
        "CE 3D", "Fluo-N3DH-CE-masks", scale=(1.0, 0.09, 0.09), interval=1, stride=2
    ),
}
MOVIES = (
    "bacteria", "HeLa, every 4th", "HeLa", "DIC", "iPSC 01, every 2nd", *PARTS
)  # fmt: skip


def load(name: str) -> Task | None:
    """A development movie, halved."""
    if name in SETS:
        return load_task(name)
    part = load_domain(PARTS[name])
    return None if part is None else halved(name, part)


def answers(task: Task, way: str, seed: int, wrong: float) -> Iterator[tuple[int, AnnotationSet]]:
    """Twenty, fifty and a hundred answers."""
    if way == "stratified":
        for count in CLICKS:
            yield count, task.clicks(seed, count=count, wrong=wrong)
        return
    for count, given, _ in suggested(task, seed, wrong):
        if count in CLICKS:
            yield count, given


def policies(task: Task, given: AnnotationSet) -> dict[str, int] | None:
    """Wrong events of the other half by what is kept."""
    scene = annotate(task.train.scene, given)
    features = scene.matrix.features
    prior = prior_for(task.name)
    start = prior.aligned(features)
    made = run(train_steps(scene, prior))
    if made.validation is None:
        return None
    held, begun = made.validation.held_out[made.validation.best], made.validation.prior
    more = compare(held.wrong, begun.wrong, build_training_set([scene]).annotation_sample).net > 0
    learned, share = made.result.w, made.decision.share

    def wrong(weights: np.ndarray) -> int:
        return len(score(task, weights).wrong)

    return {
        "learned": wrong(learned),
        "halfway": wrong((start + learned) / 2),
        "more right": wrong(learned if more else start),
        "the rule": wrong(start + share * (learned - start)),
        "train": wrong(made.model.aligned(features)),
    }


def main() -> None:
    """Print a row for every movie and way of asking."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 4))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(MOVIES)
    print(header("wrong events", "answers", "start", *POLICIES))
    change: dict[str, list[float]] = defaultdict(list)
    for name in names:
        task = load(name)
        if task is None:
            continue
        start = len(score(task, untrained_model().aligned(task.train.scene.matrix.features)).wrong)
        for way in WAYS:
            for slips in SLIPS:
                found = []
                for seed in range(seeds):
                    for count, given in answers(task, way, seed, slips):
                        one = policies(task, given)
                        print(
                            f"{name}, {way}, {slips}, {count}: {one}", file=sys.stderr, flush=True
                        )
                        found += [] if one is None else [one]
                cells = []
                for policy in POLICIES:
                    values = np.asarray([one[policy] for one in found], dtype=float)
                    change[policy] += ((values - start) / start).tolist()
                    worse, better = int((values > start).sum()), int((values < start).sum())
                    cells.append(f"{values.mean():.1f} (+{worse}, -{better})")
                how = f"{way}, {100 * slips:.0f} % wrong" if slips else way
                print(row(name, how, start, *cells), flush=True)
    means = [f"{100 * np.mean(v):+.1f} %" for v in change.values()]
    above = [f"{100 * np.mean(np.asarray(v) > 0):.0f} %" for v in change.values()]
    worst = [f"{100 * np.max(v):+.0f} %" for v in change.values()]
    print(row("mean change", "", "", *means), row("above the start", "", "", *above), sep="\n")
    print(row("worst", "", "", *worst))


if __name__ == "__main__":
    main()
