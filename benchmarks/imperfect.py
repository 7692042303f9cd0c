"""Learning and questions on masks that are not perfect: automatic ones, and the program's own.

    python benchmarks/imperfect.py [--seeds 3] [--sets "HeLa, 01_AUTO" ...]

Events that the truth settles are asked about in the first half of the movie and scored in the
second, as in ``learning_curve.py``; here splits, merges and false detections are among them. Cells
that no mask shows are nobody's event: they are lost whatever is learned. *Suggested* are those of a
session (one in five random), which goes on until 50 are answered; *stratified* those that know the
kind of event beforehand. Learned by ``bridgetrack train``. The 25 pixels at the border that the
truth leaves out are not scored. Models *learned elsewhere* are from the first half of one movie,
and are scored as they are on the second half of another. Finished rows are kept in ``--log``. Draws
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
from bridgetrack.active.simulated_annotator import SimulatedAnnotator
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Score, Task, arguments, header, load_task, row, save_figure, score

SETS = ("HeLa, 01_AUTO", "HeLa, plain masks", "PSC, plain masks")
CLICKS = (20, 50, 100)
ANSWERED = 50  # what a session is asked on until so many are
MOST = 200
METHODS = ("suggested", "suggested, 5 % wrong", "stratified")
Rows = list[dict[str, Any]]
Tasks = tuple[Task, ...]


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


def trained(task: Task, annotations: Any) -> Model:
    """What ``bridgetrack train`` makes of answers."""
    return run(train_steps(annotate(task.train.scene, annotations))).model


def figures_of(task: Task, model: Model, others: Tasks = ()) -> dict[str, Any]:
    """Figures on the movie itself, and wrong events on others."""
    found = figures(task, model.aligned(task.train.scene.matrix.features))
    for other in others:
        weights = model.aligned(other.train.scene.matrix.features)
        found.setdefault("elsewhere", {})[other.name] = score(other, weights).loss
    return found


def session_rows(task: Task, seed: int, wrong: float, others: Tasks) -> Rows:
    """Figures after each number of suggested answers; on other movies after the last."""
    annotator = SimulatedAnnotator(
        task.train.events, task.train.scene.detections, wrong=wrong, seed=seed
    )
    options = SessionOptions()
    suggest = replace(options.suggest, seed=seed, frames=frames_of(task))
    options = replace(options, suggest=suggest, rejudge_every=10_000)
    session = ActiveSession(task.train.scene, shipped_model(), options=options)
    session.adopt(run(session.update()))
    found: Rows = []
    told = slips = 0
    for clicks in range(1, MOST + 1):
        suggestion = session.next()
        if suggestion is None or (told >= ANSWERED and clicks > max(CLICKS)):
            break
        reply = annotator.reply(suggestion)
        told, slips = told + (reply.event is not None), slips + reply.wrong
        if reply.event is None:
            session.cannot_tell(suggestion)
        else:
            session.answer(suggestion, reply.event)
        if session.wants_update:
            session.adopt(run(session.update()))
        answered = reply.event is not None and told == ANSWERED
        if clicks in CLICKS or answered:
            model = trained(task, session.annotations)
            also = others if clicks == max(CLICKS) and not wrong else ()
            entry = {"told": told, "slips": slips, **figures_of(task, model, also)}
            if clicks in CLICKS:
                found.append({"clicks": clicks, **entry})
            if answered:
                found.append({"clicks": f"{ANSWERED} answered", "asked": clicks, **entry})
    return found


def measure(task: Task, seeds: int, log: Path, others: Tasks) -> Rows:
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
        keep("untrained", 0, [{"clicks": 0, **figures_of(task, shipped_model())}])
    if ("all", 0) not in done:
        n = len(task.train.events)
        model = trained(task, task.clicks(0, fraction=1.0))
        keep("all", 0, [{"clicks": n, **figures_of(task, model, others)}])
    for seed in range(seeds):
        for method in METHODS:
            if (method, seed) in done:
                continue
            if method == "stratified":
                drawn = {n: task.clicks(seed, count=n) for n in CLICKS}
                models = {n: trained(task, given) for n, given in drawn.items()}
                found = [{"clicks": n, **figures_of(task, m)} for n, m in models.items()]
            else:
                found = session_rows(task, seed, 0.05 if "wrong" in method else 0.0, others)
            keep(method, seed, found)
            print(f"{task.name}, {method}, seed {seed}", file=sys.stderr)
    return [r for r in rows if r["method"] not in METHODS or r["seed"] < seeds]


def pick(rows: Rows, method: str, clicks: int | str | None, key: str) -> list[float]:
    """A figure over seeds."""
    return [
        r[key] for r in rows if r["method"] == method and (clicks is None or r["clicks"] == clicks)
    ]


def table(task: Task, rows: Rows) -> str:
    """Wrong events of every way of asking, and which kinds they are."""
    (plain,) = pick(rows, "untrained", None, "loss")
    (full,) = pick(rows, "all", None, "loss")
    n_test, told = sum(len(p.events) for p in task.test), f"{ANSWERED} answered"
    lines = [
        f"### {task.name}: {n_test:,} events scored, untrained {100 * plain:.2f} % wrong, with all "
        f"{len(task.train.events):,} answers {100 * full:.2f} %",
        "",
        header("wrong events, %", *(f"{c} asked" for c in CLICKS), told),
    ]
    for method in METHODS:
        each = [pick(rows, method, c, "loss") for c in (*CLICKS, told)]
        lines.append(row(method, *(mean(v, 2, 100.0) if v else "" for v in each)))
    for what, method, key in (
        ("of the questions suggested: answered", METHODS[0], "told"),
        ("of those with slips: answered wrongly", METHODS[1], "slips"),
    ):
        lines.append(row(what, *(mean(pick(rows, method, c, key)) for c in (*CLICKS, told))))
    asked = mean(pick(rows, METHODS[0], told, "asked"))
    lines.append(row(f"asked until {told}", *("" for _ in CLICKS), asked))
    lines += ["", header("wrong events by kind", "scored", "untrained", "50 suggested",
                         "100 suggested", told, "all")]  # fmt: skip
    event = np.concatenate([part.events.event for part in task.test])
    few = {c: [r["kinds"] for r in rows if (r["method"], r["clicks"]) == ("suggested", c)]
           for c in (*CLICKS[1:], told)}  # fmt: skip
    (before,), (after,) = ([r["kinds"] for r in rows if r["method"] == m]
                           for m in ("untrained", "all"))  # fmt: skip
    for kind in Event:
        count = int((event == kind).sum())
        if count:
            middle = [mean([float(k[kind.key]) for k in found]) for found in few.values()]
            lines.append(row(kind.key, f"{count:,}", before[kind.key], *middle, after[kind.key]))
    return "\n".join(lines) + "\n"


def transfers(found: dict[str, Rows]) -> str:
    """Wrong events of every movie with models learned on the others."""
    lines = [
        "### Learned elsewhere",
        "",
        header("learned from", "scored on", "untrained, % wrong", f"{max(CLICKS)} suggested",
               "all answers"),
    ]  # fmt: skip
    for source, rows in found.items():
        for target, own in found.items():
            if source == target:
                continue
            start = pick(own, "untrained", None, "loss")
            few, full = (
                [r["elsewhere"][target] for r in rows
                 if r["method"] == m and target in r.get("elsewhere", {})]
                for m in ("suggested", "all")
            )  # fmt: skip
            lines.append(row(source, target, *(mean(v, 2, 100.0) for v in (start, few, full))))
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
        axis.set(title=name, xlabel="questions, or answers", ylim=(0, None))
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
    loaded = [load_task(name, given.data) for name in given.sets]
    tasks = tuple(task for task in loaded if task is not None)
    found: dict[str, Rows] = {}
    for seeds in range(1, given.seeds + 1):
        for task in tasks:
            others = tuple(other for other in tasks if other is not task)
            found[task.name] = measure(task, seeds, log, others)
    for task in tasks:
        print(table(task, found[task.name]), flush=True)
    if len(tasks) > 1:
        print(transfers(found), flush=True)
    if found:
        picture(found)


if __name__ == "__main__":
    main()
