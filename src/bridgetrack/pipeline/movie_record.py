"""What is kept of a movie beside a model: statistics to compare it by, and a picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import known_of
from bridgetrack.models.shipped import untrained_model
from bridgetrack.models.statistics import FeatureStatistics, summarise
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import Tracking, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.overlay import Picture, draw_overlay

Mask = NDArray[np.bool_]


def statistics_steps(scene: Scene) -> Steps[FeatureStatistics]:
    """Statistics of the events that the hand-set weights find likely.

    Always the same weights, so that movies are comparable whatever they were tracked with.
    Annotated events are honoured.

    Raises
    ------
    ContradictionError
        Where annotations exclude each other.
    """
    yield Progress("Looking at the movie", 0.0)
    tracking = yield from track_scene(scene, untrained_model(scene.matrix.features))
    return statistics_of(scene, tracking.solution.chosen)


def statistics_of(scene: Scene, chosen: Mask) -> FeatureStatistics:
    """Statistics of the chosen events of a movie; `chosen` has the shape (H,)."""
    detections = scene.detections
    ndim, known = detections.geometry.ndim, known_of(detections)
    return summarise(scene.matrix, chosen, len(detections), ndim, known)


_CELLS = 12.0
"""Cell diameters along the side of the piece."""
_SHOWN = 480
"""Pixels along the side of the picture, about."""


def preview_picture(tracking: Tracking, image: Movie | None = None) -> Picture | None:
    """The middle of the cells with their tracks, two thirds into the movie.

    Parameters
    ----------
    tracking
        The tracked movie.
    image
        Its intensities, where there are any.

    Returns
    -------
    Picture or None
        Shape (h, w, 3), at most about 480 pixels along a side; None for a movie without masks.
    """
    labels = tracking.scene.labels
    if labels is None:
        return None
    frame = (2 * labels.n_frames) // 3
    below = labels.channel_frame(frame)
    rows, columns = _window(tracking, frame, below.shape[-2:])
    grey = None if image is None else image.channel_frame(frame)[..., rows, columns]
    side = max(rows.stop - rows.start, columns.stop - columns.start)
    nodes = tracking.tracks.nodes
    nodes = nodes.assign(y=nodes["y"] - rows.start, x=nodes["x"] - columns.start)
    tracks, zoom = replace(tracking.tracks, nodes=nodes), max(1, round(_SHOWN / side))
    picture = draw_overlay(grey, below[..., rows, columns], tracks, frame, zoom=zoom)
    thinned = max(1, side // _SHOWN)
    return picture[::thinned, ::thinned]


def _window(tracking: Tracking, frame: int, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """A square around the middle of the frame's cells, within the frame."""
    detections = tracking.scene.detections
    scale = np.asarray(detections.geometry.scale)[-2:]
    side = max(int(_CELLS * tracking.scene.evidence.motion.diameter / scale.min()), 32)
    here = detections.rows(frame)
    middle = np.asarray(shape) / 2
    if here.stop > here.start:
        middle = np.median(detections.position[here][:, -2:], axis=0) / scale
    highest = np.maximum(np.asarray(shape) - side, 0)
    top, left = np.clip(middle - side / 2, 0, highest).astype(int).tolist()
    return slice(top, min(top + side, shape[0])), slice(left, min(left + side, shape[1]))
