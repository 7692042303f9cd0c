"""What a cell's past and future tell: wrong events with features from short chains of overlap.

    python benchmarks/past_and_future.py [--seeds 3] [--sets S ...]

Development movies, all true events of one half annotated, fitted with small λ all the way from the
shipped weights (bacteria: tied as tightly as if none had been seen); then the same with the halves
exchanged. Counted are wrong events of the half learned from (the floor) and of the other one, no
answer honoured. A chain leads over at most three frames from a cell to the one that it
shares most pixels with after the expected shift, and that shares most with it; it needs no tracks.
By block: *growth* (log area), *rounding* (roundness and elongation), *brightening* (level; needs an
image), *speed* (steps beyond the flow), *lasting* (how long chains are); all blocks of one kind of
events; all; and as a control *all, another's*, where every cell has the past and future of another
cell of its frame. Weights of the new features start at zero. In brackets, how many are wrong only
without the new features, and only with them. The first table says how well changes along the chain
before a cell tell that it divides next, the last one what comes of 50 stratified answers with the
default λ, halfway, mean over seeds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from active_events import prior_for
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import Feature, FeatureSet, compute_features, feature_of
from bridgetrack.features.view import CellMeasures, EventView, describe_cells
from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.progress import run
from bridgetrack.training.components import build_training_set
from bridgetrack.training.fit import Movies
from bridgetrack.training.options import HALFWAY, TrainingOptions, default_strength
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.train import tracking_model
from common import Part, Task, header, option, part_of, row, score_parts, with_truth
from keep_rule import load

MOVIES = (
    "bacteria", "HeLa, every 4th", "HeLa", "iPSC 01, every 2nd", "epidermis, first half",
    "PSC, first half, every 4th",
)  # fmt: skip
STRENGTHS = (0.01, 0.003)
STEPS = 3
"""Links of a chain."""

FEW = 50
"""Answers of the last table."""

BLOCKS = ("growth", "rounding", "brightening", "speed", "lasting")
KINDS = {
    "moves": (Event.MOVE,),
    "divisions": (Event.DIVIDE,),
    "ends": (Event.APPEAR, Event.DISAPPEAR),
}
COLUMNS = (*BLOCKS, *KINDS, "all", "all, another's")
TOLD = {
    "area": "size",
    "roundness": "roundness",
    "elongation": "elongation",
    "level": "level",
}
"""Measures that may tell a coming division, and their names in `CellMeasures`."""

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Column = tuple[str, tuple[Feature, ...]]


@dataclass(frozen=True)
class Chain:
    """The cells before, or after, every cell of a movie.

    Parameters
    ----------
    rows
        The cell itself, and those of the chain, -1 beyond its end, shape (STEPS + 1, n).
    possible
        Frames that the movie has on this side, at most STEPS, shape (n,).
    """

    rows: Index
    possible: Index

    @classmethod
    def of(cls, following: Index, possible: Index) -> Chain:
        """From the next cell of every cell, -1 where there is none."""
        rows = [np.arange(len(following))]
        for _ in range(STEPS):
            rows.append(np.where(rows[-1] >= 0, following[rows[-1]], -1))
        return cls(np.stack(rows), np.minimum(possible, STEPS))

    @property
    def length(self) -> Index:
        """Links, shape (n,)."""
        return np.asarray((self.rows[1:] >= 0).sum(axis=0))

    @property
    def lasting(self) -> Array:
        """Links of those that the movie has frames for; 1 where it has none, shape (n,)."""
        return np.where(self.possible > 0, self.length / np.maximum(self.possible, 1), 1.0)

    def end(self, steps: int = STEPS) -> Index:
        """The last cell that is at most so many links away, shape (n,)."""
        places = np.minimum(self.length, steps)
        return np.asarray(self.rows[places, np.arange(len(places))])

    def mean(self, values: Array) -> Array:
        """Mean over the cell and its chain, of values (n,) or (n, k)."""
        there = (self.rows >= 0).reshape(*self.rows.shape, *(1 for _ in values.shape[1:]))
        return np.asarray((values[self.rows] * there).sum(axis=0) / there.sum(axis=0))


@dataclass(frozen=True)
class Beside:
    """Chains on both sides of every cell, and what they tell of it.

    Parameters
    ----------
    before, after
        The chains.
    arrives, leaves
        Mean step beyond the flow along each, 0 where there is none, shape (n, ndim).
    whose
        The cell whose past and future every cell has: its own, save in a control, shape (n,).
    """

    before: Chain
    after: Chain
    arrives: Array
    leaves: Array
    whose: Index

    @classmethod
    def of(cls, evidence: Evidence, whose: Index | None = None) -> Beside:
        """From the overlaps of neighbouring frames."""
        following, previous = links(evidence)
        frame = evidence.detections.frame
        whose = np.arange(len(frame)) if whose is None else whose
        last = evidence.detections.geometry.n_frames - 1
        before, after = Chain.of(previous, frame), Chain.of(following, last - frame)
        step = evidence.detections.position[following] - evidence.predicted
        step[following < 0] = 0.0

        def mean(chain: Chain, but: Array) -> Array:
            # of all steps from cells of the chain; one of them leads out of it
            total = chain.mean(step) * (chain.length + 1)[:, None] - but
            return np.asarray(total / np.maximum(chain.length, 1)[:, None])[whose]

        return cls(before, after, mean(before, step), mean(after, step[after.end()]), whose)

    def change(self, values: Array, chain: Chain, steps: int) -> Array:
        """By how much a measure differs so many links away, over its usual size, shape (n,)."""
        return robust(values[chain.end(steps)] - values, chain.length > 0)[self.whose]

    def usual(self, values: Array, chain: Chain) -> Array:
        """A measure of every cell as its chain would have it, shape (n,)."""
        return np.asarray(values + (chain.mean(values) - values)[self.whose])

    def lasting(self, chain: Chain) -> Array:
        """How much of a chain there is, shape (n,)."""
        return chain.lasting[self.whose]


def others(evidence: Evidence) -> Index:
    """Another cell of its frame for every cell, at random, shape (n,)."""
    frame = evidence.detections.frame
    mixed = np.random.default_rng(0).permutation(len(frame))
    mixed = mixed[np.argsort(frame[mixed], kind="stable")]
    out = np.arange(len(frame))
    for t in np.unique(frame):
        mine = mixed[frame[mixed] == t]
        out[mine] = np.roll(mine, 1)
    return out


def links(evidence: Evidence) -> tuple[Index, Index]:
    """The next and the previous cell of every cell: each shares most pixels with the other.

    Without masks each other's nearest cells.
    """
    n = len(evidence.detections)
    if not len(evidence.overlap_key):
        return evidence.match_next, evidence.match_previous
    order = np.argsort(evidence.overlap_pixels, kind="stable")
    i, j = np.divmod(evidence.overlap_key[order], n)
    best, back = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    best[i], back[j] = j, i  # the last of a cell is the largest
    mutual = (best >= 0) & (back[best] == np.arange(n))
    following, previous = np.where(mutual, best, -1), np.full(n, -1, dtype=np.int64)
    previous[following[mutual]] = np.flatnonzero(mutual)
    return following, previous


def robust(values: Array, known: NDArray[np.bool_]) -> Array:
    """Values over their usual size where they are known, within +-4; 0 elsewhere."""
    usual = 1.4826 * float(np.median(np.abs(values[known]))) if known.any() else 0.0
    return np.where(known, np.clip(values / max(usual, 1e-6), -4.0, 4.0), 0.0)


def _of(cell: str, values: Array, v: EventView) -> Array:
    """Of the source or the target."""
    return np.asarray(values[getattr(v, cell)])


def _daughters_mean(values: Array, v: EventView) -> Array:
    return np.asarray((values[v.target] + values[v.other_target]) / 2)


def _daughters_differ(values: Array, v: EventView) -> Array:
    return np.abs(values[v.target] - values[v.other_target])


def _daughters_least(values: Array, v: EventView) -> Array:
    return np.minimum(values[v.target], values[v.other_target])


def _against(source: Array, target: Array, v: EventView) -> Array:
    """How much a measure of the target differs from one of the source, at most 3."""
    return np.minimum(np.abs(target[v.target] - source[v.source]), 3.0)


def changes(name: str, values: Array, beside: Beside, needs: str = "") -> Iterator[Feature]:
    """Features of a measure of every cell, shape (n,), by how it changes along chains."""
    before, after = beside.before, beside.after
    of = partial(feature_of, needs=needs)
    for which, steps in (("last", 1), ("chain", STEPS)):
        size = -beside.change(values, before, steps)
        words = f"change of {name} before, {which}"
        for event in (Event.MOVE, Event.DIVIDE, Event.DISAPPEAR):
            key = f"{name}_before_{which}"
            yield of(event, key, words, partial(_of, "source", size))
        size = beside.change(values, after, steps)
        words = f"change of {name} after, {which}"
        for event in (Event.MOVE, Event.APPEAR):
            key = f"{name}_after_{which}"
            yield of(event, key, words, partial(_of, "target", size))
        for how, compute in (("mean", _daughters_mean), ("differ", _daughters_differ)):
            key = f"{name}_after_{which}_{how}"
            yield of(Event.DIVIDE, key, words, partial(compute, size))
    known = (
        ("before", beside.usual(values, before), values),
        ("after", values, beside.usual(values, after)),
    )
    for side, source, target in known:
        words = f"|difference of {name} from the mean of the chain {side}|"
        compute = partial(_against, source, target)
        yield of(Event.MOVE, f"{name}_against_{side}", words, compute)


def _turn(velocity: Array, cell: str, v: EventView) -> Array:
    """Step of a move beyond the flow and the motion along a chain, in the movie's unit."""
    own = v.position[v.target] - v.evidence.predicted[v.source]
    return np.linalg.norm(own - velocity[getattr(v, cell)], axis=1)


