"""Errors of the rest of a movie against the number of answers about its first part.

    python benchmarks/answers_and_errors.py [--seeds 5] [--most 200] [--sets HeLa bacteria]

A simulated annotator answers a session's questions about the first part; after 10, 20, 50, 100
and 200 answers (``--most`` at most) ``bridgetrack train`` learns from them, and the rest of the
movie is tracked with the result, without any answer. *At random* are answers about events drawn
uniformly. Errors are AOGM by traccuracy with the weights of the Cell Tracking Challenge (a wrong
link 1, a missed link 1.5, a cell that is called none 10) on true masks. Wrong answers are plausible
ones. Bacteria start from weights that were learned without movies of that kind. Finished rows are
kept in ``--log``. Draws ``docs/evidence/data/answers.svg``.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from active_events import frames_of, prior_for
from bridgetrack.active.options import SessionOptions
from bridgetrack.active.session import ActiveSession
from bridgetrack.active.simulated_annotator import SimulatedAnnotator, answer_by
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.solve import solve
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from common import Task, arguments, frame_pair, header, load_task, option, row, save_figure
from graph_errors import graph_errors

COUNTS = (10, 20, 50, 100, 200)
METHODS: dict[str, dict[str, Any]] = {
    "suggested": {},
    "suggested, 5 % wrong": {"wrong": 0.05},
    "at random": {"drawn": True},
}
FIGURES = ("aogm", "wrong", "missed", "lost", "edge_f1", "division_f1")
REPORTED = {
    "HeLa": ("Attrackt", 8378, {0: 232, 100: 225, 1000: 207, 8378: 185}),
    "bacteria": ("Attrackt", 65693, {0: 178, 100: 133, 1000: 84, 65693: 37}),
}
"""AOGM that others report on other data of these kinds: see the page for the differences."""
Rows = list[dict[str, Any]]


def links_of(events: Events) -> list[tuple[int, int]]:
    """Links that events draw between cells."""
    linking = (events.event != Event.FALSE) & (events.sources[:, 0] >= 0)
    linking &= events.targets[:, 0] >= 0
    found: list[tuple[int, int]] = []
    for a in range(2):
        for b in range(2):
            source, target = events.sources[linking, a], events.targets[linking, b]
            there = (source >= 0) & (target >= 0)
            found += zip(source[there].tolist(), target[there].tolist(), strict=True)
    return found


def errors(task: Task, weights: NDArray[np.float64]) -> dict[str, float]:
    """Errors in the rest of the movie."""
    (part,) = task.test
    scene = part.scene
    first = int(frame_pair(scene, part.events).min())
    chosen = solve(scene.problem, scene.matrix.scores(weights)).chosen
    picked = scene.hypotheses.take(np.flatnonzero(chosen))
    picked = picked.take(np.flatnonzero(frame_pair(scene, picked) >= first))
    d = scene.detections
    rows = np.flatnonzero(d.frame >= first)
    place = np.full(len(d), -1)
    place[rows] = np.arange(len(rows))

    def moved(links: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(int(place[a]), int(place[b])) for a, b in links]

    lost = place[picked.sources[picked.event == Event.FALSE, 0]].tolist()
    true = moved(links_of(part.events))
    return graph_errors(d.frame[rows], d.position[rows], true, moved(links_of(picked)), lost)


def trained(task: Task, annotations: Any) -> dict[str, float]:
    """Errors with what ``bridgetrack train`` makes of answers."""
    scene = annotate(task.train.scene, annotations)
    model = run(train_steps(scene, prior_for(task.name))).model
    return errors(task, model.aligned(scene.matrix.features))


def one_run(task: Task, method: str, seed: int, counts: tuple[int, ...]) -> Rows:
    """Errors after each number of answers."""
    how = METHODS[method]
    wrong = how.get("wrong", 0.0)
    if how.get("drawn"):
        drawn = {n: task.clicks(seed, count=n, wrong=wrong, stratified=False) for n in counts}
        return [{"clicks": n, **trained(task, given)} for n, given in drawn.items()]
    annotator = SimulatedAnnotator(
        task.train.events, task.train.scene.detections, wrong=wrong, seed=seed
    )
    options = SessionOptions()
    options = replace(
        options,
        suggest=replace(options.suggest, seed=seed, frames=frames_of(task)),
        rejudge_every=10_000,  # judging random answers anew takes time and changes no question
    )
    session = ActiveSession(task.train.scene, prior_for(task.name), options=options)
    session.adopt(run(session.update()))
    found: Rows = []
    for clicks in range(1, max(counts) + 1):
        suggestion = session.next()
        if suggestion is None:
            break
        answer_by(session, annotator, suggestion)
        if session.wants_update:
            session.adopt(run(session.update()))
        if clicks in counts:
            found.append({"clicks": clicks, **trained(task, session.annotations)})
    return found


def measure(task: Task, seeds: int, counts: tuple[int, ...], log: Path) -> Rows:
    """Rows of one movie; those that are done are not measured again."""
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
        start = prior_for(task.name).aligned(task.train.scene.matrix.features)
        keep("untrained", 0, [{"clicks": 0, **errors(task, start)}])
    if ("all", 0) not in done:
        n = len(task.train.events)
        keep("all", 0, [{"clicks": n, **trained(task, task.clicks(0, fraction=1.0))}])
    for seed in range(seeds):
        for method in METHODS:
            if (method, seed) not in done:
                keep(method, seed, one_run(task, method, seed, counts))
                print(f"{task.name}, {method}, seed {seed}: "
                      f"{[r['aogm'] for r in rows[-len(counts):]]}", file=sys.stderr)  # fmt: skip
    wanted = [r for r in rows if r["method"] not in METHODS or r["seed"] < seeds]
    return wanted


def pick(rows: Rows, method: str, clicks: int | None, key: str) -> list[float]:
    """A figure over seeds."""
    return [
        r[key] for r in rows if r["method"] == method and (clicks is None or r["clicks"] == clicks)
    ]


def mean(values: list[float], digits: int = 1, factor: float = 1.0) -> str:
    """Mean ± standard deviation."""
    v = factor * np.asarray(values, dtype=float)
    if not len(v) or not np.isfinite(v).any():
        return "–"
    spread_ = f" ± {np.std(v, ddof=1):.{digits}f}" if len(v) > 1 else ""
    return f"{np.mean(v):.{digits}f}{spread_}"


def table(name: str, rows: Rows, counts: tuple[int, ...]) -> str:
    """AOGM of every way of asking, and what it is made of with suggested answers."""
    (plain,), (full,) = pick(rows, "untrained", None, "aogm"), pick(rows, "all", None, "aogm")
    n = int(pick(rows, "all", None, "clicks")[0])
    seeds = len({r["seed"] for r in rows if r["method"] == "suggested"})
    lines = [
        f"### {name}: AOGM {plain:g} untrained, {full:g} with all {n:,} answers, {seeds} seeds",
        "",
        header("AOGM", *(f"{c} answers" for c in counts)),
    ]
    for method in METHODS:
        lines.append(row(method, *(mean(pick(rows, method, c, "aogm")) for c in counts)))
    lines += ["", header("suggested", "0", *(str(c) for c in counts), f"all {n:,}")]
    words = {"wrong": "wrong links", "missed": "missed links", "lost": "cells called none",
             "edge_f1": "edge F1, %", "division_f1": "division F1, %"}  # fmt: skip
    for key, what in words.items():
        percent = key.endswith("f1")
        how = {"digits": 2 if percent else 1, "factor": 100.0 if percent else 1.0}
        cells = [mean(pick(rows, "untrained", None, key), **how)]
        cells += [mean(pick(rows, "suggested", c, key), **how) for c in counts]
        cells += [mean(pick(rows, "all", None, key), **how)]
        lines.append(row(what, *cells))
    worst = max((r["aogm"] - plain for r in rows if r["method"] in METHODS), default=0.0)
    below = [100 * (1 - np.mean(pick(rows, "suggested", c, "aogm")) / plain) for c in (50, 100)]
    lines += ["", f"Below untrained with 50 and 100 suggested answers: {below[0]:.0f} and "
              f"{below[1]:.0f} %; the worst single run of all is {worst:+g}."]  # fmt: skip
    return "\n".join(lines) + "\n"


def picture(found: dict[str, Rows], counts: tuple[int, ...]) -> None:
    """AOGM relative to untrained against answers, beside what others report."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.6 * len(found), 3.6), squeeze=False)
    styles = {"suggested": ("C0", "-"), "suggested, 5 % wrong": ("C0", "--"),
              "at random": ("C1", "-")}  # fmt: skip
    for axis, (name, rows) in zip(axes.flat, found.items(), strict=True):
        plain = pick(rows, "untrained", None, "aogm")[0]
        for method, (colour, line) in styles.items():
            values = np.array([pick(rows, method, c, "aogm") for c in counts]) / plain * 100
            if not values.size:
                continue
            centre = values.mean(axis=1)
            error = values.std(axis=1, ddof=1) if values.shape[1] > 1 else 0 * centre
            axis.plot(counts, centre, line, color=colour, marker="o", ms=4, label=method)
            if line == "-":
                axis.fill_between(counts, centre - error, centre + error, color=colour, alpha=0.15)
        n, full = (pick(rows, "all", None, k)[0] for k in ("clicks", "aogm"))
        axis.plot([n], [100 * full / plain], "k*", ms=9, label="all answers of the first part")
        axis.axhline(100, color="0.4", lw=1, ls=":")
        if name in REPORTED:
            who, _, reported = REPORTED[name]
            points = {c: 100 * v / reported[0] for c, v in reported.items() if c}
            axis.plot(list(points), list(points.values()), "s--", color="0.5", ms=4, lw=1,
                      label=f"{who}, as reported (other data)")  # fmt: skip
        axis.set(title=name, xscale="log", xlabel="answers", ylim=(0, None))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("AOGM, % of untrained")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=3, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.87))
    save_figure(figure, "answers")


def main() -> None:
    """Print the tables, and draw."""
    warnings.simplefilter("ignore")
    log = Path("answers_and_errors.jsonl")
    if "--log" in sys.argv:
        place = sys.argv.index("--log")
        log = Path(sys.argv[place + 1])
        del sys.argv[place : place + 2]
    most = option("--most", max(COUNTS))
    counts = tuple(c for c in COUNTS if c <= most)
    given = arguments(__doc__, 5, ("HeLa", "bacteria"))
    found = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        if len(task.test) != 1:
            sys.exit(f"{name} is scored on other movies; give a set that is scored on its rest")
        found[name] = measure(task, given.seeds, counts, log)
        print(table(name, found[name], counts), flush=True)
    if found:
        picture(found, counts)


if __name__ == "__main__":
    main()
