"""Algorithm 1.2 on patches: the analogues of 000, Figures 1.8 and 1.9 and Table 1.3.

    python -m papers.active_learning [--seeds 10] [--sets "HeLa, every 4th" ...] [--log FILE]

The training part of a movie is cut into patches, whose labels are revealed when a measure of
uncertainty chooses them, up to 50 %; the perceptron (step 1, as printed, from the hand-set weights)
learns after every label. Seeds move the cuts between patches and draw the order of the passes.
Prints one table per movie (AL: the perceptron's weights; CL: max-margin training on the same
patches, around the hand-set weights, one lambda for all) and draws ``figure_1_8.png`` and
``figure_1_9.png`` into ``build``. With ``--log`` finished runs are kept in a file, so
that a stopped run can be continued; begin a new one when the program has changed.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.models.model import untrained_model
from bridgetrack.training.training_set import TrainingSet
from common import Task, arguments, header, load_task, row, score, spread
from papers.active_perceptron import AlgorithmOptions, active_perceptron, max_margin
from papers.patches import build_pool, local_patches

IMAGES = Path(__file__).resolve().parents[2] / "build"
SETS = ("HeLa, every 4th", "bacteria")
CELLS = 5.0
SHARES = (0.17, 0.30, 0.40)
MOST = 0.5
STRENGTH = 0.1
STRENGTHS = (0.1, 0.03, 0.01)
"""Tried at the first share only."""
THRESHOLD = 1e-4
WINDOW = 80 / 660
"""T, as a share of the patches: 80 of 660 in the paper."""
METHODS: dict[str, dict[str, Any]] = {
    "Random": {"measure": "random"},
    "Scoring": {"measure": "scoring"},
    "Best vs. worst": {"measure": "best_worst"},
    "Best vs. 2nd": {"measure": "best_second"},
    "Best vs. 2nd, max-margin every 10": {"measure": "best_second", "retrain_every": 10},
}
SHORT = ("Random", "Best vs. 2nd")
TESTED = 12
"""Points of a curve at which the test loss is computed."""


def pool_of(task: Task, seed: int) -> TrainingSet:
    """The training part in patches, with all labels."""
    scene = task.annotated(0, fraction=1.0)
    shift = float(np.random.default_rng(seed).uniform(-0.15, 0.15))
    return build_pool(scene, local_patches(scene, CELLS, shift))


def combined(task: Task, data: TrainingSet, labelled: list[int], strength: float) -> float:
    """Test loss of max-margin training on some patches."""
    start = untrained_model().aligned(task.train.scene.matrix.features)
    return score(task, max_margin(data, labelled, start, strength)[0]).loss


def short_run(task: Task, method: str, seed: int) -> dict[str, list[float]]:
    """CL at the first share and on all patches, for every lambda."""
    data = pool_of(task, seed)
    n = len(data.samples)
    start = untrained_model().aligned(task.train.scene.matrix.features)
    options = AlgorithmOptions(stop=False, most=round(SHARES[0] * n), seed=seed, **METHODS[method])
    order = [r.patch for r in active_perceptron(data, start, options)]
    return {
        str(s): [combined(task, data, order, s), combined(task, data, list(range(n)), s)]
        for s in STRENGTHS
    }


def one_run(task: Task, method: str, seed: int) -> dict[str, Any]:
    """Uncertainty, convergence and test losses of one run."""
    data = pool_of(task, seed)
    n = len(data.samples)
    start = untrained_model().aligned(task.train.scene.matrix.features)
    window = max(2, round(WINDOW * n))
    options = AlgorithmOptions(
        window=window, stop=False, most=int(MOST * n), seed=seed, strength=STRENGTH,
        **METHODS[method],
    )  # fmt: skip
    rounds = list(active_perceptron(data, start, options))
    order = [r.patch for r in rounds]
    stopped = next((r.labelled for r in rounds if r.eta <= THRESHOLD), None)
    places = np.unique(np.linspace(1, len(rounds), TESTED).astype(int))
    curve = [[k / n, score(task, rounds[k - 1].w).loss] for k in places.tolist()]

    table = {}
    for share in SHARES:
        k = round(share * n)
        learned = combined(task, data, order[:k], STRENGTH)
        table[f"{share:.2f}"] = [score(task, rounds[k - 1].w).loss, learned]
    return {
        "patches": n,
        "average": [r.average for r in rounds],
        "eta": [r.eta if np.isfinite(r.eta) else None for r in rounds],
        "stopped": None if stopped is None else stopped / n,
        "curve": curve,
        "table": table,
        "full": combined(task, data, list(range(n)), STRENGTH),
        "untrained": score(task, start).loss,
    }


def measure(task: Task, seeds: int, log: Path | None) -> dict[str, list[dict[str, Any]]]:
    """All runs of a movie; those in the log are not repeated."""
    known = {}
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            known[entry["set"], entry["method"], entry["seed"]] = entry["run"]
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in range(seeds):
        for name, method, once in [
            *((m, m, one_run) for m in METHODS),
            *((f"{m}, short", m, short_run) for m in SHORT),
        ]:
            key = (task.name, name, seed)
            if key not in known:
                known[key] = once(task, method, seed)
                if log is not None:
                    entry = {"set": task.name, "method": name, "seed": seed, "run": known[key]}
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(entry) + "\n")
            found.setdefault(name, []).append(known[key])
    return found


def table(name: str, found: dict[str, list[dict[str, Any]]]) -> str:
    """The analogue of Table 1.3, and where the stopping rule struck."""
    first = found["Random"]
    full = [r["full"] for r in first]
    lines = [
        f"### {name}: {first[0]['patches']} patches, {len(first)} seeds",
        "",
        f"Untrained {100 * first[0]['untrained']:.2f} %; max-margin on all patches "
        f"{spread(full)} %.",
        "",
        header("wrong events, %", *(f"{100 * s:.0f} % {k}" for s in SHARES for k in ("AL", "CL")),
               "stops at"),
    ]  # fmt: skip
    for method in METHODS:
        runs, cells = found[method], list[str]()
        for share in SHARES:
            both = [r["table"][f"{share:.2f}"] for r in runs]
            cells += [spread([b[0] for b in both]), spread([b[1] for b in both])]
        stops = [r["stopped"] for r in runs if r["stopped"] is not None]
        stop = "excluded" if method == "Random" else f"{spread(stops, digits=0)} % ({len(stops)})"
        lines.append(row(method, *cells, stop))
    lines += ["", header("CL, wrong events, %", *(f"lambda {s}" for s in STRENGTHS))]
    for method in SHORT:
        runs = found[f"{method}, short"]
        for k, label in enumerate((f"{method}, {100 * SHARES[0]:.0f} %", "all patches")):
            if k == 0 or method == SHORT[-1]:
                lines.append(row(label, *(spread([r[str(s)][k] for r in runs]) for s in STRENGTHS)))
    return "\n".join(lines) + "\n"


def draw(results: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """Figures 1.8 and 1.9."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    IMAGES.mkdir(parents=True, exist_ok=True)
    for figure_name in ("figure_1_8", "figure_1_9"):
        figure, axes = plt.subplots(
            1, len(results), figsize=(5.0 * len(results), 4.2), squeeze=False
        )
        for axis, (name, found) in zip(axes[0], results.items(), strict=True):
            axis.set(title=name, xlabel="labelled patches, %")
            axis.spines[["top", "right"]].set_visible(False)
            draw_panel = _averages if figure_name == "figure_1_8" else _losses
            draw_panel(axis, found)
        axes[0, 0].set_ylabel(
            "average uncertainty" if figure_name == "figure_1_8" else "wrong events (test), %"
        )
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.88))
        figure.savefig(IMAGES / f"{figure_name}.png", dpi=110)
        plt.close(figure)


