"""Seconds of training on 20 frame pairs, beside the same algorithm with an exact monolithic ILP.

    python benchmarks/training_speed.py [--seeds 3] [--limit 120]

Ten frame pairs of HeLa nuclei and ten of epidermis, a quarter of their events annotated. Measured
are the whole training as the program does it (choosing lambda, fitting, comparing with the start,
estimating accuracy), and one fit with fixed lambda by our oracle and by integer programs that
python-mip builds and HiGHS solves to optimality for whole frame pairs, which is stopped after
``--limit`` seconds. Scored on later frames of both movies.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.truth import draw_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.inference.solver import solve_integer
from bridgetrack.learning import L2, LearningOptions, train
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training import programs
from bridgetrack.training.components import build_training_set
from bridgetrack.training.outcome import Training
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import TrainingSet, balanced
from common import (
    SETS,
    Part,
    arguments,
    header,
    load_movie,
    part_of,
    row,
    score_parts,
    spread,
    with_truth,
)

STRENGTH = 0.03
MOVIES = ((SETS["HeLa"], (30, 41), (60, None)), (SETS["epidermis"], (0, 11), (11, None)))
COLUMNS_OF_A_PAIR = 2500
NODES = 1_000_000


class Monolithic(TrackingModel):
    """The same model, with one integer program for about every frame pair."""

    def __init__(self, data: TrainingSet) -> None:
        with patch.object(programs, "SIZE", COLUMNS_OF_A_PAIR):
            super().__init__(data, exact=True)

    def _solve_exactly(self, chunk: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        columns, kept = chunk.columns, chunk.program.kept
        incidence = self.data.incidence[columns]
        slots = np.unique(incidence.indices)
        rows = sp.csr_matrix(incidence[kept][:, slots].T)
        x = np.zeros(columns.stop - columns.start)
        x[kept] = solve_integer(rows, scores[columns][kept], None, NODES, 60.0).x
        return x


def load(root: Any) -> tuple[list[Part], tuple[Part, ...]]:
    """Movies to learn from and to score on."""
    learn, test = [], []
    for data, first, second in MOVIES:
        scene, events = load_movie(replace(data, start=first[0], stop=first[1]), root)
        learn.append(part_of(with_truth(scene, events), events))
        test.append(part_of(*load_movie(replace(data, start=second[0], stop=second[1]), root)))
    return learn, tuple(test)


def answers(part: Part, seed: int) -> AnnotationSet:
    """A quarter of the events."""
    return draw_annotations(part.events, part.scene.detections, seed=seed, fraction=0.25)


def clock() -> NDArray[np.float64]:
    """Seconds on the wall, and seconds of all threads on the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def fit_once(
    model: TrackingModel, prior: NDArray[np.float64], limit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], int, float, bool]:
    """Weights, seconds, oracle calls, objective, and whether the time was up."""
    begin = clock()
    steps = train(
        model,
        model.data.samples,
        L2(STRENGTH, prior=prior),
        n_annotations=float(model.data.n_annotations),
        options=LearningOptions(),
    )
    w, calls, objective = prior, 0, float("nan")
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result = stop.value
            return result.w, clock() - begin, result.n_inferences, result.objective, False
        w, calls, objective = step.weights, step.n_inferences, step.objective
        if (clock() - begin)[0] > limit:
            return w, clock() - begin, calls, objective, True


def trained(scenes: list[Scene]) -> tuple[Training, NDArray[np.float64]]:
    """A training as the program does it, and its seconds."""
    begin = clock()
    training = run(train_steps(scenes))
    return training, clock() - begin


def training_data(scenes: list[Scene], prior: NDArray[np.float64]) -> TrainingSet:
    """The annotated components, weighted as the program does."""
    population = np.zeros(len(Event))
    for scene in scenes:
        chosen = solve(scene.problem, scene.matrix.scores(prior)).chosen
        np.add.at(population, scene.hypotheses.event[chosen], 1)
    return balanced(build_training_set(scenes), population, 0.75)


def describe(parts: list[Part]) -> str:
    """How many hypotheses the frame pairs hold."""
    counts = []
    for part in parts:
        h, frame = part.scene.hypotheses, part.scene.detections.frame
        earlier = np.where(h.sources[:, 0] >= 0, frame[h.sources[:, 0]], -1)
        there = (h.targets[:, 0] >= 0) & (earlier >= 0)
        counts.extend(np.bincount(earlier[there])[: part.scene.detections.geometry.n_frames - 1])
    return (
        f"{len(counts)} frame pairs with {min(counts):,} to {max(counts):,} hypotheses each "
        f"(links and divisions; {sum(len(p.scene.hypotheses) for p in parts):,} of all kinds)"
    )


def main() -> None:
    """Print the figures."""
    limit = 120.0
    if "--limit" in sys.argv:
        at = sys.argv.index("--limit")
        limit = float(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 3, ())
    learn, test = load(given.data)
    prior = untrained_model().aligned(learn[0].scene.matrix.features)
    print(describe(learn), flush=True)

    def wrong(w: NDArray[np.float64]) -> float:
        return score_parts(test, lambda scene: scene.matrix.scores(w)).loss

    print(f"untrained: {100 * wrong(prior):.2f} % of the events of later frames wrong\n")
    columns: dict[str, list[list[float]]] = {}
    cut_off = False
    for seed in range(given.seeds):
        scenes = [annotate(p.scene, answers(p, seed)) for p in learn]
        training, seconds = trained(scenes)
        w = training.model.aligned(scenes[0].matrix.features)
        put(columns, "training from scratch", seconds, training.result.n_inferences, wrong(w))
        data = training_data(scenes, prior)
        w, seconds, calls, objective, _ = fit_once(TrackingModel(data), prior, np.inf)
        put(columns, "one fit, our oracle", seconds, calls, wrong(w), objective)
        w, slow, calls, objective, cut = fit_once(Monolithic(data), prior, limit)
        cut_off |= cut
        put(columns, "one fit, monolithic ILP", slow, calls, wrong(w), objective)
        columns.setdefault("ratio", []).append((slow / seconds).tolist())
        print(f"seed {seed}: {data.n_annotations} annotations, {len(data.samples)} samples, "
              f"{data.phi.shape[0]:,} columns, {(slow / seconds)[0]:.1f} times faster"
              + (f" (the ILP was stopped after {limit:.0f} s)" if cut else ""),
              flush=True)  # fmt: skip
    print(
        "\n"
        + header("what", "seconds", "processor seconds", "oracle calls", "wrong %", "objective")
    )
    for name, values in columns.items():
        if name != "ratio":
            a, p, b, c, d = np.asarray(values).T.tolist()
            print(
                row(
                    name,
                    spread(a, False),
                    spread(p, False),
                    spread(b, False, 0),
                    spread(c),
                    spread(d, False, 4),
                )
            )
    wall, processor = np.asarray(columns["ratio"]).T.tolist()
    print(f"\nOne fit is {spread(wall, False, 1)} times faster than with the monolithic ILP "
          f"({spread(processor, False, 1)} in processor seconds)"
          + (", at least: it was stopped." if cut_off else "."))  # fmt: skip


def put(
    columns: dict[str, list[list[float]]],
    name: str,
    seconds: NDArray[np.float64],
    calls: float,
    wrong: float,
    objective: float = float("nan"),
) -> None:
    """Note one measurement."""
    columns.setdefault(name, []).append([*seconds.tolist(), calls, wrong, objective])


if __name__ == "__main__":
    main()
