"""How often `train` keeps the worse of the starting and the learned weights.

    python benchmarks/keep_rule.py [--seeds 6] [--sets S ...] [--draws 4000]

First by simulation: answers fall into parts of a movie (components) of one to four answers, which
are right or wrong together more often than not. Of the answers on which the two models differ, a
share speaks for the learned one. *False keep* is the share of draws in which learned weights that
are worse in truth are kept, *false drop* that in which better ones are given up; with no difference
either is right, and *kept* says what happens. Strict levels of the same test stand beside the rule.

Then on real movies, learned from stratified, uniform and partly wrong answers about one half and
scored on the other: wrong events in % by what is kept, and what became of ties.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.keep import CONTRADICTED, hardly_better
from bridgetrack.training.paired import Comparison, compare
from bridgetrack.training.train import train_steps
from common import Task, arguments, header, load_task, option, row, score

LEVELS = (0.25, 0.1, 0.05)
SETS = ("DIC", "HeLa, every 4th", "bacteria", "HeLa")
WAYS: dict[str, dict[str, Any]] = {
    "stratified": {},
    "uniform": {"stratified": False},
    "5 % wrong": {"wrong": 0.05},
}
CLICKS = (20, 50, 100)
Array = NDArray[np.float64]
Rule = Callable[[Comparison, int], bool]


def by_rule(found: Comparison, contradicted: int) -> bool:
    """What `training.keep` does for a movie that is alone."""
    return not hardly_better(found) and more_gained(found, contradicted)


def more_gained(found: Comparison, contradicted: int) -> bool:
    """The same where a gain counts however many answers are lost, too."""
    return found.net > 0 or (found.net == 0 and contradicted >= CONTRADICTED)


def at_level(level: float) -> Rule:
    """Kept where chance would bring as much rarely enough."""
    return lambda found, _: found.chance <= level


RULES: dict[str, Rule] = {
    "the rule": by_rule,
    "any gain": more_gained,
    "a tie to the start": lambda found, _: found.net > 0,
    **{f"chance at most {level:g}": at_level(level) for level in LEVELS},
}


def draw(rng: np.random.Generator, n: int, differ: float, share: float) -> tuple[Comparison, int]:
    """Verdicts on n answers, ``differ`` of which tell the models apart, ``share`` for learned.

    Another 4 % of the answers contradict both models.
    """
    part = np.repeat(np.arange(n), rng.integers(1, 5, n))[:n]
    leader = rng.random(n)[part]
    u = np.where(rng.random(n) < 0.7, leader, rng.random(n))
    before, learned = np.zeros(n), np.zeros(n)
    before[(u < differ * share)] = 1
    learned[(u >= differ * share) & (u < differ)] = 1
    both = u > 0.96
    before[both] = learned[both] = 1
    # in a tie the rule looks at what the final weights, which have seen all, explain: all of it
    return compare(learned, before, part), int(before.sum())


def simulated(draws: int) -> str:
    """Rates of wrong decisions."""
    lines = [header("answers", "tell the two apart", "for the learned one", "error", *RULES)]
    rng = np.random.default_rng(0)
    for n in (20, 50, 100, 300):
        for differ in (0.05, 0.15):
            for share in (0.5, 0.25, 0.75):
                found = [draw(rng, n, differ, share) for _ in range(draws)]
                kept = [np.mean([rule(*f) for f in found]) for rule in RULES.values()]
                error = {0.5: "kept", 0.25: "false keep", 0.75: "false drop"}[share]
                rates = [1 - k if error == "false drop" else k for k in kept]
                lines.append(row(n, f"{100 * differ:.0f} %", f"{100 * share:.0f} %", error,
                                 *(f"{100 * r:.0f} %" for r in rates)))  # fmt: skip
    return "\n".join(lines)


def real(task: Task, seeds: int) -> tuple[list[str], list[tuple[int, float]]]:
    """Rows of a movie, and of every tie the answers against the start and the change."""
    lines, ties = [], []
    prior = shipped_model()
    start = score(task, prior.aligned(task.train.scene.matrix.features)).loss
    for way, how in WAYS.items():
        losses: dict[str, list[float]] = {name: [] for name in ("learned", *RULES)}
        for seed in range(seeds):
            for count in CLICKS:
                scene = annotate(task.train.scene, task.clicks(seed, count=count, **how))
                made = run(train_steps(scene, prior))
                if made.validation is None:
                    continue
                learned = score(task, made.result.w).loss
                part = build_training_set([scene]).annotation_sample
                held, before = made.validation.held_out[made.validation.best], made.validation.prior
                found = compare(held.wrong, before.wrong, part)
                contradicted = int((before.wrong > 0.5).sum())
                losses["learned"].append(learned)
                for name, rule in RULES.items():
                    keep = rule(found, contradicted) if rule != by_rule else made.kept == "trained"
                    losses[name].append(learned if keep else start)
                if found.net == 0:
                    ties.append((contradicted, learned - start))
        means = [f"{100 * np.mean(values):.2f}" for values in losses.values()]
        worst = 100 * (max(losses["the rule"]) - start)
        lines.append(row(task.name, way, f"{100 * start:.2f}", *means, f"{worst:+.2f}"))
    return lines, ties


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    draws = int(option("--draws", 4000))
    given = arguments(__doc__, 6, SETS)
    print(simulated(draws) + "\n", flush=True)
    ties: list[tuple[int, float]] = []
    print(header("movie", "answers", "start", "learned", *RULES, "worst of the rule, points"))
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            lines, more = real(task, given.seeds)
            ties += more
            print("\n".join(lines), flush=True)
    by = "ties, by answers that contradict the start"
    print("\n" + header(by, "n", "better", "alike", "worse", "mean change, points"))
    for name, least, most in (("none", 0, 0), ("one", 1, 1), ("two or more", 2, sys.maxsize)):
        change = np.asarray([c for k, c in ties if least <= k <= most])
        if len(change):
            print(row(name, len(change), int((change < 0).sum()), int((change == 0).sum()),
                      int((change > 0).sum()), f"{100 * change.mean():+.2f}"))  # fmt: skip


if __name__ == "__main__":
    main()