def _averages(axis: Any, found: dict[str, list[dict[str, Any]]]) -> None:
    """Mean over seeds of the average uncertainty, each relative to its largest value."""
    inset = axis.inset_axes((0.56, 0.5, 0.42, 0.4))
    for k, method in enumerate(METHODS):
        runs = found[method]
        length = min(len(r["average"]) for r in runs)
        share = 100 * (np.arange(length) + 1) / runs[0]["patches"]
        each = np.asarray([np.asarray(r["average"][:length]) for r in runs])
        each = each / np.maximum(np.quantile(each, 0.98, axis=1, keepdims=True), 1e-300)
        axis.plot(share, np.minimum(each, 1.2).mean(axis=0), color=f"C{k}", lw=1.4, label=method)
        if method == "Random":
            continue
        eta = np.asarray(
            [[np.nan if e is None else e for e in r["eta"][:length]] for r in runs], dtype=float
        )
        seen = np.flatnonzero(~np.isnan(eta).all(axis=0))
        inset.plot(share[seen], np.maximum(np.nanmedian(eta[:, seen], axis=0), 1e-12),
                   color=f"C{k}", lw=1.0)  # fmt: skip
    inset.axhline(THRESHOLD, color="0.4", ls="--", lw=0.8)
    inset.set_yscale("log")
    inset.set_title("η (eq. 1.8), median", fontsize=8)
    inset.tick_params(labelsize=7)
    axis.set_ylim(0, 1.25)


def _losses(axis: Any, found: dict[str, list[dict[str, Any]]]) -> None:
    for k, method in enumerate(METHODS):
        runs = found[method]
        curves = np.asarray([r["curve"] for r in runs])
        share, loss = 100 * curves[..., 0].mean(axis=0), 100 * curves[..., 1]
        low, middle, high = np.quantile(loss, [0.25, 0.5, 0.75], axis=0)
        axis.plot(share, middle, color=f"C{k}", lw=1.4, label=method)
        axis.fill_between(share, low, high, color=f"C{k}", alpha=0.12, lw=0)
    first = next(iter(found.values()))
    axis.axhline(100 * first[0]["untrained"], color="0.4", ls="--", lw=1.0)
    axis.axhline(100 * np.mean([r["full"] for r in first]), color="0.4", ls=":", lw=1.2)
    axis.text(50.5, 100 * first[0]["untrained"], "untrained", va="bottom", fontsize=8)
    everything = 100 * np.mean([r["full"] for r in first])
    axis.text(50.5, everything, "all patches", va="top", fontsize=8)
    axis.set_ylim(0, 4 * 100 * first[0]["untrained"])
    axis.set_xlim(0, 60)


def main() -> None:
    """Print tables and draw."""
    warnings.simplefilter("ignore")
    log = None
    if "--log" in sys.argv:
        at = sys.argv.index("--log")
        log = Path(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    given = arguments(__doc__, 10, SETS)
    results = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            results[name] = measure(task, given.seeds, log)
            print(table(name, results[name]), flush=True)
    if results:
        draw(results)


if __name__ == "__main__":
    main()
