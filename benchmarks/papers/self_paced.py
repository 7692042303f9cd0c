"""Self-paced learning: the analogue of 002's comparison of slack, entropy and novelty.

    python -m papers.self_paced [--seeds 10] [--sets bacteria ...]

A quarter of the true events of the training part is drawn. *Confirmed*: all of them are told.
*Vague*: of half of them only that one likely rival is wrong, or that it is the event or this
rival, so that more is hidden. Every training is CCCP with the n-slack learner; the curricula come
before it.

Starts: *shipped* begins at the shipped weights and stays close to them (lambda = 0.03). *Zero*
begins at w = 0 and stays close to that (lambda = 0.003): there, all outputs tie. *Zero, untied*
has the same objective and begins at ``papers.start.untied_start``.

The objective is that of all samples, the training loss is the share of annotations that the
learned weights contradict, the test loss the share of wrong events of the other part. The last
column counts seeds with a smaller (larger) test loss than plain CCCP from the same start.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.arrays import Array
from bridgetrack.learning import CRITERIA, L2, LearningOptions
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.training.tracking_model import ENOUGH, TrackingModel
from bridgetrack.training.training_set import TrainingSet
from common import Task, arguments, header, learned, load_task, row, score, spread, training_data
from papers.start import untied_start

STARTS = ("shipped", "zero", "zero, untied")
METHODS = ("plain CCCP", *CRITERIA)
STRENGTH = {"shipped": 0.03, "zero": 0.003, "zero, untied": 0.003}
SHARE = 0.25


@dataclass(frozen=True)
class Run:
    """Figures of one training."""

    objective: float
    train_loss: float
    test_loss: float
    calls: float
    seconds: float
    stages: float


Runs = dict[tuple[str, str], list[Run]]


def vague(task: Task, seed: int, w: Array) -> Scene:
    """A quarter of the events, half of them told by a rival: what is not, or one of two."""
    part, scene = task.train, task.train.scene
    rng = np.random.default_rng(seed)
    known = {a.events: a for a in task.clicks(seed, fraction=SHARE)}
    true = part.column[part.column >= 0]
    h, scores = scene.hypotheses, scene.matrix.scores(w)
    refs = event_refs(scene.detections, h.take(true))
    answers = []
    for ref, column in zip(refs, true.tolist(), strict=True):
        told = known.get((ref,))
        if told is None:
            continue
        rival = best_rival(scene, column, scores)
        if rival < 0 or rng.random() < 0.5:
            answers.append(told)
            continue
        other = event_refs(scene.detections, h.take(np.array([rival])))[0]
        if rng.random() < 0.5:
            answers.append(Annotation(told.id, Kind.REJECT, (other,), source=told.source))
        else:
            answers.append(Annotation(told.id, Kind.ONE_OF, (ref, other), source=told.source))
    return annotate(scene, AnnotationSet(scene.detections.geometry, answers))


def best_rival(scene: Scene, column: int, scores: Array) -> int:
    """The best other hypothesis of the first slot of a hypothesis; -1 if there is none."""
    problem = scene.problem
    slot = int(problem.slots_of(np.array([column]))[0, 0])
    rivals = problem.by_slot[slot].indices
    rivals = rivals[rivals != column]
    return int(rivals[np.argmax(scores[rivals])]) if len(rivals) else -1


def one_run(task: Task, data: TrainingSet, start: str, method: str, w: Array) -> Run:
    """Train and judge."""
    begin = time.process_time()
    model, n = TrackingModel(data), float(data.n_annotations)
    regularizer = L2(STRENGTH[start], prior=w if start == "shipped" else np.zeros_like(w))
    initial = None
    if start == "zero, untied":
        initial = untied_start(model, data.samples, regularizer, n_annotations=n)
    pace = method if method in CRITERIA else None
    options = LearningOptions(learner="n-slack", curriculum=pace)
    result = learned(model, regularizer, options=options, initial=initial)
    seconds = time.process_time() - begin
    wrong = float(np.mean(1 - model.satisfied(result.w)))
    return Run(
        result.objective,
        max(wrong, 0.0),
        score(task, result.w).loss,
        result.n_inferences,
        seconds,
        len(result.stages),
    )


def describe(task: Task, data: TrainingSet, w: Array) -> str:
    """How much is hidden."""
    model = TrackingModel(data)
    zero = np.zeros_like(w)
    found = model.hidden_entropies(data.samples, w)
    at_zero, finer = (model.hidden_entropies(data.samples, zero, n) for n in (ENOUGH, 400))
    error = np.abs(at_zero - finer) / np.maximum(finer, 1e-9)
    single = 100 * float(data.single.mean())
    return (
        f"{data.n_annotations} annotations ({single:.0f} % of them single events) in "
        f"{len(data.samples)} samples (seed 0); hidden entropy, median and largest: "
        f"{np.median(found):.2f} and {found.max():.1f} nats at the shipped weights, "
        f"{np.median(at_zero):.2f} and {at_zero.max():.1f} at zero (it "
        f"differs from that with ten times the states by {100 * np.median(error):.1f} % in the "
        f"median, by {100 * error.max():.1f} % at most); untrained, "
        f"{100 * score(task, w).loss:.2f} % of the test events are wrong"
    )


def table(runs: Runs) -> str:
    """A table in markdown."""
    lines = [
        header("start", "method", "objective", "training loss %", "test loss %",
               "calls", "processor seconds", "stages", "better (worse) than plain")
    ]  # fmt: skip
    for (start, method), mine in runs.items():
        plain = runs[start, METHODS[0]]
        change = [a.test_loss - b.test_loss for a, b in zip(mine, plain, strict=True)]
        better, worse = sum(c < -1e-9 for c in change), sum(c > 1e-9 for c in change)
        lines.append(
            row(
                start,
                method,
                spread([r.objective for r in mine], False, 4),
                spread([r.train_loss for r in mine]),
                spread([r.test_loss for r in mine]),
                spread([r.calls for r in mine], False, 0),
                spread([r.seconds for r in mine], False, 1),
                f"{np.mean([r.stages for r in mine]):.1f}",
                "–" if method == METHODS[0] else f"{better} ({worse}) of {len(mine)}",
            )
        )
    return "\n".join(lines) + "\n"


def summary(found: dict[str, Runs]) -> str:
    """Mean test loss over all sets, beside plain CCCP from the same start."""
    lines = ["#### All sets together: mean test loss %", "", header("start", *METHODS)]
    for start in STARTS:
        cells = []
        for method in METHODS:
            each = [np.mean([r.test_loss for r in runs[start, method]]) for runs in found.values()]
            cells.append(f"{100 * np.mean(each):.2f}")
        lines.append(row(start, *cells))
    return "\n".join(lines) + "\n"


def prepared(name: str, root: Any) -> tuple[Task, Array] | None:
    """A task and the shipped weights."""
    task = load_task(name, root)
    if task is None:
        return None
    return task, untrained_model().aligned(task.train.scene.matrix.features)


def main() -> None:
    """Print the tables; what there is so far goes to stderr after each seed."""
    given = arguments(__doc__, 10, ("HeLa, every 4th", "bacteria"))
    loaded = (prepared(name, given.data) for name in given.sets)
    tasks = [task for task in loaded if task is not None]
    told: dict[str, str] = {}
    found: dict[str, Runs] = {}
    for seed in range(given.seeds):
        for task, w in tasks:
            scenes = {
                "confirmed": task.annotated(seed, fraction=SHARE),
                "vague": vague(task, seed, w),
            }
            for how, scene in scenes.items():
                data, title = training_data(scene), f"{task.name}, {how}"
                told.setdefault(title, describe(task, data, w))
                runs = found.setdefault(title, {(s, m): [] for s in STARTS for m in METHODS})
                for (start, method), results in runs.items():
                    results.append(one_run(task, data, start, method, w))
        print(seed + 1, "seeds", tables(found, told), file=sys.stderr, flush=True)
    if found:
        print(tables(found, told))


def tables(found: dict[str, Runs], told: dict[str, str]) -> str:
    """All tables, and the summary."""
    each = [f"#### {title}\n\n{told[title]}\n\n{table(runs)}" for title, runs in found.items()]
    return "\n".join([*each, summary(found)])


if __name__ == "__main__":
    main()