def _turn_of_middle(velocity: Array, v: EventView) -> Array:
    """The same of the midpoint of daughters, after the mother's motion."""
    middle = (v.position[v.target] + v.position[v.other_target]) / 2
    own = middle - v.evidence.predicted[v.source]
    return np.linalg.norm(own - velocity[v.source], axis=1)


def _in_diameters(compute: Callable[[EventView], Array], v: EventView) -> Array:
    return np.minimum(compute(v) / v.diameter, 5.0)


def _in_steps(compute: Callable[[EventView], Array], v: EventView) -> Array:
    return np.log1p(compute(v) / v.step)


def speeds(beside: Beside) -> Iterator[Feature]:
    """Features of how cells move along chains, and how an event differs from it."""
    arrives = np.linalg.norm(beside.arrives, axis=1)
    leaves = np.linalg.norm(beside.leaves, axis=1)
    turns: tuple[tuple[Event, str, Callable[[EventView], Array]], ...] = (
        (Event.MOVE, "turn_before", partial(_turn, beside.arrives, "source")),
        (Event.MOVE, "turn_after", partial(_turn, beside.leaves, "target")),
        (Event.DIVIDE, "turn_before", partial(_turn_of_middle, beside.arrives)),
    )
    for event, key, compute in turns:
        words = "step beyond the flow and the motion along the chain"
        yield feature_of(event, key, words, partial(_in_diameters, compute), "diameters")
        yield feature_of(event, f"{key}_steps", f"log(1 + {words})", partial(_in_steps, compute))
    for event in (Event.MOVE, Event.DIVIDE, Event.DISAPPEAR):
        before = partial(_in_steps, partial(_of, "source", arrives))
        yield feature_of(event, "speed_before", "log(1 + speed before)", before)
    for event in (Event.MOVE, Event.APPEAR):
        after = partial(_in_steps, partial(_of, "target", leaves))
        yield feature_of(event, "speed_after", "log(1 + speed after)", after)
    both = partial(_in_steps, partial(_daughters_mean, leaves))
    yield feature_of(Event.DIVIDE, "speed_after", "log(1 + mean speed of the daughters)", both)


