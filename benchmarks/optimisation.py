"""Compare optimisation strategies: the analogue of 001, Figures 5 and 6.

    python benchmarks/optimisation.py [--seeds 5] [--sets epidermis ...]

Trains with the bridge loss on a quarter of the events of the training part, by the four
combinations of bounds recycling and adaptive precision (neither: Yu and Joachims), with the cache
of outputs, and by the default, which also looks beyond ties (`overshoot.py`). Once regularised
towards the shipped weights, as the program does, and once towards zero with a ten times weaker
lambda, as the paper does. Both begin at the shipped weights: at zero all outputs tie, and CCCP
stays there. Draws
``docs/images/learning/optimisation.png``.

*Calls* counts inferences over all annotated components for P and for R. Equal objective is the
largest of the objectives in which the strategies end, and a thousandth more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import L2, LearningOptions, TrainingResult
from bridgetrack.models.shipped import untrained_model
from bridgetrack.training.tracking_model import TrackingModel
from common import IMAGES, Task, arguments, header, learned, load_task, row, spread, training_data

PLAIN = {"overshoot": 0.0, "recycle": False, "adaptive": False, "cache": False}
STRATEGIES: dict[str, dict[str, Any]] = {
    "Yu and Joachims": PLAIN,
    "recycling": PLAIN | {"recycle": True},
    "adaptive precision": PLAIN | {"adaptive": True},
    "both (Algorithm 1)": PLAIN | {"recycle": True, "adaptive": True},
    "and cache": {"overshoot": 0.0},
    "default (and overshoot)": {},
}
PRIORS = {"shipped weights": 0.03, "zero": 0.003}
Runs = dict[str, list[TrainingResult]]


def measure(task: Task, towards: str, seeds: int) -> Runs:
    """Train with every strategy."""
    w = untrained_model().aligned(task.train.scene.matrix.features)
    regularizer = L2(PRIORS[towards], prior=np.zeros_like(w) if towards == "zero" else w)
    found: Runs = {name: [] for name in STRATEGIES}
    for seed in range(seeds):
        data = training_data(task.annotated(seed, fraction=0.25))
        for name, switches in STRATEGIES.items():
            options = LearningOptions(max_inferences=2000, max_bounds=2000, **_any(switches))
            found[name].append(
                learned(TrackingModel(data), regularizer, options=options, initial=w)
            )
    return found


def _any(values: dict[str, bool]) -> dict[str, Any]:
    return dict(values)


def targets(runs: Runs) -> list[float]:
    """Equal objective of every seed."""
    ends = np.asarray([[r.objective for r in results] for results in runs.values()])
    return [float(v) for v in 1.001 * ends.max(axis=0)]


def calls_to(result: TrainingResult, target: float) -> int:
    """Inferences for P until the objective is as small as the target."""
    reached = np.flatnonzero(result.history.objective <= target)
    if not len(reached):
        return result.n_inferences
    return int(result.history.n_inferences[reached[0]])


def table(title: str, runs: Runs) -> str:
    """A table in markdown."""
    lines = [
        f"### {title}",
        "",
        header("strategy", "objective", "gap", "calls for P", "for R", "CCCP iterations",
               "calls to equal objective", "times fewer", "seconds", "bounds"),
    ]  # fmt: skip
    goal = targets(runs)
    first = [calls_to(r, g) for r, g in zip(runs["Yu and Joachims"], goal, strict=True)]
    for name, results in runs.items():
        calls = [calls_to(r, g) for r, g in zip(results, goal, strict=True)]
        ratio = [a / b for a, b in zip(first, calls, strict=True)]
        lines.append(
            row(
                name,
                spread([r.objective for r in results], False, 4),
                f"{np.mean([r.gap for r in results]):.1e}",
                spread([r.n_inferences for r in results], False, 0),
                spread([r.n_reward_inferences for r in results], False, 0),
                spread([len(r.objectives) - 1 for r in results], False, 1),
                spread([float(c) for c in calls], False, 0),
                spread(ratio, False, 1),
                spread([r.seconds for r in results], False, 2),
                spread([float(r.history.n_bounds[-1]) for r in results], False, 0),
            )
        )
    total = [r.n_inferences for r in runs["Yu and Joachims"]]
    ratios = {
        n: np.mean([a / r.n_inferences for a, r in zip(total, results, strict=True)])
        for n, results in runs.items()
    }
    ends = ", ".join(f"{n} {v:.1f}" for n, v in ratios.items() if n != "Yu and Joachims")
    return "\n".join(lines) + f"\n\nTimes fewer calls for P until convergence: {ends}.\n"


def bounds_computed(results: list[TrainingResult]) -> NDArray[np.float64]:
    """Bounds that cost inference, by the end of each CCCP iteration; mean over seeds.

    A training that has ended stays at its last number, as in 001, Figure 6.
    """
    length = 1 + max(int(r.history.cccp_iteration[-1]) for r in results)
    found = np.zeros((len(results), length))
    for row_, result in zip(found, results, strict=True):
        for iteration, calls in zip(
            result.history.cccp_iteration, result.history.n_inferences, strict=True
        ):
            row_[iteration:] = calls
    return found.mean(axis=0)


def picture(found: dict[str, Runs]) -> None:
    """Objective over calls; bounds computed by the end of each CCCP iteration, mean of seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(found), figsize=(3.7 * len(found), 6), squeeze=False)
    for (above, below), (title, runs) in zip(axes.T, found.items(), strict=True):
        for number, (name, results) in enumerate(runs.items()):
            history = results[0].history
            lowest = min(r[0].objective for r in runs.values())
            above_lowest = np.maximum(history.objective / lowest - 1, 1e-4)
            style = {"color": f"C{number}", "label": name, "lw": 1.6}
            above.step(history.n_inferences, above_lowest, where="post", **style)
            computed = bounds_computed(results)
            below.plot(np.arange(1, len(computed) + 1), computed, marker=".", **style)
        above.set(title=title, yscale="log", xlabel="oracle calls", xscale="log")
        below.set(xlabel="CCCP iteration", ylim=(0, None))
        for axis in (above, below):
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("objective above the smallest")
    axes[1, 0].set_ylabel("bounds computed so far")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.92))
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "optimisation.png", dpi=110)


def main() -> None:
    """Print the tables, and draw."""
    given = arguments(__doc__, 5, ("epidermis", "HeLa, every 4th"))
    found = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        for towards in PRIORS:
            title = f"{name}, prior: {towards}"
            found[title] = measure(task, towards, given.seeds)
            print(table(title, found[title]), flush=True)
    if found:
        picture(found)


if __name__ == "__main__":
    main()
