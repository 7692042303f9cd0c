"""A fixed random order of all slots, so that the answers at its beginning are a fair sample.

Slots, not events, are drawn: they are the same whatever the model. An event is met in proportion to
the slots that it covers, which the estimate of accuracy weighs out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.pipeline.scene import Scene

Index = NDArray[np.int64]


def random_order(scene: Scene, seed: int) -> Index:
    """Slots of the problem in random order; the same for the same cells and seed, shape (S,)."""
    return np.random.default_rng([seed, 5]).permutation(len(scene.slots))


def next_random(scene: Scene, asked: NDArray[np.bool_], count: int, seed: int) -> Index:
    """The first slots of the random order that were not asked, shape (count,) at most."""
    order = random_order(scene, seed)
    return order[~asked[order]][:count]