def lengths(beside: Beside) -> Iterator[Feature]:
    """Features of how long chains are."""
    before, after = beside.lasting(beside.before), beside.lasting(beside.after)
    for event in (Event.MOVE, Event.DIVIDE, Event.DISAPPEAR):
        compute = partial(_of, "source", before)
        yield feature_of(event, "lasting_before", "length of the chain before", compute)
    for event in (Event.MOVE, Event.APPEAR):
        compute = partial(_of, "target", after)
        yield feature_of(event, "lasting_after", "length of the chain after", compute)
    for how, both in (("mean", _daughters_mean), ("least", _daughters_least)):
        compute = partial(both, after)
        words = f"length of the daughters' chains, {how}"
        yield feature_of(Event.DIVIDE, f"lasting_after_{how}", words, compute)


def blocks_of(beside: Beside, cells: CellMeasures) -> dict[str, tuple[Feature, ...]]:
    """The features of a movie, by block; their weights start at zero."""
    found = {
        "growth": (*changes("area", cells.size, beside),),
        "rounding": (
            *changes("roundness", cells.roundness, beside, "mask"),
            *changes("elongation", cells.elongation, beside, "mask"),
        ),
        "brightening": (*changes("level", cells.level, beside, "image"),),
        "speed": (*speeds(beside),),
        "lasting": (*lengths(beside),),
    }
    return {name: tuple(replace(f, start=0.0) for f in each) for name, each in found.items()}


