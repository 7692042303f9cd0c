"""Annotated movies and tiny training sets, shared by the tests of training."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import scipy.sparse as sp

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import Model, untrained_model
from bridgetrack.pipeline.scene import Scene, annotate, prepare
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.training.training_set import TrainingSet, named
from partition_problems import all_choices, problem_of, random_covers
from scenes import label_movie, simulated, true_moves_and_divisions

Covers = Callable[[np.random.Generator, int, int], list[tuple[int, ...]]]


@cache
def plain_scene(seed: int = 1, cells: int = 25, frames: int = 8) -> Scene:
    """A simulated movie without annotations; some cells divide."""
    movie = simulated(cells=cells, frames=frames, seed=seed, division_rate=0.03)
    return run(prepare(label_movie(movie)))


@cache
def true_columns(seed: int = 1, cells: int = 25, frames: int = 8) -> np.ndarray:
    """Hypotheses of the movie of `plain_scene` that hold: moves and divisions."""
    scene = plain_scene(seed, cells, frames)
    movie = simulated(cells=cells, frames=frames, seed=seed, division_rate=0.03)
    rows = sorted(true_moves_and_divisions(movie, scene.detections))
    event = np.array([e for e, _, _ in rows], dtype=np.int8)
    sources = np.array([(*s, -1)[:2] for _, s, _ in rows], dtype=np.int64)
    targets = np.array([(*t, -1)[:2] for _, _, t in rows], dtype=np.int64)
    found = scene.hypotheses.find(Events(event, sources, targets))
    return found[found >= 0]


def right(model: Model) -> float:
    """Share of the true events of that movie that a model finds, without annotations."""
    chosen = run(track_scene(plain_scene(), model)).solution.chosen
    return float(chosen[true_columns()].mean())


def says(
    scene: Scene,
    columns: np.ndarray,
    kind: Kind = Kind.CONFIRM,
    prefix: str = "a",
    source: str = "click",
) -> list[Annotation]:
    """One annotation for each hypothesis."""
    h = scene.hypotheses
    columns = np.asarray(columns, dtype=np.int64)
    refs = event_refs(scene.detections, h.take(columns))
    return [
        Annotation(f"{prefix}{k}", kind, (ref,), source=source) for k, ref in enumerate(refs, 1)
    ]


def with_annotations(scene: Scene, annotations: list[Annotation]) -> Scene:
    """The scene with these annotations."""
    return annotate(scene, AnnotationSet(scene.detections.geometry, annotations))


def confirmed(scene: Scene, columns: np.ndarray, **more: str) -> Scene:
    """The scene with these hypotheses confirmed."""
    return with_annotations(scene, says(scene, columns, **more))


def some_true(count: int, seed: int = 1, draw: int = 0, divisions: int = 3) -> np.ndarray:
    """Some true hypotheses, a few divisions among them."""
    true = true_columns(seed)
    event = plain_scene(seed).hypotheses.event[true]
    order = np.random.default_rng(draw).permutation(len(true))
    rare = order[event[order] == Event.DIVIDE][:divisions]
    common = order[event[order] == Event.MOVE]
    return true[np.concatenate([rare, common])[:count]]


def swapped(scene: Scene, columns: np.ndarray, w: np.ndarray) -> np.ndarray:
    """For each true move another move of the same cell, the one that the weights like least."""
    scores, h = scene.matrix.scores(w), scene.hypotheses
    out = []
    for column in columns.tolist():
        rivals = np.flatnonzero(
            (h.event == h.event[column])
            & (h.sources[:, 0] == h.sources[column, 0])
            & (np.arange(len(h)) != column)
        )
        out.append(int(rivals[np.argmin(scores[rivals])]))
    return np.array(out)


def margin_of(scene: Scene, columns: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Margins within the movie."""
    scores = scene.matrix.scores(w)
    best = solve(scene.problem, scores)
    return np.where(best.chosen, margin_bounds(scene.problem, scores, best), -1.0)[columns]


