"""How often the interval of the accuracy that `train` estimates holds the true accuracy.

    python benchmarks/train_coverage.py [--seeds 30] [--sets S ...] [--log FILE]

Answers about one half of a movie are drawn one by one at random, by kind (*stratified*, as people
seek out divisions), or *side by side*: five neighbours each at places drawn at random. The truth is
the share of its true events that the kept model finds, without the help of the answers. *Exact* is
the width that the exact interval of a share has where as many answers, of which as many are right,
are drawn independently and with equal chances: no interval that always holds its level can be much
narrower. Clicks that people choose in other ways are not measured.
Finished runs are kept in ``--log``.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Task, arguments, frame_pair, header, load_task, row

SETS = ("DIC", "HeLa, every 4th", "bacteria", "iPSC 01, every 2nd", "HeLa", "epidermis", "SIM+")
WAYS = ("at random", "stratified", "side by side")
CLICKS = (20, 50, 100)
BESIDE = 5
"""Neighbours that are answered together."""


def one_run(task: Task, way: str, seed: int, count: int) -> dict[str, Any]:
    """The truth and, where there is one, the estimate of one training."""
    train = task.train
    scene = annotate(train.scene, answers(task, way, seed, count))
    made = run(train_steps(scene, shipped_model()))
    weights = made.model.aligned(scene.matrix.features)
    chosen = solve(train.scene.problem, train.scene.matrix.scores(weights)).chosen
    truth = float(((train.column >= 0) & chosen[np.maximum(train.column, 0)]).mean())
    entry: dict[str, Any] = {"set": task.name, "way": way, "seed": seed, "count": count}
    entry["truth"] = truth
    if made.estimate is not None:
        e = made.estimate
        right = sum(share for *_, share in e.per_event)
        entry["estimate"] = [e.accuracy, e.low, e.high, exact_width(right, e.n_annotations)]
    return entry


def answers(task: Task, way: str, seed: int, count: int) -> AnnotationSet:
    """Simulated answers of one kind."""
    if way != "side by side":
        return task.clicks(seed, count=count, stratified=way == "stratified")
    scene, events = task.train.scene, task.train.events
    pair, source, target = frame_pair(scene, events), events.sources[:, 0], events.targets[:, 0]
    place = scene.detections.position[np.where(source >= 0, source, target)]
    rows: list[int] = []
    for k in np.random.default_rng(seed).permutation(len(pair)).tolist():
        same = np.flatnonzero(pair == pair[k])
        near = same[np.argsort(np.linalg.norm(place[same] - place[k], axis=1), kind="stable")]
        rows += [j for j in near[:BESIDE].tolist() if j not in rows]
        if len(rows) >= count:
            break
    chosen = events.take(np.sort(rows[:count]))
    return draw_annotations(chosen, scene.detections, fraction=1.0)


def exact_width(right: float, n: int) -> float:
    """Of the exact 95 % interval of a share, from independent answers."""
    low = betaincinv(right, n - right + 1, 0.025) if right > 0 else 0.0
    high = betaincinv(right + 1, n - right, 0.975) if right < n else 1.0
    return float(high - low)


def measure(name: str, seeds: int, data: Path, log: Path) -> list[dict[str, Any]]:
    """All runs of a movie; those in the log are not repeated."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    known = {
        (e["set"], e["way"], e["seed"], e["count"]): e for e in map(json.loads, text.splitlines())
    }
    wanted = [(name, w, s, c) for w in WAYS for s in range(seeds) for c in CLICKS]
    task = None if all(key in known for key in wanted) else load_task(name, data)
    for key in wanted:
        if key not in known and task is not None:
            known[key] = one_run(task, *key[1:])
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[key]) + "\n")
    return [known[key] for key in wanted if key in known]


def line(name: str, way: str, runs: list[dict[str, Any]]) -> str:
    """A row of the table."""
    told = [r for r in runs if "estimate" in r]
    truth = np.asarray([r["truth"] for r in told])
    accuracy, low, high, exact = np.asarray([r["estimate"] for r in told]).T
    number = np.asarray([r["count"] for r in told])
    covers = (low <= truth) & (truth <= high)
    by_count = [f"{covers[number == c].sum()} of {(number == c).sum()}" for c in CLICKS]
    return row(
        name, way, f"{100 * truth.mean():.1f}", *by_count, f"{100 * covers.mean():.0f} %",
        f"{(truth > high).sum()}", f"{(truth < low).sum()}",
        f"{100 * (accuracy - truth).mean():+.1f}", f"{100 * (high - low).mean():.1f}",
        f"{100 * exact.mean():.1f}",
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    log = Path("train_coverage.jsonl")
    if "--log" in sys.argv:
        at = sys.argv.index("--log")
        log = Path(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    given = arguments(__doc__, 30, SETS)
    print(
        header("movie", "answers", "truth %", *(f"{c}: covers" for c in CLICKS), "in all",
               "truth above", "truth below", "bias, points", "width, points", "exact, points")
    )  # fmt: skip
    every: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for name in given.sets:
        runs = measure(name, given.seeds, given.data, log)
        for way in WAYS if runs else ():
            mine = [r for r in runs if r["way"] == way]
            every[way] += mine
            print(line(name, way, mine), flush=True)
    for way, runs in every.items():
        told = [(r["truth"], *r["estimate"]) for r in runs if "estimate" in r]
        if told:
            covers = np.mean([low <= truth <= high for truth, _, low, high, _ in told])
            silent = len(runs) - len(told)
            tail = f"; {silent} runs gave no interval" if silent else ""
            print(f"\n{way}: covers in {100 * covers:.1f} % of {len(told)}{tail}.")


if __name__ == "__main__":
    main()