def columns_of(scene: Scene) -> list[Column]:
    """What is fitted: no new features, and those of each of `COLUMNS`.

    A block is empty where the movie does not tell it.
    """
    evidence, cells = scene.evidence, describe_cells(scene.evidence)
    blocks = blocks_of(Beside.of(evidence), cells)
    if not scene.detections.channels:
        blocks["brightening"] = ()
    every = joined(blocks)
    kinds = [(name, tuple(f for f in every if f.event in some)) for name, some in KINDS.items()]
    control = joined(blocks_of(Beside.of(evidence, others(evidence)), cells))
    return [("none", ()), *blocks.items(), *kinds, ("all", every), (COLUMNS[-1], control)]


def joined(blocks: dict[str, tuple[Feature, ...]]) -> tuple[Feature, ...]:
    """The features of all blocks."""
    return tuple(f for block in blocks.values() for f in block)


def with_features(task: Task, extra: tuple[Feature, ...]) -> Task:
    """The same halves of a movie, with more features."""
    features = FeatureSet(
        tuple(sorted((*default_features().features, *extra), key=lambda f: f.event))
    )
    scene = task.train.scene
    scene = replace(scene, matrix=compute_features(scene.evidence, scene.hypotheses, features))
    return replace(
        task,
        train=replace(task.train, scene=scene),
        test=tuple(replace(part, scene=scene) for part in task.test),
    )


def exchanged(task: Task) -> Task:
    """The other half to learn from, the first to score."""
    (other,) = task.test
    scene = with_truth(other.scene, other.events)
    return Task(task.name, part_of(scene, other.events), (part_of(scene, task.train.events),))


def fitted(task: Task, given: AnnotationSet, strength: float | None = None) -> Array:
    """Weights learned from some answers: all the way, or with the default λ and halfway."""
    scene = annotate(task.train.scene, given)
    features, prior = scene.matrix.features, prior_for(task.name)
    start, options = prior.aligned(features), TrainingOptions()
    population = population_of([scene], choices([scene], start))
    target, _ = tracking_model(build_training_set([scene]), population, start, options)
    movies = Movies(target, (), start, prior.tightness_for(features))
    if strength is not None:
        return run(movies.fit(strength, options)).w
    usual = run(movies.fit(default_strength(target.data.n_annotations), options)).w
    return start + HALFWAY * (usual - start)


def wrong(parts: tuple[Part, ...], weights: Array) -> frozenset[int]:
    """Numbers of the wrong events."""
    return frozenset(score_parts(parts, lambda scene: scene.matrix.scores(weights)).wrong)


def against(one: frozenset[int], none: frozenset[int]) -> str:
    """How many are wrong, of these how many newly, and how many no longer."""
    return f"{len(one)} (-{len(none - one)}, +{len(one - none)})"


@dataclass(frozen=True)
class Halves:
    """Wrong events of a movie by what was fitted, of the half learned from and of the other.

    Parameters
    ----------
    name
        Of the movie, and which half was learned from.
    events
        How many there are in the two.
    start
        Wrong with the starting weights.
    wrong
        By strength and column, wrong events of the two; without what the movie does not tell.
    few
        By column, the mean number of wrong events of the other half after `FEW` answers.
    """

    name: str
    events: tuple[int, int]
    start: tuple[int, int]
    wrong: dict[tuple[float, str], tuple[frozenset[int], frozenset[int]]]
    few: dict[str, float]


def measure(task: Task, name: str, seeds: int) -> Halves:
    """Fit every column."""
    parts = (task.train,), task.test
    start = prior_for(task.name).aligned(task.train.scene.matrix.features)
    everything, found, few = task.clicks(0, fraction=1.0), {}, {}
    some = [task.clicks(seed, count=FEW) for seed in range(seeds)]
    for column, extra in columns_of(task.train.scene):
        if column != "none" and not extra:
            continue
        more = with_features(task, extra)
        for strength in STRENGTHS:
            weights = fitted(more, everything, strength)
            both = wrong((more.train,), weights), wrong(more.test, weights)
            found[strength, column] = both
            print(f"{name}, λ {strength}, {column}: {[*map(len, both)]}", file=sys.stderr)
        counted = [len(wrong(more.test, fitted(more, given))) for given in some]
        few[column] = float(np.mean(counted))
        print(f"{name}, {FEW} answers, {column}: {counted}", file=sys.stderr, flush=True)
    return Halves(
        name,
        (len(task.train.events), len(task.test[0].events)),
        (len(wrong(parts[0], start)), len(wrong(parts[1], start))),
        found,
        few,
    )


