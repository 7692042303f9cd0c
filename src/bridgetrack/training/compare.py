"""What two models choose in the same movies."""

from __future__ import annotations

from collections.abc import Sequence

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


def pairs(one: Array, other: Array) -> dict[str, tuple[int, int]]:
    """Two numbers for every kind of event."""
    return {e.key: (int(one[e]), int(other[e])) for e in Event}
