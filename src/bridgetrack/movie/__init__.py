"""Movies: opened lazily, brought in order, written frame by frame."""

from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import (
    Movie,
    as_labels,
    check_same_extent,
    label_frame,
    looks_like_labels,
)
from bridgetrack.movie.opening import open_labels, open_movie
from bridgetrack.movie.writers import label_writer, save_labels

__all__ = [
    "Geometry",
    "Movie",
    "as_labels",
    "check_same_extent",
    "label_frame",
    "label_writer",
    "looks_like_labels",
    "open_labels",
    "open_movie",
    "save_labels",
]