def table(found: list[Halves], strength: float, which: int) -> str:
    """A row a half, and one for all."""
    lines = [header("wrong events", "events", "start", "none", *COLUMNS)]
    total = np.zeros((len(COLUMNS), 3), dtype=np.int64)
    for one in found:
        before = one.wrong[strength, "none"][which]
        cells = []
        for k, column in enumerate(COLUMNS):
            both = one.wrong.get((strength, column))
            now = before if both is None else both[which]
            total[k] += len(now), len(before - now), len(now - before)
            cells.append("–" if both is None else against(now, before))
        lines.append(row(one.name, f"{one.events[which]:,}", one.start[which], len(before), *cells))
    sums = [sum(one.events[which] for one in found), sum(one.start[which] for one in found)]
    none = sum(len(one.wrong[strength, "none"][which]) for one in found)
    cells = [f"{n} (-{won}, +{lost})" for n, won, lost in total.tolist()]
    lines.append(row("all", f"{sums[0]:,}", sums[1], none, *cells))
    return "\n".join(lines) + "\n"


def table_of_few(found: list[Halves]) -> str:
    """The same after few answers."""
    lines = [header("wrong events", "events", "start", "none", *COLUMNS)]
    total = np.zeros(len(COLUMNS) + 1)
    for one in found:
        means = [one.few.get(column) for column in ("none", *COLUMNS)]
        total += [one.few["none"] if m is None else m for m in means]
        cells = ["–" if m is None else f"{m:.1f}" for m in means]
        lines.append(row(one.name, f"{one.events[1]:,}", one.start[1], *cells))
    events, start = sum(one.events[1] for one in found), sum(one.start[1] for one in found)
    lines.append(row("all", f"{events:,}", start, *(f"{m:.1f}" for m in total)))
    return "\n".join(lines) + "\n"


def auc(values: Array, positive: NDArray[np.bool_]) -> str:
    """Area under the curve, and whether more or less of the measure tells."""
    if not np.ptp(values):
        return "–"
    n, ranks = int(positive.sum()), rankdata(values)
    area = (ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(values) - n))
    return f"{max(area, 1 - area):.2f} {'more' if area >= 0.5 else 'less'}"


def coming(task: Task) -> str:
    """How well measures, and how they change, tell the cells that divide next from those that move.

    Of cells with a cell before them.
    """
    evidence = task.train.scene.evidence
    cells, before = describe_cells(evidence), Beside.of(evidence).before
    parts = (task.train, *task.test)
    event = np.concatenate([part.events.event for part in parts])
    source = np.concatenate([part.events.sources[:, 0] for part in parts])
    kept = np.isin(event, (Event.MOVE, Event.DIVIDE))
    kept[kept] = before.length[source[kept]] > 0
    source, divides = source[kept], event[kept] == Event.DIVIDE
    told = []
    for name in TOLD.values():
        values: Array = getattr(cells, name)
        told += [values, values - values[before.end(1)], values - values[before.end()]]
    figures = [auc(values[source], divides) for values in told]
    return row(task.name, f"{divides.sum()} of {len(divides):,}", *figures)


def main() -> None:
    """Print how well a division is told, and the wrong events of both halves."""
    warnings.simplefilter("ignore")
    seeds = int(option("--seeds", 3))
    names = sys.argv[sys.argv.index("--sets") + 1 :] if "--sets" in sys.argv else list(MOVIES)
    tasks = [task for task in map(load, names) if task is not None]
    columns = [f"{name}{how}" for name in TOLD for how in ("", ", last change", ", chain")]
    print("### A coming division: area under the curve, and whether more or less of it tells\n")
    print(header("movie", "divisions", *columns))
    for task in tasks:
        print(coming(task), flush=True)
    found = []
    for task in tasks:
        found.append(measure(task, task.name, seeds))
        found.append(measure(exchanged(task), f"{task.name}, halves exchanged", seeds))
    for strength in STRENGTHS:
        for which, words in enumerate(("the half learned from", "the other half")):
            print(f"\n### All events of a half, λ {strength}: {words}\n")
            print(table(found, strength, which), end="", flush=True)
    print(f"\n### {FEW} answers about a half: the other half\n")
    print(table_of_few(found), end="")


if __name__ == "__main__":
    main()
