"""What the papers measure and other pages do not: training time, methods by hand, the bound.

    python -m papers.times_and_bound [--seeds 3] [--sets epidermis ...]

*Training time* against the share of annotated events is 000, Figure 1.5 and 001, Figure 4: one fit
of the bridge loss and the averaged perceptron on that share, beside the hinge loss (the bundle
method) on all. *By hand* are the first two rows of 000, Table 1.1, built again from what the text
says: Li et al. 2010, graph matching (here an assignment by distance; who is left over joins the
nearest cell), and Padfield et al. 2011, an integer program with costs that nobody learned (here in
radii: a move its length, a division the way to the daughters' middle, both plus how much the area
changes, an end or a beginning three). *The bound* is Theorem 1.1 with its terms as measured: norm
of the weights, largest joint feature, size of the output space of one frame pair, beside what the
excess of the test loss is. Seconds are of the processor.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.gibbs import gibbs
from bridgetrack.inference.problem import Problem
from bridgetrack.learning import L2, LOSSES, train_perceptron
from bridgetrack.learning.risk import Risk
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set
from common import (
    Task,
    arguments,
    header,
    learned,
    load_task,
    row,
    score,
    score_parts,
    spread,
    training_data,
)

SHARES = (5, 10, 20, 40, 70, 100)
STRENGTH = 0.03
NEVER = -1e3
END = 3.0
"""Cost of an end or a beginning, in radii."""
Times = dict[tuple[str, int], list[list[float]]]


def times(task: Task, seeds: int) -> Times:
    """Processor seconds, oracle calls and test loss of each method for each share."""
    prior = untrained_model().aligned(task.train.scene.matrix.features)
    found: Times = {}

    def keep(method: str, share: int, begin: float, calls: int, w: Array) -> None:
        seconds = time.process_time() - begin
        found.setdefault((method, share), []).append([seconds, calls, score(task, w).loss])

    for seed in range(seeds):
        for share in SHARES:
            scene = task.annotated(seed, fraction=share / 100)
            data = training_data(scene)
            begin = time.process_time()
            fitted = learned(TrackingModel(data), L2(STRENGTH, prior=prior))
            calls = fitted.n_inferences + fitted.n_reward_inferences
            keep("bridge", share, begin, calls, fitted.w)
            plain = build_training_set(scene)
            begin = time.process_time()
            n, model = plain.n_annotations, TrackingModel(plain)
            risk = Risk(model, plain.samples, n, LOSSES["hinge"])
            steps = train_perceptron(risk, prior, seed=seed, patience=8)
            result = run(steps)
            keep("perceptron", share, begin, result.n_inferences, result.w)
        data = training_data(task.annotated(seed, fraction=1.0))
        begin = time.process_time()
        whole = learned(TrackingModel(data), L2(STRENGTH, prior=prior), loss="hinge")
        keep("hinge, all annotated", 100, begin, whole.n_inferences, whole.w)
    return found


def sizes(scene: Scene) -> tuple[Array, Array, float]:
    """Positions and areas of the cells, and the radius of the usual one."""
    d = scene.detections
    area = d.table["area"].to_numpy(dtype=np.float64)
    pixel = float(np.prod(d.geometry.scale_array))
    return d.position, area, float(np.sqrt(np.median(area) * pixel / np.pi))


def padfield(scene: Scene) -> Array:
    """Scores of all hypotheses from costs that nobody learned."""
    position, area, radius = sizes(scene)
    h = scene.hypotheses
    cost = np.full(len(h), -NEVER)
    cost[np.isin(h.event, (Event.APPEAR, Event.DISAPPEAR))] = END
    a, b, c = h.sources[:, 0], h.targets[:, 0], h.targets[:, 1]
    move, divide = h.event == Event.MOVE, h.event == Event.DIVIDE
    way = np.linalg.norm(position[b[move]] - position[a[move]], axis=1) / radius
    cost[move] = way + np.abs(np.log(area[b[move]] / area[a[move]]))
    middle = (position[b[divide]] + position[c[divide]]) / 2
    way = np.linalg.norm(middle - position[a[divide]], axis=1) / radius
    both = area[b[divide]] + area[c[divide]]
    cost[divide] = (
        way
        + np.abs(np.log(both / area[a[divide]]))
        + np.abs(np.log(area[b[divide]] / area[c[divide]]))
    )
    return -cost


def li(task: Task) -> float:
    """Share of wrong events of an assignment by distance."""
    from peer_runner import Cells, scipy_distance

    (part,) = task.test
    d = part.scene.detections
    _, _, radius = sizes(part.scene)
    links, _ = scipy_distance(Cells(d.frame, d.position, radius, None, None, None))
    children: dict[int, list[int]] = {}
    for a, b in links:
        children.setdefault(a, []).append(b)
    parents = {b for _, b in links}
    right = 0
    for kind, source, target in zip(
        part.events.event, part.events.sources.tolist(), part.events.targets.tolist(), strict=True
    ):
        mine = sorted(children.get(source[0], []))
        right += {
            Event.MOVE: mine == [target[0]],
            Event.DIVIDE: mine == sorted(target),
            Event.DISAPPEAR: not mine,
            Event.APPEAR: target[0] not in parents,
        }.get(Event(kind), False)
    return 1 - right / len(part.events)


def output_space(scene: Scene) -> float:
    """Logarithm to the base ten of how many outputs a frame pair has, in the mean."""
    problem: Problem = scene.problem
    frame_pairs = scene.detections.geometry.n_frames - 1
    log_z, _ = gibbs(problem, np.zeros(problem.incidence.shape[0]), limit=200)
    return log_z / np.log(10) / frame_pairs


def bound(task: Task, seeds: int) -> str:
    """The terms of Theorem 1.1, and the excess that was measured."""
    scene = task.train.scene
    prior = untrained_model().aligned(scene.matrix.features)
    whole = learned(
        TrackingModel(training_data(task.annotated(0, fraction=1.0))), L2(STRENGTH, prior=prior)
    )
    best = score(task, whole.w).loss
    space = output_space(scene)
    lines = [
        f"Outputs of one frame pair: 10 to the {space:,.0f}. Test loss with all annotations: "
        f"{100 * best:.2f} %.\n",
        header("annotations", "test loss, %", "excess, points", "excess × √N",
               "norm of the weights", "largest joint feature", "bound, power of ten"),
    ]  # fmt: skip
    for n in (20, 50, 100, 200, 400):
        losses, norms, reach, samples = [], [], [], []
        for seed in range(seeds):
            data = training_data(task.annotated(seed, count=n))
            fitted = learned(TrackingModel(data), L2(STRENGTH, prior=prior))
            losses.append(score(task, fitted.w).loss)
            norms.append(float(np.linalg.norm(fitted.w)))
            # A sample's joint feature is a sum over its columns; each slot is covered once.
            size = np.sqrt(np.asarray(data.phi.multiply(data.phi).sum(axis=1)).ravel().max())
            slots = np.bincount(data.slot_sample).max()
            reach.append(float(size * slots))
            samples.append(len(data.samples))
        log_bound = (
            np.log10(np.mean(norms) * np.mean(reach) + 1) + np.log10(8) + 2 * space
            - 0.5 * np.log10(np.mean(samples))
        )  # fmt: skip
        excess = 100 * (np.mean(losses) - best)
        lines.append(
            row(n, spread(losses), f"{excess:+.2f}", f"{excess * np.sqrt(n):+.1f}",
                f"{np.mean(norms):.1f}", f"{np.mean(reach):,.0f}", f"{log_bound:,.0f}")
        )  # fmt: skip
    return "\n".join(lines)


def time_table(name: str, found: Times) -> str:
    """Seconds, calls and loss for each share."""
    lines = [f"### {name}: training time", "", header("method", *(f"{s} %" for s in SHARES))]
    for method in ("bridge", "perceptron", "hinge, all annotated"):
        for k, what in enumerate(("seconds", "calls", "wrong %")):
            cells = []
            for share in SHARES:
                values = [v[k] for v in found.get((method, share), [])]
                percent, digits = k == 2, (2, 0, 2)[k]
                cells.append(spread(values, percent, digits) if values else "")
            lines.append(row(f"{method}, {what}", *cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, and draw."""
    warnings.simplefilter("ignore")
    given = arguments(__doc__, 3, ("epidermis", "HeLa, every 4th"))
    tasks = {name: load_task(name, given.data) for name in given.sets}
    ready = {name: task for name, task in tasks.items() if task is not None}
    if not ready:
        sys.exit("none of these movies is there")
    if any(len(task.test) != 1 for task in ready.values()):
        sys.exit("give sets that are scored on their second half")
    found = {}
    for name, task in ready.items():
        found[name] = times(task, given.seeds)
        print(time_table(name, found[name]), flush=True)
    print("### Methods by hand: wrong events, %\n")
    print(header("movie", "Li: assignment by distance", "Padfield: costs by hand",
                 "Bridgetrack, untrained", "one fit, all annotated"))  # fmt: skip
    for name, task in ready.items():
        prior = untrained_model().aligned(task.train.scene.matrix.features)
        whole = np.mean([v[2] for v in found[name]["bridge", 100]])
        losses = (li(task), score_parts(task.test, padfield).loss, score(task, prior).loss, whole)
        print(row(name, *(f"{100 * v:.2f}" for v in losses)), flush=True)
    for name, task in ready.items():
        print(f"\n### {name}: Theorem 1.1\n")
        print(bound(task, given.seeds), flush=True)


if __name__ == "__main__":
    main()
