"""Segmentation: built in, by Cellpose or by StarDist."""

from bridgetrack.segmentation.backends import available_backends, make_segmenter, segment_frame
from bridgetrack.segmentation.builtin import estimate_diameter, estimate_foreground
from bridgetrack.segmentation.movie import (
    SegmentedFrame,
    movie_settings,
    segment_lazily,
    segment_movie,
    segment_to_file,
)
from bridgetrack.segmentation.settings import SegmentationSettings

__all__ = [
    "SegmentationSettings",
    "SegmentedFrame",
    "available_backends",
    "estimate_diameter",
    "estimate_foreground",
    "make_segmenter",
    "movie_settings",
    "segment_frame",
    "segment_lazily",
    "segment_movie",
    "segment_to_file",
]
