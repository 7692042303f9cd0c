"""What answers about one half of a movie bring to the other half, beside tracking untrained.

    python benchmarks/answers.py [--seeds 3] [--sets S ...] [--answers 10 20 50 100] [--wrong .05]
    python benchmarks/answers.py --sets bacteria HeLa --picture
    python benchmarks/answers.py --steps ...
    python benchmarks/answers.py --times [--answers 50 500] [--sets PSC]

A simulated annotator answers about the earlier half of the events of a movie, ``bridgetrack train``
learns from that with its defaults, and the later half is scored, no answer honoured. *Suggested*
are the answers to a session's questions, *stratified* 60 % moves, 20 % divisions and 20 % of the
rest by truth, which nobody knows beforehand; *all* is every event of the earlier half. Movies are
those on which rules of the program were chosen (`common.SETS`, also with masks that are not
perfect), or those that no choice has seen (`common.UNSEEN`, the default). ``--wrong`` is the share
of answers that are plausible mistakes. Printed are wrong events, and AOGM by traccuracy with the
weights of the Cell Tracking Challenge where masks are true. ``--steps`` prints wrong events after
the step that training chooses beside those after half of it and after all of it. ``--times`` prints
what training takes in processor seconds, features measured before, and what an answer takes to be
on disk.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bridgetrack.active.session import ActiveSession
from bridgetrack.active.suggestion import SuggestOptions
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.arrays import Array
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import shipped_model
from bridgetrack.pipeline.scene import annotate
from bridgetrack.progress import run
from bridgetrack.training.train import Training, train_steps
from common import (
    DATA,
    SETS,
    UNSEEN,
    Task,
    frame_pair,
    graph_errors,
    header,
    links_of,
    load_task,
    row,
    save_figure,
    score,
)
from simulated_annotator import SimulatedAnnotator, answer_by

COUNTS = (10, 20, 50, 100)

PUBLISHED = {
    "HeLa": {0: 230, 100: 200, 1_000: 78, 10_000: 24, 25_057: 17},
    "bacteria": {0: 175, 100: 115, 1_000: 54, 10_000: 6, 16_051: 1.5},
}
"""AOGM by annotated links of Attrackt (ICCVW 2025, read from its figure): links ranked by
confidence, another training, and errors on the whole of other movies of the same kinds."""

Figures = dict[tuple[str, int], list[tuple[float, ...]]]
"""Of one movie: a tuple a seed, by way of asking and number of answers."""


def suggested(
    task: Task, seed: int, counts: list[int], wrong: float
) -> Iterator[tuple[int, AnnotationSet]]:
    """Answers to the questions of one session about the earlier half, after each number of them."""
    part = task.train
    last = int(frame_pair(part.scene, part.events).max())
    session = ActiveSession(part.scene, shipped_model(), options=SuggestOptions(seed=seed))
    session.adopt(run(session.update()))
    annotator = SimulatedAnnotator(part.events, part.scene.detections, wrong=wrong, seed=seed)
    for count in range(1, max(counts) + 1):
        question = session.next()
        while question is not None and question.frame > last:
            session.answer(question, kind=Kind.CANNOT_TELL)
            question = session.next()
            if question is None:
                session.adopt(run(session.update()))
                question = session.next()
        if question is None:
            return
        answer_by(session, annotator, question)
        if session.wants_update:
            session.adopt(run(session.update()))
        if count in counts:
            yield count, session.annotations


def trained(task: Task, given: AnnotationSet) -> Training:
    """What ``bridgetrack train`` learns from answers."""
    return run(train_steps(annotate(task.train.scene, given)))


def after_steps(task: Task, training: Training) -> tuple[float, ...]:
    """Wrong events after the chosen step, half of it and all of it, and its share."""
    start = shipped_model().aligned(task.train.scene.matrix.features)
    wrong = [
        len(score(task, start + s * (training.result.w - start)).wrong)
        for s in (training.step, 0.5, 1.0)
    ]
    return *wrong, training.step


def aogm(task: Task, weights: Array) -> float:
    """AOGM of the frames that are scored, summed over the test parts."""
    total = 0.0
    for part in task.test:
        scene, d = part.scene, part.scene.detections
        pairs = frame_pair(scene, part.events)
        chosen = solve(scene.problem, scene.matrix.scores(weights)).chosen
        picked = scene.hypotheses.take(np.flatnonzero(chosen))
        picked = picked.take(np.flatnonzero(frame_pair(scene, picked) >= pairs.min()))
        rows = np.flatnonzero(d.frame >= pairs.min())
        place = np.full(len(d), -1)
        place[rows] = np.arange(len(rows))
        true, found = (
            [(int(place[a]), int(place[b])) for a, b in sorted(links_of(events))]
            for events in (part.events, picked)
        )
        lost = place[picked.sources[picked.event == Event.FALSE, 0]].tolist()
        total += graph_errors(d.frame[rows], d.position[rows], true, found, lost)["aogm"]
    return total


def figures(task: Task, weights: Array, true_masks: bool) -> tuple[float, float]:
    """Wrong events, and AOGM where every mask is a true cell."""
    wrong = len(score(task, weights).wrong)
    return wrong, aogm(task, weights) if true_masks else float("nan")


def measure(
    task: Task, seeds: int, counts: list[int], wrong: float, true_masks: bool, steps: bool
) -> Figures:
    """Figures by way of asking and number of answers, one a seed."""
    features = task.train.scene.matrix.features
    found: Figures = {}
    if not steps:
        start = shipped_model().aligned(features)
        found["untrained", 0] = [figures(task, start, true_masks)]

    def add(how: str, count: int, given: AnnotationSet) -> None:
        training = trained(task, given)
        if steps:
            one = after_steps(task, training)
        else:
            one = figures(task, training.model.aligned(features), true_masks)
        found.setdefault((how, count), []).append(one)
        print(f"{task.name}, {how} {count}: {one}", file=sys.stderr, flush=True)

    for seed in range(seeds):
        for count in counts:
            add("stratified", count, task.clicks(seed, count=count, wrong=wrong))
        for count, given in suggested(task, seed, counts, wrong):
            add("suggested", count, given)
    add("all", len(task.train.events), task.clicks(0, fraction=1.0))
    return found


def spent() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def print_times(task: Task, counts: list[int]) -> None:
    """A row for every number of answers, and the time of one of them."""
    cells, geometry = len(task.train.scene.detections), task.train.scene.detections.geometry
    for count in counts:
        scene = annotate(task.train.scene, task.clicks(0, count=count))
        start = spent()
        training = run(train_steps(scene, judge=False))
        fitted = spent()
        run(training.judged())
        seconds = f"{fitted - start:.1f}", f"{spent() - start:.1f}"
        print(row(task.name, f"{cells:,}", f"{count:,}", *seconds), flush=True)
    given = list(task.clicks(0, count=2000))
    with tempfile.TemporaryDirectory() as folder:
        store = AutosavingStore(Path(folder) / "answers.json", geometry)
        start = spent()
        for answer in given:
            store.answer([(answer.kind, answer.events[0])], "click")
        print(f"\nOne of {len(given):,} answers: {1000 * (spent() - start) / len(given):.2f} ms")


def told(values: list[float]) -> str:
    """Mean ± standard deviation, and the range where they differ."""
    if not np.isfinite(values).all():
        return "–"
    if len(set(values)) == 1:
        return f"{values[0]:g}"
    spread = f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
    return f"{spread} ({min(values):g} to {max(values):g})"


def picture(found: dict[str, Figures]) -> None:
    """Draw AOGM in percent of that of the untrained program against the number of answers."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    size = 4 * len(found), 3.2
    figure, axes = plt.subplots(1, len(found), figsize=size, squeeze=False, layout="constrained")
    for axis, (name, figures) in zip(axes.flat, found.items(), strict=True):
        untrained = figures["untrained", 0][0][1]
        for how, line in (("suggested", "o-"), ("stratified", "s--"), ("all", "D")):
            points = [
                (count, [100 * aogm / untrained for _, aogm in values])
                for (way, count), values in figures.items()
                if way == how
            ]
            counts, shares = zip(*points, strict=True)
            means, spreads = [np.mean(each) for each in shares], [np.std(each) for each in shares]
            axis.errorbar(counts, means, spreads, fmt=line, ms=4, capsize=2, label=how)
        if published := PUBLISHED.get(name):
            shares = [100 * value / published[0] for value in published.values()]
            label = "Attrackt, as reported (other data)"
            axis.plot(list(published)[1:], shares[1:], "^:", color="0.5", ms=4, label=label)
        axis.axhline(100, color="0.7", lw=1)
        axis.set(title=name, xscale="log", xlabel="answers", ylabel="AOGM, % of untrained")
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    lines = axes[0, 0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, "answers")


