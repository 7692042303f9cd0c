"""Compare the learners of 003: inference calls and seconds to a 1 % relative gap.

    python -m papers.learners [--seeds 10] [--sets epidermis bacteria ...]

A quarter of the events of the training part is annotated (all of bacteria's, which are few). The
bridge loss is regularised towards the shipped weights (lambda = 0.03) or towards zero
(lambda = 0.003), and training begins at the shipped weights.

*One convex problem* is the first surrogate of CCCP, with the completions of the shipped weights:
it has one minimum, which all learners must find. *Certified* is when a learner's own duality gap
is 1 % of its objective. *A whole training* is CCCP around the learner with the default precision.
One call is loss-augmented inference of all samples; learners that look at some at a time are
charged for just these. Seconds are processor seconds of all threads. Slow learners see the first
three seeds only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import (
    L2,
    LEARNERS,
    LearningOptions,
    TrainingResult,
    cccp,
    online,
    risk,
)
from bridgetrack.models.model import untrained_model
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet
from common import arguments, header, learned, load_task, row, spread, training_data

PRIORS = {"shipped weights": 0.03, "zero": 0.003}
SHARES = {"bacteria": 1.0}
CALLS = {"subgradient": 120}
COMPARED = ("n-slack", "1-slack", "1-slack, no cache", "frank-wolfe", "subgradient")
WHOLE = ("n-slack", "1-slack", "frank-wolfe", "perceptron")
SLOW = ("subgradient", "perceptron", "1-slack, no cache")
SLOW_SEEDS = 3
Runs = dict[str, list[TrainingResult]]


@dataclass(frozen=True)
class Case:
    """Training sets of one movie, one per seed, and the shipped weights."""

    name: str
    sets: list[TrainingSet]
    w: NDArray[np.float64]


def cases(names: list[str], seeds: int, root: Any) -> list[Case]:
    """What to train on."""
    found = []
    for name in names:
        task = load_task(name, root)
        if task is not None:
            share = SHARES.get(name, 0.25)
            drawn = [training_data(task.annotated(k, fraction=share)) for k in range(seeds)]
            w = untrained_model().aligned(task.train.scene.matrix.features)
            found.append(Case(name, drawn, w))
    return found


def options_of(name: str, **more: Any) -> LearningOptions:
    """Options of a learner by its name in the table."""
    learner = name.split(",", maxsplit=1)[0]
    calls = CALLS.get(name, 500)
    how: dict[str, Any] = {"learner": learner, "max_inferences": calls, "max_bounds": 1000}
    return LearningOptions(**how, cache="no cache" not in name, **more)


def one_problem(case: Case, towards: str) -> Runs:
    """Every learner on the first surrogate of every seed."""
    regularizer = regularizer_of(case, towards)
    found: Runs = {name: [] for name in COMPARED}
    for name, data in runs_of(case, COMPARED):
        options = options_of(name, adaptive=False, max_cccp_iterations=1, precision=1e-4)
        model = TrackingModel(data)
        found[name].append(learned(model, regularizer, options=options, initial=case.w))
    return found


def runs_of(case: Case, names: tuple[str, ...]) -> list[tuple[str, TrainingSet]]:
    """Learners and training sets, seed after seed."""
    return [
        (name, data)
        for seed, data in enumerate(case.sets)
        for name in names
        if seed < SLOW_SEEDS or name not in SLOW
    ]


def whole(case: Case, towards: str, names: tuple[str, ...]) -> Runs:
    """Every learner as part of CCCP, and the perceptron."""
    regularizer = regularizer_of(case, towards)
    found: Runs = {name: [] for name in names}
    for name, data in runs_of(case, names):
        model = TrackingModel(data)
        found[name].append(learned(model, regularizer, options=options_of(name), initial=case.w))
    return found


def regularizer_of(case: Case, towards: str) -> L2:
    """L2 around the shipped weights or zero."""
    return L2(PRIORS[towards], prior=np.zeros_like(case.w) if towards == "zero" else case.w)


def first(result: TrainingResult, reached: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Calls, oracle seconds and seconds when something was first the case; inf if never."""
    if not reached.any():
        return float("inf"), float("inf"), float("inf")
    step = result.steps[int(np.argmax(reached))]
    return float(step.n_inferences), step.inference_seconds, step.seconds


def certified(result: TrainingResult) -> tuple[float, float, float]:
    """When the relative gap was known to be 1 %; with the end, where no call was left."""
    known = np.array([step.gap <= 0.01 * step.objective for step in result.steps])
    if not known.any() and result.gap <= 0.01 * result.objective:
        return float(result.n_inferences), result.inference_seconds, result.seconds
    return first(result, known)


