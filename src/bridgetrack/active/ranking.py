"""Which questions are worth asking: uncertainty x rarity x novelty, and no neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import Beliefs, Questions, runner_up
from bridgetrack.detections.size import cell_diameter
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_SHORTLIST = 300
_TINY = 1e-12


def rarity_of_kinds(scene: Scene, beliefs: Beliefs, exponent: float) -> Array:
    """Worth of an answer of each kind, 1 for the commonest, shape (len(Event),).

    In inverse proportion to how often a kind was answered, where a kind is taken to have been
    answered once for every tenth of the tracking that it makes up.
    """
    chosen = np.bincount(
        scene.hypotheses.event[beliefs.solution.chosen], minlength=len(Event)
    ).astype(np.float64)
    expected = 10.0 * chosen / max(chosen.sum(), 1.0)
    answered = np.bincount(
        scene.hypotheses.event[scene.constraints.forced], minlength=len(Event)
    ).astype(np.float64)
    count = 1.0 + expected + answered
    return np.asarray((count.max() / count) ** exponent)


def directions(scene: Scene, beliefs: Beliefs, column: Index, slot: Index) -> Array:
    """Features of events minus those of the best alternative at their slot, shape (n, d).

    What an answer teaches the model lies in this direction.
    """
    other = runner_up(scene, beliefs, slot)
    features = np.zeros((len(column), len(scene.matrix.features)))
    for sign, rows in ((1.0, column), (-1.0, other)):
        for event in Event:
            mine = np.flatnonzero((rows >= 0) & (scene.hypotheses.event[rows] == event))
            place = np.searchsorted(scene.matrix.rows[event], rows[mine])
            block = scene.matrix.features.block(event)
            features[mine, block] += sign * scene.matrix.blocks[event][place]
    return features


def answered_directions(scene: Scene, beliefs: Beliefs) -> Array:
    """The same for events that were confirmed, shape (A, d)."""
    constraints = scene.constraints
    single = np.flatnonzero(np.diff(constraints.indptr) == 1)
    column = constraints.indices[constraints.indptr[single]]
    slot = np.searchsorted(scene.slots, constraints.slot[single])
    return directions(scene, beliefs, column, slot)


def choose_batch(
    scene: Scene, beliefs: Beliefs, questions: Questions, k: int, options: SuggestOptions
) -> tuple[Index, Array]:
    """Greedily choose the questions of the largest value.

    ``value = uncertainty x rarity ** exponent x novelty ** exponent``, where novelty is the
    distance, in feature space, to the nearest event answered or chosen before, relative to the
    distance usual among the candidates, 1 at most.

    Returns
    -------
    rows, value
        Rows of `questions`, the best first, and what they were ranked by.
    """
    worth = questions.uncertainty * (
        questions.kinds @ rarity_of_kinds(scene, beliefs, options.rarity)
    )
    short = np.argsort(-worth, kind="stable")[: max(_SHORTLIST, 10 * k)]
    if not len(short) or k < 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    place, frame = _places(scene, questions.column[short])
    reach = options.separation * cell_diameter(scene.detections)
    novelty = _Novelty(
        directions(scene, beliefs, questions.column[short], questions.slot[short]),
        answered_directions(scene, beliefs),
    )
    free = np.ones(len(short), dtype=bool)
    picked: list[int] = []
    values: list[float] = []
    while len(picked) < k and free.any():
        value = worth[short] * novelty.value**options.diversity
        best = int(np.argmax(np.where(free, value, -np.inf)))
        picked.append(best)
        values.append(float(value[best]))
        near = np.linalg.norm(place - place[best], axis=1) < reach
        free &= ~(near & (np.abs(frame - frame[best]) <= 1))
        free[best] = False
        novelty.add(best)
    return short[picked], np.asarray(values)


class _Novelty:
    """Distance of candidates to what was seen, 0 to 1."""

    def __init__(self, candidates: Array, seen: Array) -> None:
        spread = candidates.std(axis=0)
        scale = np.where(spread > _TINY, 1.0 / np.maximum(spread, _TINY), 0.0)
        self._points = candidates * scale
        usual = np.sqrt(2.0 * np.count_nonzero(scale))
        self._usual = max(float(usual), _TINY)
        self._nearest = np.full(len(candidates), np.inf)
        if len(seen):
            self._nearest = _distances(self._points, seen * scale).min(axis=1)

    @property
    def value(self) -> Array:
        """Novelty of every candidate, shape (n,)."""
        return np.minimum(self._nearest / self._usual, 1.0)

    def add(self, chosen: int) -> None:
        """Count a candidate as seen."""
        far = _distances(self._points, self._points[[chosen]])[:, 0]
        self._nearest = np.minimum(self._nearest, far)


def _distances(points: Array, others: Array) -> Array:
    square = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None]
    return np.sqrt(np.maximum(square - 2.0 * points @ others.T, 0.0))


def _places(scene: Scene, column: Index) -> tuple[Array, Index]:
    """Position in the movie's unit and earlier frame of events."""
    source, target = scene.hypotheses.sources[column, 0], scene.hypotheses.targets[column, 0]
    cell = np.where(source >= 0, source, target)
    frame = scene.detections.frame[cell] - (source < 0)
    return scene.detections.position[cell], frame