def main() -> None:
    """Print a row for every way of asking about every movie."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the movies")
    parser.add_argument("--seeds", type=int, default=3, help="repetitions")
    parser.add_argument("--answers", type=int, nargs="*", default=list(COUNTS))
    parser.add_argument("--wrong", type=float, default=0.0, help="share of wrong answers")
    every = {**SETS, **UNSEEN}
    parser.add_argument("--sets", nargs="*", default=list(UNSEEN), choices=every, metavar="SET")
    parser.add_argument("--steps", action="store_true", help="compare shares of the step")
    parser.add_argument("--times", action="store_true", help="measure time in place of errors")
    parser.add_argument("--picture", action="store_true", help="draw AOGM by number of answers")
    given = parser.parse_args()
    if given.times:
        print(header("movie", "cells", "answers", "seconds to the model", "with its accuracy"))
        for task in filter(None, (load_task(name, given.data) for name in given.sets)):
            print_times(task, given.answers)
        return
    columns = ("chosen", "half", "whole", "share") if given.steps else ("wrong events", "AOGM")
    print(header("movie", "answers", "", "events scored", *columns))
    found: dict[str, Figures] = {}
    for name in given.sets:
        task = load_task(name, given.data)
        if task is None:
            continue
        true_masks = every[name].masks in ("truth", "points")
        scored = sum(len(part.events) for part in task.test)
        asked = given.seeds, given.answers, given.wrong, true_masks, given.steps
        found[name] = measure(task, *asked)
        for (how, count), values in found[name].items():
            means = [told(list(each)) for each in zip(*values, strict=True)]
            print(row(name, how, f"{count:,}", f"{scored:,}", *means))
    if given.picture:
        picture(found)


if __name__ == "__main__":
    main()
