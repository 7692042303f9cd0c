"""Errors against the share of annotated events: the analogue of 001, Figure 3.

    python benchmarks/learning_curve.py [--seeds 5] [--sets epidermis bacteria ...]

*bridge* is all the program does; *bridge, default lambda* one fit that is never discarded.
Simulated annotators answer 50 questions (60 % moves, 20 % divisions, the rest divided) or a share
of the events of the training part, of each kind alike. Prints one table per movie and the
answers to the questions of issue 3, and draws ``docs/images/learning/curves.png``. Finished
rows are kept in ``--log``, so that a stopped run can be continued.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.experiments.forest import train_forest
from bridgetrack.learning import L2, train_perceptron
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.options import default_strength
from bridgetrack.training.sure import hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from common import (
    IMAGES,
    Score,
    Task,
    arguments,
    header,
    learned,
    load_task,
    row,
    score,
    score_by,
    spread,
    training_data,
)
from pretrain import start_without

SETS = ("epidermis", "bacteria", "HeLa, every 4th", "DIC", "SIM+", "HeLa", "iPSC 03")
AMOUNTS: dict[str, dict[str, Any]] = {
    "50 clicks": {"count": 50},
    **{f"{p} %": {"fraction": p / 100} for p in (2, 5, 10, 25, 50, 100)},
}
METHODS = ("bridge", "bridge, default lambda", "perceptron", "forest")
SEEDS_OF_SLOW = 3
"""Seeds of random forests from 50 % on, which are slow, and of full annotation, where draws are
all alike."""
SLOW = ("50 %", "100 %")
FAMILIES = {"bacteria": "bacteria", "iPSC 03": "iPSC"}
"""Movies of these families may not be known to the model that training starts from."""
DRAWS = 2000
Row = tuple[str, str, str, int, list[float], float, int]


def learn(method: str, task: Task, scene: Scene, seed: int, prior: Model) -> Score:
    """Train on an annotated movie and score on the test part."""
    start = prior.aligned(scene.matrix.features)
    if method == "bridge":
        kept = run(train_steps(scene, prior)).model
        return score(task, kept.aligned(scene.matrix.features))
    if method == "bridge, default lambda":
        model = TrackingModel(hold_sure(training_data(scene), start).data)
        strength = default_strength(model.data.n_annotations)
        regularizer = L2(strength, prior=start, metric=prior.tightness_for(scene.matrix.features))
        return score(task, learned(model, regularizer).w)
    if method == "forest":
        forest = train_forest(scene, seed, trees=100)
        return score_by(task, forest.scores)
    data = build_training_set([scene])
    steps = train_perceptron(
        TrackingModel(data),
        data.samples,
        n_annotations=data.n_annotations,
        initial=start,
        rate=0.1,
        seed=seed,
        max_epochs=15,
        patience=8,
    )
    return score(task, run(steps).w)


def measure(task: Task, seeds: int, done: list[Row], log: Path) -> list[Row]:
    """All rows of a movie; those that are done already are not measured again."""
    start = untrained_model().aligned(task.train.scene.matrix.features)
    prior: Model | None = None
    rows: list[Row] = [(task.name, "untrained", "", 0, _values(score(task, start)), 0.0, 0)]
    known = {(r[0], r[1], r[2], r[3]): r for r in done}
    for seed in range(seeds):
        for amount, how in AMOUNTS.items():
            few = seed >= SEEDS_OF_SLOW
            if amount == "100 %" and few:
                continue
            missing = [m for m in METHODS if (task.name, m, amount, seed) not in known]
            scene = task.annotated(seed, **how) if missing else task.train.scene
            for method in METHODS:
                if method == "forest" and few and amount in SLOW:
                    continue
                key = (task.name, method, amount, seed)
                if key not in known:
                    prior = prior or start_without(FAMILIES.get(task.name, ""))
                    begin = time.perf_counter()
                    values = _values(learn(method, task, scene, seed, prior))
                    seconds = time.perf_counter() - begin
                    known[key] = (*key, values, seconds, len(scene.constraints))
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(known[key]) + "\n")
                rows.append(known[key])
    return rows


def _values(found: Score) -> list[float]:
    return [found.loss, found.edge_f1, found.division_f1, *map(float, found.wrong)]


def pick(rows: list[Row], method: str, amount: str, figure: int) -> list[float]:
    """A figure over seeds."""
    return [r[4][figure] for r in rows if r[1] == method and r[2] == amount]


def table(task: Task, rows: list[Row]) -> str:
    """The table of one movie."""
    plain = [100 * v for v in rows[0][4]]
    n_test = sum(len(p.events) for p in task.test)
    lines = [
        f"### {task.name}: {len(task.train.events):,} events to learn from, {n_test:,} to score",
        "",
        f"Untrained: {plain[0]:.2f} % of events wrong, edge F1 {plain[1]:.2f} %, "
        f"division F1 {plain[2]:.2f} %.",
        "",
        header("annotated", "events", "figure", *METHODS),
    ]
    for amount in AMOUNTS:
        counts = [r[6] for r in rows if r[2] == amount]
        for figure, name in enumerate(("wrong %", "edge F1 %", "division F1 %")):
            cells = [spread(pick(rows, m, amount, figure)) for m in METHODS]
            lines.append(
                row(
                    amount if not figure else "",
                    f"{np.mean(counts):.0f}" if not figure else "",
                    name,
                    *cells,
                )
            )
    return "\n".join(lines) + "\n"


def answers(found: dict[str, list[Row]], method: str) -> str:
    """The questions of the issue, answered for one method.

    *Cannot tell* is where the mean is more than 10 % above, and the interval of the excess holds 0:
    too few events are scored there to say yes or no.
    """
    lines = [
        f"For {method}:\n",
        header("movie", "untrained", "50 clicks", "5 %", "25 %", "100 %",
               "25 % / 100 %", "within 10 %", "5 % good", "50 clicks good")
    ]  # fmt: skip
    for name, rows in found.items():
        plain = rows[0][4][0]
        mean = {a: float(np.mean(pick(rows, method, a, 0))) for a in AMOUNTS}
        ratio = mean["25 %"] / mean["100 %"] if mean["100 %"] else float("nan")
        low = _least_excess(rows, method)
        near = mean["25 %"] <= 1.1 * mean["100 %"]
        verdict = "yes" if near else "cannot tell" if low <= 0 else "no"
        verdicts = [_good(plain, mean[a]) for a in ("5 %", "50 clicks")]
        cells = [f"{100 * v:.2f}" for v in (plain, *(mean[a] for a in
                 ("50 clicks", "5 %", "25 %", "100 %")))]  # fmt: skip
        lines.append(row(name, *cells, f"{ratio:.2f}", verdict, *verdicts))
    return "\n".join(lines)


def _least_excess(rows: list[Row], method: str) -> float:
    """Lower end of the 95 % interval of loss at 25 % - 1.1 * loss at 100 %.

    Paired bootstrap over the events scored.
    """
    worst = max(rows, key=lambda r: r[4][0])
    excess = np.zeros(round(len(worst[4][3:]) / worst[4][0]))
    for amount, factor in (("25 %", 1.0), ("100 %", -1.1)):
        mine = [r for r in rows if r[1] == method and r[2] == amount]
        for r in mine:
            excess[np.asarray(r[4][3:], dtype=int)] += factor / len(mine)
    rng = np.random.default_rng(0)
    means = [excess[rng.integers(0, len(excess), len(excess))].mean() for _ in range(DRAWS)]
    return float(np.quantile(means, 0.025))


def _good(plain: float, loss: float) -> str:
    """Better where the untrained weights err on more than 0.5 %, else hardly worse."""
    wanted = plain > loss if plain > 0.005 else loss <= plain + 0.001
    return "yes" if wanted else f"no ({100 * (loss - plain):+.2f})"


def picture(found: dict[str, list[Row]]) -> None:
    """Test loss against the number of annotations, one panel per movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = min(3, len(found))
    height = -(-len(found) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(3.3 * columns, 2.7 * height + 0.4), squeeze=False
    )
    styles = {"bridge": ("C0", "o", "bridge loss"),
              "bridge, default lambda": ("C4", "D", "bridge loss, default λ"),
              "perceptron": ("C1", "s", "perceptron"),
              "forest": ("C2", "^", "random forest")}  # fmt: skip
    for axis, (name, rows) in zip(axes.flat, found.items(), strict=False):
        for method in METHODS:
            colour, marker, label = styles[method]
            points = []
            for amount, how in AMOUNTS.items():
                loss = 100 * np.asarray(pick(rows, method, amount, 0))
                n = np.mean([r[6] for r in rows if r[2] == amount])
                point = (n, loss.mean(), loss.std(ddof=1) if len(loss) > 1 else 0.0)
                if "count" in how:
                    axis.errorbar(*point, color=colour, marker=marker, ms=6, mfc="white", capsize=2)
                else:
                    points.append(point)
            n, mean, deviation = np.asarray(sorted(points)).T
            axis.errorbar(n, mean, deviation, color=colour, marker=marker, ms=4, lw=1.5,
                          capsize=2, label=label)  # fmt: skip
        axis.axhline(100 * rows[0][4][0], color="0.4", ls="--", lw=1.2, label="untrained")
        axis.set(title=name, xscale="log")
        axis.set_xticks([20, 50, 100, 200, 500, 1000, 2000])
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.minorticks_off()
        axis.set_xlim(0.8 * points[0][0], 1.2 * points[-1][0])
        axis.set_ylim(0, _top(rows))
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis in axes.flat[max(0, len(found) - columns) : len(found)]:
        axis.set_xlabel("annotated events (hollow: 50 clicks)")
    for axis in axes[:, 0]:
        axis.set_ylabel("wrong events, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=5, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "curves.png", dpi=110)


def _top(rows: list[Row]) -> float:
    """Upper end of an axis: three times the untrained loss at most."""
    worst = max(float(np.mean(pick(rows, m, a, 0))) for m in METHODS for a in AMOUNTS)
    plain = rows[0][4][0]
    return 100 * min(1.15 * max(worst, plain), 3.0 * max(plain, 0.002))


def main() -> None:
    """Print tables and answers, and draw."""
    warnings.simplefilter("ignore")
    log = Path("learning_curve.jsonl")
    if "--log" in sys.argv:
        at = sys.argv.index("--log")
        log = Path(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    given = arguments(__doc__, 5, SETS)
    done: list[Row] = []
    if log.exists():
        done = [tuple(json.loads(line)) for line in log.read_text().splitlines()]
    found = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        found[name] = measure(task, given.seeds, done, log)
        print(table(task, found[name]), flush=True)
    if found:
        for method in METHODS[:2]:
            print(answers(found, method) + "\n", flush=True)
        picture(found)


if __name__ == "__main__":
    main()
