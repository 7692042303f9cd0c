"""Feature statistics of a prepared movie, to compare it with those that models learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.models.statistics import FeatureStatistics, summarise
from bridgetrack.models.untrained import untrained_model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import track_scene

Mask = NDArray[np.bool_]


def statistics_steps(scene: Scene) -> Steps[FeatureStatistics]:
    """Statistics of the events that the hand-set weights find likely.

    Always the same weights, so that movies are comparable whatever they were tracked with.
    Annotated events are honoured.

    Yields
    ------
    Progress

    Returns
    -------
    FeatureStatistics

    Raises
    ------
    ContradictionError
        Where annotations exclude each other.
    """
    yield Progress("Looking at the movie", 0.0)
    tracking = yield from track_scene(scene, untrained_model(scene.matrix.features))
    return statistics_of(scene, tracking.solution.chosen)


def statistics_of(scene: Scene, chosen: Mask) -> FeatureStatistics:
    """Statistics of the chosen events of a movie.

    Parameters
    ----------
    scene
        The movie.
    chosen
        Which hypotheses hold, shape (H,).
    """
    detections = scene.detections
    there = (("mask", detections.has_masks), ("image", bool(detections.channels)))
    available = frozenset(name for name, known in there if known)
    return summarise(scene.matrix, chosen, len(detections), detections.geometry.ndim, available)
