"""Test loss against the annotated share of a new movie: the analogue of 000, Figure 1.10.

    python benchmarks/transfer.py [--seeds 10] [--pairs "HeLa to its own every 4th" ...]

A *source* movie is annotated; a share of the events of the *target's* training part is annotated
too, every kind alike; scored are the events of the target's other part, which no strategy learns
from. Five strategies (Table 1.4), all by `strategy_steps` with its defaults, all starting from the
hand-set weights: those of the shipped model, but without its tightness, which has been learned from
some of these movies. Prints tables and verdicts. Finished rows are kept in ``--log``, so that a
stopped run can be continued; the pairs take turns, seed by seed, and a seed counts once complete.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import strategy_steps
from common import (
    DATA,
    SETS,
    Array,
    DataSet,
    Task,
    header,
    load,
    load_task,
    row,
    score,
    spread,
    with_truth,
)

SHARES = (0, 2, 5, 10, 20, 35, 50)
DRAWS = 2_000
LOOSE = 3.0
"""Annotations' worth of lambda in a second training on all of the target. The program's own choice
stays closer to the prior, which costs most where there is most to learn from; the goals are held
against the better of the two."""


@dataclass(frozen=True)
class Pair:
    """A source movie and a target.

    Parameters
    ----------
    name
        In tables.
    source, share
        The movie and the annotated share of its events.
    target
        Name of a data set; its first part may be annotated, its other part is scored.
    """

    name: str
    source: DataSet
    share: float
    target: str


_HELA_START = replace(SETS["HeLa"], stop=44)
"""Frames before the first scored one of "HeLa, every 4th". To that movie this is no transfer: the
first part of the target shows the very cells of the source, at a quarter of the rate."""
PAIRS = {
    p.name: p
    for p in (
        Pair("HeLa to its own every 4th", _HELA_START, 1.0, "HeLa, every 4th"),
        Pair("HeLa to bacteria", _HELA_START, 1.0, "bacteria"),
        Pair("iPSC 03 to iPSC 01", SETS["iPSC 03"], 0.2, "iPSC 01"),
        Pair("bacteria to HeLa, every 4th", SETS["bacteria"], 1.0, "HeLa, every 4th"),
        Pair("iPSC 03 to iPSC 04", SETS["iPSC 03"], 0.2, "iPSC 04"),
        Pair("HeLa to epidermis", _HELA_START, 1.0, "epidermis"),
    )
}
LABELS = {
    "target": "partial target",
    "union": "union",
    "transfer": "transfer",
}


@dataclass(frozen=True)
class Row:
    """One training and its score.

    Parameters
    ----------
    pair, strategy, share, seed
        Which; 100 % and all source have one seed.
    n
        Annotations of the target.
    loss
        Share of wrong events.
    wrong
        Numbers of the wrong events.
    tie
        What transfer chose: lambda and rho times the annotations; None for others.
    seconds
        Processor seconds of all threads.
    """

    pair: str
    strategy: str
    share: int
    seed: int
    n: int
    loss: float
    wrong: tuple[int, ...]
    tie: tuple[float, float] | None
    seconds: float

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What names it in the log."""
        return (self.pair, self.strategy, self.share, self.seed)


def source_scene(pair: Pair, root: Path) -> Scene:
    """The annotated source movie."""
    part = load(pair.source, root)
    assert part is not None
    scene = with_truth(part.scene, part.events)
    cells = scene.detections
    return annotate(scene, draw_annotations(part.events, cells, seed=0, fraction=pair.share))


def learn(pair: Pair, task: Task, source: Scene, strategy: str, share: int, seed: int) -> Row:
    """Train and score; ``loose`` is *target* with a given lambda."""
    target = task.annotated(seed, fraction=share / 100) if share else task.train.scene
    sources = [] if strategy in ("target", "loose") else [source]
    begin = time.process_time()
    tie = None
    if strategy == "target" and not share:
        model = untrained_model()
    else:
        name: Any = "target" if strategy == "loose" else strategy
        strength = LOOSE / len(target.constraints) if strategy == "loose" else None
        options = TrainingOptions(strength=strength)
        training = run(strategy_steps(name, target, sources, untrained_model(), options))
        model = training.model
        if training.transfer is not None and training.kept == "trained":
            tie = (training.transfer.tie.weight, training.transfer.tie.tie)
    seconds = time.process_time() - begin
    found = score(task, model.aligned(task.train.scene.matrix.features))
    n = len(target.constraints)
    return Row(pair.name, strategy, share, seed, n, found.loss, found.wrong, tie, seconds)


