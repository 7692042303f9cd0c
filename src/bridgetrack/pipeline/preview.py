"""A piece of a tracked movie to recognise it by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.overlay import draw_overlay

Picture = NDArray[np.uint8]

_SIDE = 240
"""Pixels of the movie along the side of the piece."""


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
        Shape (h, w, 3); None for a movie without masks and image.
    """
    labels = tracking.scene.labels
    if labels is None:
        return None
    frame = (2 * labels.n_frames) // 3
    shown = None if image is None else image.channel_frame(frame)
    picture = draw_overlay(shown, labels.channel_frame(frame), tracking.tracks, frame, zoom=2)
    return _piece(picture, tracking, frame)


def _piece(picture: Picture, tracking: Tracking, frame: int) -> Picture:
    """A square around the middle of the frame's cells."""
    detections = tracking.scene.detections
    rows = detections.rows(frame)
    scale = np.asarray(detections.geometry.scale)
    side = 2 * _SIDE
    middle = np.asarray(picture.shape[:2]) / 2
    if rows.stop > rows.start:
        middle = 2 * np.median((detections.position[rows] / scale)[:, -2:], axis=0)
    highest = np.maximum(np.asarray(picture.shape[:2]) - side, 0)
    top, left = np.clip(middle - _SIDE, 0, highest).astype(int).tolist()
    return picture[top : top + side, left : left + side]
