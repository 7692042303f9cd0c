"""What two models choose in the same movies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.pipeline.contradiction import explain_contradiction
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by

Array = NDArray[np.float64]


def common_features(scenes: Sequence[Scene]) -> FeatureSet:
    """The features that all movies have.

    Raises
    ------
    InputError
        Where they differ.
    """
    features = scenes[0].matrix.features
    for number, scene in enumerate(scenes[1:], 2):
        differing = sorted(set(features.keys) ^ set(scene.matrix.features.keys))
        if differing or features.keys != scene.matrix.features.keys:
            raise InputError(
                f"movie {number} has other features than the first "
                f"({', '.join(differing) or 'in another order'}); prepare all with the same ones"
            )
    return features


def choices(scenes: Sequence[Scene], weights: Array) -> list[NDArray[np.bool_]]:
    """Chosen hypotheses of every movie under its annotations.

    Raises
    ------
    ContradictionError
        Where annotations leave no choice; the message names them.
    """
    chosen = []
    for scene in scenes:
        try:
            found = solve(scene.problem, scene.matrix.scores(weights), allowed_by(scene))
        except InfeasibleError as error:
            raise explain_contradiction(scene) from error
        chosen.append(found.chosen)
    return chosen


def population_of(scenes: Sequence[Scene], chosen: Sequence[NDArray[np.bool_]]) -> Array:
    """How often each kind of event is chosen, over all movies, shape (len(Event),)."""
    count = np.zeros(len(Event))
    for scene, mine in zip(scenes, chosen, strict=True):
        count += np.bincount(scene.hypotheses.event[mine], minlength=len(Event))
    return count


@dataclass(frozen=True)
class Comparison:
    """What a new model chooses and an old one chose, per kind of event.

    Parameters
    ----------
    population
        How often the new one chooses each kind, shape (len(Event),).
    changes
        Numbers of the old and of the new one.
    exchanged
        Events gained and lost from the one to the other.
    """

    population: Array
    changes: dict[str, tuple[int, int]]
    exchanged: dict[str, tuple[int, int]]


def compared(
    scenes: Sequence[Scene], before: Sequence[NDArray[np.bool_]], after: Sequence[NDArray[np.bool_]]
) -> Comparison:
    """Compare what an old and a new model choose."""
    population = population_of(scenes, after)
    gained = population_of(scenes, [new & ~old for old, new in zip(before, after, strict=True)])
    lost = population_of(scenes, [old & ~new for old, new in zip(before, after, strict=True)])
    changes = _pairs(population_of(scenes, before), population)
    return Comparison(population, changes, _pairs(gained, lost))


def _pairs(one: Array, other: Array) -> dict[str, tuple[int, int]]:
    """Two numbers for every kind of event."""
    return {e.key: (int(one[e]), int(other[e])) for e in Event}