def jobs_of(seed: int) -> list[tuple[str, int, int]]:
    """Strategies and shares of a seed; where nothing is drawn the first seed is enough."""
    jobs = [("source", 0, 0), ("loose", 100, 0)] if seed == 0 else []
    shares = (*SHARES, 100) if seed == 0 else SHARES[1:]
    return jobs + [(s, share, seed) for share in shares for s in LABELS]


def measure(
    pairs: list[Pair], root: Path, seeds: int, done: list[Row], log: Path, minutes: float
) -> dict[str, list[Row]]:
    """The rows of all complete seeds of every pair; those that are done are not measured again."""
    known = {r.key: r for r in done}
    stop = time.monotonic() + 60 * minutes
    opened: dict[str, tuple[Task, Scene] | None] = {}
    found: dict[str, list[Row]] = {}
    for seed in range(seeds):
        for pair in pairs:
            jobs = jobs_of(seed)
            missing = [job for job in jobs if (pair.name, *job) not in known]
            if time.monotonic() > stop:
                missing = []
            if missing and pair.name not in opened:
                opened[pair.name] = _open(pair, root)
            for strategy, share, _ in missing:
                ready = opened[pair.name]
                if ready is None or time.monotonic() > stop:
                    break
                row_ = learn(pair, *ready, strategy, share, seed)
                known[row_.key] = row_
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(list(vars(row_).values())) + "\n")
            if all((pair.name, *job) in known for job in jobs):
                found.setdefault(pair.name, []).extend(known[(pair.name, *job)] for job in jobs)
    return found


def _open(pair: Pair, root: Path) -> tuple[Task, Scene] | None:
    task = load_task(pair.target, root)
    if task is None or not (root / pair.source.folder).is_dir():
        return None
    return task, source_scene(pair, root)


def losses(rows: list[Row], strategy: str, share: int) -> list[float]:
    """Share of wrong events over seeds."""
    return [r.loss for r in rows if r.strategy == strategy and r.share == share]


def errors(rows: list[Row], strategy: str, share: int, events: int) -> Array:
    """Every scored event's share of seeds that are wrong about it."""
    mine = [r for r in rows if r.strategy == strategy and r.share == share]
    count = np.zeros(events)
    for found in mine:
        count[list(found.wrong)] += 1
    return count / len(mine)


def excess(one: Array, other: Array, factor: float = 1.0) -> tuple[float, float]:
    """95 % interval of ``mean(one) - factor mean(other)`` over scored events, in points."""
    rng = np.random.default_rng(0)
    difference = one - factor * other
    draws = [rng.choice(difference, len(difference)).mean() for _ in range(DRAWS)]
    low, high = np.quantile(draws, [0.025, 0.975])
    return 100 * float(low), 100 * float(high)


def n_events(rows: list[Row]) -> int:
    """Number of scored events, from any row with a wrong one."""
    found = next(r for r in rows if r.wrong)
    return round(len(found.wrong) / found.loss)


