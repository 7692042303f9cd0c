"""Feature statistics of a prepared movie, to compare it with those that models learned from.

A piece of a tracked movie to recognise it by.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.models.shipped import untrained_model
from bridgetrack.models.statistics import FeatureStatistics, summarise
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import Tracking, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.overlay import draw_overlay
from bridgetrack.tracks.tracks import Tracks

Mask = NDArray[np.bool_]
Picture = NDArray[np.uint8]


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
    return draw_overlay(
        grey,
        below[..., rows, columns],
        _moved(tracking.tracks, rows.start, columns.start),
        frame,
        zoom=max(1, round(_SHOWN / side)),
    )[:: max(1, side // _SHOWN), :: max(1, side // _SHOWN)]


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


def _moved(tracks: Tracks, top: int, left: int) -> Tracks:
    """The same tracks with positions from the corner of the window."""
    nodes = tracks.nodes
    return replace(tracks, nodes=nodes.assign(y=nodes["y"] - top, x=nodes["x"] - left))