def far_apart(count: int, surest: bool = False) -> np.ndarray:
    """True moves in frame pairs of their own, which no swap can bring into contradiction.

    Of each pair the first one, or that which the starting weights are surest of.
    """
    scene = plain_scene()
    true = some_true(200, divisions=0)
    if surest:
        true = true[np.argsort(-margin_of(scene, true, untrained_model().weights))]
    frame = scene.detections.frame[scene.hypotheses.sources[true, 0]]
    _, first = np.unique(frame, return_index=True)
    return true[first][:count]


def bad_prior() -> Model:
    """Untrained weights that would rather let cells come and go than move."""
    plain = untrained_model()
    turned = {"move.bias": -5.0, "divide.bias": -4.0}
    weights = [turned.get(k, float(v)) for k, v in zip(plain.keys, plain.weights, strict=True)]
    return Model(plain.keys, np.asarray(weights), plain.units, name="bad")


def blind_prior() -> Model:
    """Untrained weights that take no division for one."""
    plain = untrained_model()
    weights = np.where([k == "divide.bias" for k in plain.keys], -4.0, plain.weights)
    return Model(plain.keys, weights, plain.units, name="blind")


def tiny_set(
    rng: np.random.Generator,
    n_samples: int = 3,
    n_features: int = 4,
    full: bool = False,
    covers: Covers = random_covers,
) -> TrainingSet:
    """Random samples of a few slots, small enough to enumerate."""
    problems = []
    for _ in range(n_samples):
        n_slots = int(rng.integers(2, 7))
        problems.append(problem_of(covers(rng, n_slots, 10), n_slots))
    return set_of(rng, problems, n_features, 1.0 if full else 0.5)


def set_of(
    rng: np.random.Generator, problems: list[Problem], n_features: int, share: float
) -> TrainingSet:
    """A training set of problems with random features; a share of the slots is annotated.

    Every annotation allows the column of a planted choice and perhaps others of its slot.
    """
    incidence = sp.csr_matrix(sp.block_diag([p.incidence for p in problems]))
    sets, owner = [], []
    start = 0
    for k, problem in enumerate(problems):
        planted = solve(problem, rng.normal(size=problem.n_columns)).chosen
        n = max(1, round(share * problem.n_slots))
        for slot in rng.permutation(problem.n_slots)[:n]:
            here = problem.by_slot[slot].indices
            more = rng.random(len(here)) < (0.0 if share == 1 else 0.3)
            row = np.zeros(incidence.shape[0])
            row[start + here[planted[here] | more]] = 1
            sets.append(row)
            owner.append(k)
        start += problem.n_columns
    matrix = np.array(sets)
    by_slot = sp.csr_matrix(incidence.T.tocsr())
    allowed = np.ones(incidence.shape[0], dtype=bool)
    for row in matrix:
        slot = _slot_of(by_slot, row)
        left = by_slot[slot].indices
        allowed[left[row[left] == 0]] = False
    n_annotations, sizes = len(owner), [p.n_columns for p in problems]
    return named(
        TrainingSet(
            phi=sp.csr_matrix(rng.normal(size=(incidence.shape[0], n_features))),
            incidence=incidence,
            column_sample=np.repeat(np.arange(len(problems)), sizes),
            slot_sample=np.repeat(np.arange(len(problems)), [p.n_slots for p in problems]),
            sets=sp.csr_matrix(matrix),
            annotation_sample=np.array(owner),
            allowed=allowed,
            pair=np.arange(n_annotations),
            event=np.where(matrix.sum(axis=1) == 1, 0, -1).astype(np.int8),
            drawn=np.zeros(n_annotations, dtype=np.int64),
            importance=np.ones(len(problems)),
        )
    )


def _slot_of(by_slot: sp.csr_matrix, row: np.ndarray) -> int:
    """The slot whose columns hold all of a set; any of them where two slots do."""
    inside = by_slot @ row
    return int(np.flatnonzero(inside == row.sum())[0])


def outputs(data: TrainingSet, sample: int) -> list[np.ndarray]:
    """All choices of a sample, by enumeration."""
    incidence = data.incidence[data.column_sample == sample]
    problem = Problem(sp.csr_matrix(incidence[:, np.unique(incidence.indices)]))
    chosen = all_choices(problem)
    return [np.bincount(c, minlength=problem.n_columns).astype(float) for c in chosen]