def table(pair: Pair, rows: list[Row]) -> str:
    """The table of one pair."""
    source = losses(rows, "source", 0)[0]
    lines = [
        f"### {pair.name}: {n_events(rows):,} events scored, "
        f"{len({r.seed for r in rows})} seeds",
        "",
        f"Hand-set weights: {100 * losses(rows, 'target', 0)[0]:.2f} % of events wrong; "
        f"all source: {100 * source:.2f} %; "
        f"all target: {100 * losses(rows, 'target', 100)[0]:.2f} %, "
        f"with lambda = {LOOSE:g}/n {100 * losses(rows, 'loose', 100)[0]:.2f} %.",
        "",
        header(
            "annotated", "events", *LABELS.values(), "transfer - partial", "transfer - union",
            "chosen by transfer", "seconds",
        ),
    ]  # fmt: skip
    for share in (*SHARES, 100):
        mine = [r for r in rows if r.share == share]
        cells = [_spread(losses(rows, strategy, share)) for strategy in LABELS]
        each = [errors(rows, s, share, n_events(rows)) for s in LABELS]
        intervals = ["{:+.2f} to {:+.2f}".format(*excess(each[2], each[k])) for k in (0, 1)]
        transfers = [r for r in mine if r.strategy == "transfer"]
        seconds = f"{np.mean([r.seconds for r in transfers]):.1f}"
        n = f"{np.mean([r.n for r in transfers]):.0f}"
        lines.append(row(f"{share} %", n, *cells, *intervals, _chosen(transfers), seconds))
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return spread(values) if len(values) > 1 else f"{100 * values[0]:.2f}"


def _chosen(rows: list[Row]) -> str:
    """How often transfer chose what."""
    names = ["prior" if r.tie is None else _name(*r.tie) for r in rows]
    return ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))


def _name(weight: float, tie: float) -> str:
    if np.isinf(weight):
        return "alone"
    return "one model" if np.isinf(tie) else f"tied {tie:g}"


def verdicts(found: dict[str, list[Row]]) -> str:
    """Whether transfer is near all of the target, and where it is worse than other strategies."""
    lines = [
        header("pair", "all target", "5 %", "10 %", "20 %", "within 10 % (5 to 20 %)",
               "worse than partial up to 50 %", "worse than union up to 50 %")
    ]  # fmt: skip
    for name, rows in found.items():
        n = n_events(rows)
        kind = best_full(rows)
        reference = losses(rows, kind, 100)[0]
        full = errors(rows, kind, 100, n)
        means = {s: float(np.mean(losses(rows, "transfer", s))) for s in (5, 10, 20)}
        near = []
        for share, mean in means.items():
            if mean <= 1.1 * reference:
                near.append("yes")
            else:
                low, _ = excess(errors(rows, "transfer", share, n), full, 1.1)
                near.append("cannot tell" if low <= 0 else "no")
        cells = [f"{100 * v:.2f}" for v in (reference, *means.values())]
        worse = [_worse(rows, other, n) for other in ("target", "union")]
        lines.append(row(name, *cells, ", ".join(near), *worse))
    return "\n".join(lines)


def best_full(rows: list[Row]) -> str:
    """The better training on all of the target."""
    return min(("target", "loose"), key=lambda kind: losses(rows, kind, 100)[0])


def _worse(rows: list[Row], other: str, n: int) -> str:
    """Shares at which transfer is worse on average, and whether the interval excludes zero."""
    found = []
    for share in SHARES:
        mine, theirs = (float(np.mean(losses(rows, s, share))) for s in ("transfer", other))
        if mine > theirs + 1e-9:
            low, _ = excess(errors(rows, "transfer", share, n), errors(rows, other, share, n))
            sure = "clearly" if low > 0 else "cannot tell"
            found.append(f"{share} % (+{100 * (mine - theirs):.2f}, {sure})")
    return ", ".join(found) or "never"


def main() -> None:
    """Print tables and verdicts, and draw."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--seeds", type=int, default=10, help="repetitions")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after these")
    parser.add_argument("--log", type=Path, default=Path("transfer.jsonl"), help="finished rows")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS), choices=list(PAIRS))
    given = parser.parse_args()
    if not given.data.is_dir():
        sys.exit(f"{given.data}: there is no such folder; give it with --data")
    done = []
    if given.log.exists():
        lines: list[Any] = [json.loads(line) for line in given.log.read_text().splitlines()]
        done = [
            Row(*r[:6], tuple(r[6]), None if r[7] is None else tuple(r[7]), r[8]) for r in lines
        ]
    pairs = [PAIRS[name] for name in given.pairs]
    found = measure(pairs, given.data, given.seeds, done, given.log, given.minutes)
    for name, rows in found.items():
        print(table(PAIRS[name], rows), flush=True)
    if found:
        print(verdicts(found), flush=True)


if __name__ == "__main__":
    main()
