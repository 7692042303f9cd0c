"""How often the interval of the estimated accuracy holds the true accuracy.

    python benchmarks/active_coverage.py [--seeds 10] [--sets S ...] [--clicks 100] [--log FILE]

Sessions with a simulated annotator who makes no mistakes; one suggestion in five is random.
The truth is the share of the true events of the part annotated that the tracking holds, answers
honoured. Every random answer was judged by the model as it was before it (*prequential*) or is
judged anew by a model trained without it (*held out*), which is what users are shown. Draws
``docs/images/active/coverage.png``.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.active.accuracy import Judged
from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by, true_accuracy
from bridgetrack.progress import run
from common import Task, arguments, frame_pair, header, load_task, option, row

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images" / "active"
SETS = ("HeLa, every 4th", "bacteria", "DIC", "epidermis")
CLICKS = (20, 40, 60, 80, 100)
WAYS = ("prequential", "held out")
SHOWN = WAYS[-1]


def one_run(task: Task, seed: int, most: int = max(CLICKS)) -> list[dict[str, Any]]:
    """Truth and both estimates along one session of so many clicks."""
    last = int(frame_pair(task.train.scene, task.train.events).max()) + 1
    options = SessionOptions()
    options = replace(options, suggest=replace(options.suggest, seed=seed, frames=(0, last)))
    annotator = SimulatedAnnotator(task.train.events, task.train.scene.detections, seed=seed)
    session = ActiveSession(task.train.scene, options=options)
    session.adopt(run(session.update()))
    found = []
    for clicks in range(1, most + 1):
        suggestion = session.next()
        if suggestion is None:
            break
        answer_by(session, annotator, suggestion)
        if session.wants_update:
            session.adopt(run(session.update()))
        if clicks in CLICKS:
            entry: dict[str, Any] = {
                "clicks": clicks,
                "truth": true_accuracy(session, task.train.events),
            }
            held = session.judged
            for way in WAYS:
                session.judged = held if way.startswith("held out") else Judged()
                estimate = session.estimate()
                if estimate is not None:
                    entry[way] = [estimate.accuracy, estimate.low, estimate.high]
                    entry["answers"] = estimate.n_annotations
            session.judged = held
            found.append(entry)
    return found


def measure(task: Task, seeds: int, log: Path, most: int) -> list[list[dict[str, Any]]]:
    """All runs of a movie; those in the log are not repeated."""
    known = {}
    if log.exists():
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            known[entry["set"], entry["seed"], entry["most"]] = entry["run"]
    for seed in range(seeds):
        if (task.name, seed, most) not in known:
            known[task.name, seed, most] = one_run(task, seed, most)
            run_ = known[task.name, seed, most]
            entry = {"set": task.name, "seed": seed, "most": most, "run": run_}
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
    return [known[task.name, seed, most] for seed in range(seeds)]


def covered(entries: list[dict[str, Any]], way: str) -> list[bool]:
    """Whether the interval of each estimate holds the truth."""
    return [e[way][1] <= e["truth"] <= e[way][2] for e in entries if way in e]


def table(results: dict[str, list[list[dict[str, Any]]]]) -> str:
    """Coverage, bias and width for every movie and number of clicks."""
    lines = [
        header("movie", "clicks", "random answers", "truth %",
               *(f"{w}: {f}" for w in WAYS for f in ("covers", "bias, points", "width, points")))
    ]  # fmt: skip
    totals: dict[str, list[bool]] = {w: [] for w in WAYS}
    for name, runs in results.items():
        for clicks in CLICKS:
            entries = [e for r in runs for e in r if e["clicks"] == clicks]
            if not entries:
                continue
            cells = []
            for way in WAYS:
                hits = covered(entries, way)
                totals[way] += hits
                both = np.asarray([[e["truth"], *e[way]] for e in entries if way in e])
                bias = 100 * (both[:, 1] - both[:, 0]).mean()
                width = 100 * (both[:, 3] - both[:, 2]).mean()
                cells += [f"{sum(hits)} of {len(hits)}", f"{bias:+.1f}", f"{width:.1f}"]
            truth = 100 * np.mean([e["truth"] for e in entries])
            answers = np.mean([e.get("answers", 0) for e in entries])
            lines.append(row(name, clicks, f"{answers:.0f}", f"{truth:.1f}", *cells))
    for way, hits in totals.items():
        lines.append(f"\n{way}: covers in {100 * np.mean(hits):.1f} % of {len(hits)}.")
    return "\n".join(lines)


def draw(results: dict[str, list[list[dict[str, Any]]]]) -> None:
    """Estimates with their intervals against the truth, at the last number of clicks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(3.2 * len(results), 3.4), squeeze=False)
    for axis, (name, runs) in zip(axes[0], results.items(), strict=True):
        entries = [r[-1] for r in runs if SHOWN in r[-1]]
        for k, e in enumerate(entries):
            middle, low, high = (100 * v for v in e[SHOWN])
            axis.plot([k, k], [low, high], color="C0", lw=2)
            axis.plot(k, middle, "o", color="C0", ms=4)
            axis.plot(k, 100 * e["truth"], "x", color="C3", ms=6)
        axis.set(title=f"{name}, {entries[0]['clicks']} clicks", xlabel="run")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("right events, %")
    axes[0, 0].plot([], [], "o-", color="C0", label="estimate, 95 %")
    axes[0, 0].plot([], [], "x", color="C3", label="truth", ls="none")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower left")
    figure.tight_layout()
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "coverage.png", dpi=110)


def main() -> None:
    """Print the table and draw."""
    warnings.simplefilter("ignore")
    log = Path("active_coverage.jsonl")
    if "--log" in sys.argv:
        at = sys.argv.index("--log")
        log = Path(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    most = int(option("--clicks", max(CLICKS)))
    given = arguments(__doc__, 10, SETS)
    results = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is not None:
            results[name] = measure(task, given.seeds, log, most)
    if results:
        print(table(results), flush=True)
        draw(results)


if __name__ == "__main__":
    main()