def spread_or_never(values: list[float], digits: int) -> str:
    """Mean and spread, and how many seeds did not get there."""
    finite = [v for v in values if np.isfinite(v)]
    late = len(values) - len(finite)
    if not finite:
        return "never"
    return spread(finite, False, digits) + (f" ({late} never)" if late else "")


def convex_table(title: str, runs: Runs) -> str:
    """Table of one convex problem."""
    lines = [f"### {title}, one convex problem", ""]
    lines.append(header("learner", "calls until certified", "oracle seconds", "seconds"))
    for name, results in runs.items():
        known = [certified(r) for r in results]
        cells = [spread_or_never([k[n] for k in known], d) for n, d in enumerate((1, 3, 3))]
        lines.append(row(name, *cells))
    return "\n".join(lines) + "\n"


def whole_table(title: str, runs: Runs, case: Case, towards: str) -> str:
    """Table of whole trainings."""
    lines = [
        f"### {title}, a whole training",
        "",
        header(
            "learner", "objective", "calls for P", "CCCP iterations", "oracle seconds", "seconds"
        ),
    ]
    for name, results in runs.items():
        objective = [r.objective for r in results]
        if name == "perceptron":
            objective = [objective_at(case, towards, k, r.w) for k, r in enumerate(results)]
        iterations = [len(r.objectives) - 1 for r in results]
        lines.append(
            row(
                name,
                spread(objective, False, 4),
                spread([float(r.n_inferences) for r in results], False, 1),
                spread([float(v) for v in iterations], False, 1),
                spread([r.inference_seconds for r in results], False, 2),
                spread([r.seconds for r in results], False, 2),
            )
        )
    return "\n".join(lines) + "\n"


def objective_at(case: Case, towards: str, seed: int, w: NDArray[np.float64]) -> float:
    """The objective at some weights."""
    data = case.sets[seed]
    model = TrackingModel(data)
    penalty = model.loss_augmented_inference(data.samples, w).values(w, 1).sum()
    reward = model.compatible_inference(data.samples, w).values(w, 0).sum()
    risk = float(penalty - reward) / data.n_annotations
    return regularizer_of(case, towards).value(w) + risk


def spent(result: TrainingResult) -> tuple[float, float, float]:
    """Calls, oracle seconds and seconds in all."""
    return float(result.n_inferences), result.inference_seconds, result.seconds


def summary(title: str, found: dict[str, Runs], measure: Callable[..., Any]) -> str:
    """Geometric means of what each learner took, divided by what the bundle took."""
    lines = [f"### {title}, relative to 1-slack (bundle) on the same seed", ""]
    lines.append(header("learner", "calls", "oracle seconds", "seconds"))
    for name in dict.fromkeys(n for runs in found.values() for n in runs):
        ratios = []
        for runs in found.values():
            for mine, other in zip(runs.get(name, []), runs["1-slack"], strict=False):
                a, b = measure(mine), measure(other)
                ratios.append(
                    [x / y if np.isfinite(x) else np.nan for x, y in zip(a, b, strict=True)]
                )
        array = np.asarray(ratios)
        there = np.isfinite(array).all(axis=1)
        cells = [f"{np.exp(np.log(array[there, k]).mean()):.2f}" if there.any() else "–"
                 for k in range(3)]  # fmt: skip
        late = f" ({int((~there).sum())} of {len(there)} never)" if not there.all() else ""
        lines.append(row(name + late, *cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, and draw."""
    given = arguments(__doc__, 10, ("epidermis", "bacteria", "HeLa, every 4th"))
    assert {n.split(",", maxsplit=1)[0] for n in COMPARED} | {"perceptron"} == set(LEARNERS)
    for module in (risk, cccp, online):
        vars(module)["time"] = SimpleNamespace(perf_counter=time.process_time)
    found, entire = {}, {}
    for case in cases(given.sets, given.seeds, given.data):
        for towards in PRIORS:
            title = f"{case.name}, prior: {towards}"
            found[title] = one_problem(case, towards)
            print(convex_table(title, found[title]), flush=True)
            entire[title] = whole(case, towards, WHOLE)
            print(whole_table(title, entire[title], case, towards), flush=True)
    if found:
        print(summary("One convex problem until certified", found, certified), flush=True)
        print(summary("A whole training", entire, spent), flush=True)


if __name__ == "__main__":
    main()
