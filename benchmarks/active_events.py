"""Event-level suggestions against stratified random clicks: test loss against clicks.

    python benchmarks/active_events.py [--seeds 10] [--sets S ...] [--log FILE] [--methods 'M;M']

A simulated annotator answers suggestions about the training part, one at a time; the session
updates its model every five answers. Stratified clicks are 60 % moves, 20 % divisions and 20 % of
the rest by truth, which nobody knows beforehand. Both are then learned from in the same way, by one
max-margin fit around the shipped model, as sessions do, and, after 50 clicks, by ``bridgetrack
train``; both are tested on the other half of the movie. How tightly the shipped model ties its
weights is learned anew where it has seen a movie of that kind. Wrong answers are plausible ones
(`annotations.mistakes`). Prints one table per movie and draws ``docs/images/active/clicks.png``.
Finished runs are kept in ``--log``; ``--finished`` shows those and runs no more.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.active.options import LearnOptions, SessionOptions, SuggestOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by
from bridgetrack.active.update import learn
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.train import train_steps
from common import Task, arguments, frame_pair, header, load_task, row, score, spread
from learning_curve import FAMILIES
from pretrain import start_without

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images" / "active"
SETS = ("HeLa, every 4th", "bacteria", "DIC", "SIM+", "epidermis", "HeLa", "iPSC 03")
NUCLEAR = ("HeLa, every 4th", "SIM+", "epidermis")
CLICKS = (10, 20, 30, 40, 50, 60, 80, 100)
MORE = (*CLICKS, 160, 200)
TRAINED = 50
"""Clicks after which ``bridgetrack train`` is tried as well."""
Curve = list[list[float]]
Curves = dict[str, list[Curve]]
METHODS: dict[str, dict[str, Any]] = {
    "suggested": {},
    "suggested, 5 % wrong": {"wrong": 0.05},
    "stratified": {"drawn": True},
    "stratified, 5 % wrong": {"drawn": True, "wrong": 0.05},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "no rarity": {"suggest": {"rarity": 0.0}},
    "rarity 1": {"suggest": {"rarity": 1.0}},
    "no diversity": {"suggest": {"diversity": 0.0}},
    "uncertainty only": {"suggest": {"diversity": 0.0, "rarity": 0.0, "random_share": 0.0}},
    "entropy": {"suggest": {"measure": "entropy"}},
    "temperature 3": {"suggest": {"temperature": 3.0}},
    "random half": {"suggest": {"random_share": 0.5}},
    "random only": {"suggest": {"random_share": 1.0}},
    "nothing held": {"learn": {"hold_sure": False}},
    "nothing held, 5 % wrong": {"wrong": 0.05, "learn": {"hold_sure": False}},
}
"""Tried with ``--methods``, for the choice of defaults."""


@cache
def prior_for(name: str) -> Model:
    """The shipped model as it were had it never seen a movie of this kind."""
    return start_without(FAMILIES.get(name, ""))


def loss_of(task: Task, scene: Scene, **learning: Any) -> float:
    """Test loss after the one fit that all ways of choosing clicks share."""
    prior = prior_for(task.name)
    start = prior.aligned(scene.matrix.features)
    population = population_of([scene], choices([scene], start))
    options = LearnOptions(precision=2e-3, most_calls=150, **learning)
    return score(task, run(learn(scene, prior, population, options)).weights).loss


def trained_loss(task: Task, scene: Scene) -> float:
    """Test loss of ``bridgetrack train``: lambda by cross-validation, the better model kept."""
    kept = run(train_steps(scene, prior_for(task.name))).model
    return score(task, kept.aligned(scene.matrix.features)).loss


def frames_of(task: Task) -> tuple[int, int]:
    """Frames of the training part."""
    return 0, int(frame_pair(task.train.scene, task.train.events).max()) + 1


def answers(
    task: Task, seed: int, wrong: float = 0.0, **how: Any
) -> Iterator[tuple[int, AnnotationSet]]:
    """The answers of one session after each number of `CLICKS`."""
    annotator = SimulatedAnnotator(
        task.train.events, task.train.scene.detections, wrong=wrong, seed=seed
    )
    options = SessionOptions()
    chosen: SuggestOptions = replace(
        options.suggest, seed=seed, frames=frames_of(task), **how.get("suggest", {})
    )
    options = replace(
        options,
        suggest=chosen,
        learn=replace(options.learn, **how.get("learn", {})),
        # judging random answers anew takes time and changes no suggestion
        rejudge_every=10_000,
    )
    session = ActiveSession(task.train.scene, prior_for(task.name), options=options)
    session.adopt(run(session.update()))
    for clicks in range(1, max(CLICKS) + 1):
        suggestion = session.next()
        if suggestion is None:
            return
        answer_by(session, annotator, suggestion)
        if session.wants_update:
            session.adopt(run(session.update()))
        if clicks in CLICKS:
            yield clicks, session.annotations


def suggested(task: Task, seed: int, **how: Any) -> Curve:
    """Clicks and test loss of one session; those of ``train`` have negative clicks."""
    curve = []
    for clicks, given in answers(task, seed, **how):
        scene = annotate(task.train.scene, given)
        curve.append([clicks, loss_of(task, scene, **how.get("learn", {}))])
        if clicks == TRAINED and "learn" not in how:
            curve.append([-clicks, trained_loss(task, scene)])
    return curve


def one_run(task: Task, method: str, seed: int) -> Curve:
    """Clicks and test loss."""
    how = {**METHODS, **VARIANTS}[method]
    if not how.get("drawn"):
        return suggested(task, seed, **how)
    wrong = how.get("wrong", 0.0)
    scenes = {c: task.annotated(seed, count=c, wrong=wrong) for c in MORE}
    curve = [[c, loss_of(task, scene)] for c, scene in scenes.items()]
    return [*curve, [-TRAINED, trained_loss(task, scenes[TRAINED])]]


def measure(
    task: Task, methods: list[str], seeds: int, log: Path, finished: bool
) -> tuple[Curves, float, float]:
    """All curves of a movie, the loss of full annotation and of the untrained weights."""
    known = {}
    if log.exists():
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            known[entry["set"], entry["method"], entry["seed"]] = entry["curve"]
    found: Curves = {m: [] for m in methods}
    for seed in range(seeds):
        for method in methods:
            key = (task.name, method, seed)
            if key not in known and finished:
                continue
            if key not in known:
                known[key] = one_run(task, method, seed)
                entry = {"set": task.name, "method": method, "seed": seed, "curve": known[key]}
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
            found[method].append(known[key])
    start = prior_for(task.name).aligned(task.train.scene.matrix.features)
    full = loss_of(task, task.annotated(0, fraction=1.0))
    return found, full, score(task, start).loss


def at(curves: list[Curve], clicks: int) -> list[float]:
    """Losses at a number of clicks, over seeds."""
    return [loss for curve in curves for c, loss in curve if c == clicks]


def table(name: str, found: Curves, full: float, plain: float) -> str:
    """Losses of one movie, and the two questions."""
    seeds = len(next(iter(found.values())))
    lines = [
        f"### {name}: untrained {100 * plain:.2f} %, full annotation {100 * full:.2f} %, "
        f"{seeds} seeds",
        "",
        header("wrong events, %", *(str(c) for c in MORE), f"{TRAINED}, train"),
    ]
    for method, curves in found.items():
        lines.append(row(method, *(spread(at(curves, c)) for c in (*MORE, -TRAINED))))
    if {"suggested", "stratified"} <= set(found):
        lines += ["", halves(found), near_full(found["suggested"], full)]
    return "\n".join(lines) + "\n"


def halves(found: Curves) -> str:
    """Whether half the clicks do as well, at every number of stratified clicks."""
    verdicts = []
    for clicks in (20, 40, 60, 80, 100, 160, 200):
        mine, theirs = at(found["suggested"], clicks // 2), at(found["stratified"], clicks)
        if mine and theirs:
            difference = 100 * (np.mean(mine) - np.mean(theirs))
            spreads = [np.var(losses, ddof=1) / len(losses) for losses in (mine, theirs)]
            error = 100 * np.sqrt(sum(spreads)) if min(len(mine), len(theirs)) > 1 else 0.0
            verdicts.append(f"{clicks // 2} for {clicks}: {difference:+.2f} ± {error:.2f}")
    return f"Half the clicks, difference in points ± standard error: {'; '.join(verdicts)}."


def near_full(curves: list[Curve], full: float) -> str:
    """Clicks until the mean loss is within 20 % of that of full annotation, and stays there."""
    means = {c: float(np.mean(at(curves, c))) for c in CLICKS if at(curves, c)}
    good = [c for c in means if all(means[d] <= 1.2 * full + 1e-12 for d in means if d >= c)]
    first = min(good, default=None)
    return (
        f"Within 20 % of full annotation, and staying so: from {first or 'more than 100'} clicks."
    )


def draw(results: dict[str, tuple[Curves, float, float]]) -> None:
    """One panel per movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = min(3, len(results))
    height = -(-len(results) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(4.2 * columns, 3.2 * height + 0.4), squeeze=False
    )
    styles = {"suggested": ("C0", "-"), "suggested, 5 % wrong": ("C0", "--"),
              "stratified": ("C1", "-"), "stratified, 5 % wrong": ("C1", "--")}  # fmt: skip
    for axis, (name, (found, full, plain)) in zip(axes.flat, results.items(), strict=False):
        for method, (colour, line) in styles.items():
            if method not in found:
                continue
            clicks = [c for c in MORE if at(found[method], c)]
            if not clicks:
                continue
            loss = np.asarray([at(found[method], c) for c in clicks]) * 100
            mean, error = loss.mean(axis=1), loss.std(axis=1) / np.sqrt(loss.shape[1])
            axis.plot(clicks, mean, color=colour, ls=line, lw=1.5, label=method)
            axis.fill_between(clicks, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
        axis.axhline(100 * plain, color="0.4", ls="--", lw=1.0, label="untrained")
        axis.axhline(100 * full, color="0.4", ls=":", lw=1.2, label="full annotation")
        axis.set(title=name, xlabel="clicks", ylabel="wrong events (test), %")
        axis.set_ylim(0)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(results) :]:
        axis.set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.5 / figure.get_figheight()))
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "clicks.png", dpi=110)


def main() -> None:
    """Print tables and draw."""
    warnings.simplefilter("ignore")
    log, methods = Path("active_events.jsonl"), list(METHODS)
    if "--methods" in sys.argv:
        place = sys.argv.index("--methods")
        methods = sys.argv[place + 1].split(";")
        del sys.argv[place : place + 2]
    if "--log" in sys.argv:
        place = sys.argv.index("--log")
        log = Path(sys.argv[place + 1])
        del sys.argv[place : place + 2]
    finished = "--finished" in sys.argv
    if finished:
        sys.argv.remove("--finished")
    given = arguments(__doc__, 10, SETS)
    results = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            results[name] = measure(task, methods, given.seeds, log, finished)
            print(table(name, *results[name]), flush=True)
    if results and "suggested" in methods:
        draw(results)


if __name__ == "__main__":
    main()
