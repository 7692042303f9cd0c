"""Learning and questions on masks that are not perfect: automatic ones, and the program's own.

    python benchmarks/imperfect.py [--seeds 3] [--sets "HeLa, 01_AUTO" ...]

Events that the truth settles are asked about in the first half of the movie and scored in the
second, as in ``learning_curve.py``; here splits, merges and false detections are among them. Cells
that no mask shows are nobody's event: they are lost whatever is learned. *Suggested* are those of a
session (one in five random), *stratified* those that know the kind of event beforehand. Learned by
``bridgetrack train``. The 25 pixels at the border that the truth leaves out are not scored. Draws
``docs/evidence/data/imperfect.svg``.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from active_events import frames_of
from answers_and_errors import mean
from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Score, Task, arguments, header, load_task, row, save_figure, score

SETS = ("HeLa, 01_AUTO", "HeLa, plain masks", "PSC, plain masks")
CLICKS = (20, 50, 100)
METHODS = ("suggested", "suggested, 5 % wrong", "stratified")
Rows = list[dict[str, Any]]


def kinds_wrong(task: Task, found: Score) -> dict[str, int]:
    """How many events of each kind are wrong."""
    event = np.concatenate([part.events.event for part in task.test])
    wrong = event[list(found.wrong)]
    return {kind.key: int((wrong == kind).sum()) for kind in Event}


def figures(task: Task, weights: Any) -> dict[str, Any]:
    """What is kept of a score."""
    found = score(task, weights)
    return {
        "loss": found.loss,
        "edge_f1": found.edge_f1,
        "division_f1": found.division_f1,
        "kinds": kinds_wrong(task, found),
    }


def trained(task: Task, annotations: Any) -> dict[str, Any]:
    """Figures of what ``bridgetrack train`` makes of answers."""
    scene = annotate(task.train.scene, annotations)
    model = run(train_steps(scene)).model
    return figures(task, model.aligned(scene.matrix.features))


def session_rows(task: Task, seed: int, wrong: float) -> Rows:
    """Figures after each number of suggested answers."""
    annotator = SimulatedAnnotator(
        task.train.events, task.train.scene.detections, wrong=wrong, seed=seed
    )
    options = SessionOptions()
    suggest = replace(options.suggest, seed=seed, frames=frames_of(task))
    options = replace(options, suggest=suggest, rejudge_every=10_000)
    session = ActiveSession(task.train.scene, untrained_model(), options=options)
    session.adopt(run(session.update()))
    found: Rows = []
    for clicks in range(1, max(CLICKS) + 1):
        suggestion = session.next()
        if suggestion is None:
            break
        answer_by(session, annotator, suggestion)
        if session.wants_update:
            session.adopt(run(session.update()))
        if clicks in CLICKS:
            found.append({"clicks": clicks, **trained(task, session.annotations)})
    return found


def measure(task: Task, seeds: int, log: Path) -> Rows:
    """Rows of one movie; finished ones are not measured again."""
    rows: Rows = []
    if log.exists():
        rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    rows = [r for r in rows if r["set"] == task.name]
    done = {(r["method"], r["seed"]) for r in rows}

    def keep(method: str, seed: int, found: Rows) -> None:
        for r in found:
            rows.append({"set": task.name, "method": method, "seed": seed, **r})
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")

    if ("untrained", 0) not in done:
        start = untrained_model().aligned(task.train.scene.matrix.features)
        keep("untrained", 0, [{"clicks": 0, **figures(task, start)}])
    if ("all", 0) not in done:
        n = len(task.train.events)
        keep("all", 0, [{"clicks": n, **trained(task, task.clicks(0, fraction=1.0))}])
    for seed in range(seeds):
        for method in METHODS:
            if (method, seed) in done:
                continue
            if method == "stratified":
                drawn = {n: task.clicks(seed, count=n) for n in CLICKS}
                found = [{"clicks": n, **trained(task, given)} for n, given in drawn.items()]
            else:
                found = session_rows(task, seed, 0.05 if "wrong" in method else 0.0)
            keep(method, seed, found)
            print(f"{task.name}, {method}, seed {seed}", file=sys.stderr)
    return [r for r in rows if r["method"] not in METHODS or r["seed"] < seeds]


def pick(rows: Rows, method: str, clicks: int | None, key: str) -> list[float]:
    """A figure over seeds."""
    return [
        r[key] for r in rows if r["method"] == method and (clicks is None or r["clicks"] == clicks)
    ]


def table(task: Task, rows: Rows) -> str:
    """Wrong events of every way of asking, and which kinds they are."""
    (plain,) = pick(rows, "untrained", None, "loss")
    (full,) = pick(rows, "all", None, "loss")
    n_test = sum(len(p.events) for p in task.test)
    lines = [
        f"### {task.name}: {n_test:,} events scored, untrained {100 * plain:.2f} % wrong, with all "
        f"{len(task.train.events):,} answers {100 * full:.2f} %",
        "",
        header("wrong events, %", *(f"{c} answers" for c in CLICKS)),
    ]
    for method in METHODS:
        lines.append(row(method, *(mean(pick(rows, method, c, "loss"), 2, 100.0) for c in CLICKS)))
    lines += ["", header("wrong events by kind", "scored", "untrained", "50 suggested", "all")]
    event = np.concatenate([part.events.event for part in task.test])
    fifty = [r["kinds"] for r in rows if r["method"] == "suggested" and r["clicks"] == 50]
    (before,), (after,) = ([r["kinds"] for r in rows if r["method"] == m]
                           for m in ("untrained", "all"))  # fmt: skip
    for kind in Event:
        count = int((event == kind).sum())
        if count:
            middle = f"{np.mean([k[kind.key] for k in fifty]):.1f}" if fifty else "–"
            lines.append(row(kind.key, f"{count:,}", before[kind.key], middle, after[kind.key]))
    return "\n".join(lines) + "\n"


def picture(found: dict[str, Rows]) -> None:
    """Wrong events against answers, a panel for each movie."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        1, len(found), figsize=(max(6.0, 3.6 * len(found)), 3.4), squeeze=False
    )
    styles = {"suggested": ("C0", "-"), "suggested, 5 % wrong": ("C0", "--"),
              "stratified": ("C1", "-")}  # fmt: skip
    for axis, (name, rows) in zip(axes.flat, found.items(), strict=True):
        for method, (colour, line) in styles.items():
            values = [100 * np.asarray(pick(rows, method, c, "loss")) for c in CLICKS]
            if any(not len(v) for v in values):
                continue
            error = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in values]
            axis.errorbar(CLICKS, [v.mean() for v in values], error, color=colour, ls=line,
                          marker="o", ms=4, capsize=2, label=method)  # fmt: skip
        for method, style in (("untrained", "--"), ("all", ":")):
            label = "untrained" if method == "untrained" else "all answers of the first half"
            axis.axhline(100 * pick(rows, method, None, "loss")[0], color="0.4", ls=style, lw=1.2,
                         label=label)  # fmt: skip
        axis.set(title=name, xlabel="answers", ylim=(0, None))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("wrong events, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.87))
    save_figure(figure, "imperfect")


def main() -> None:
    """Print the tables, and draw."""
    warnings.simplefilter("ignore")
    log = Path("imperfect.jsonl")
    if "--log" in sys.argv:
        place = sys.argv.index("--log")
        log = Path(sys.argv[place + 1])
        del sys.argv[place : place + 2]
    given = arguments(__doc__, 3, SETS)
    found = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        found[name] = measure(task, given.seeds, log)
        print(table(task, found[name]), flush=True)
    if found:
        picture(found)


if __name__ == "__main__":
    main()
