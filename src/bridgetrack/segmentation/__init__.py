"""Segmentation: built in, taught by strokes, by Cellpose or by StarDist."""

from bridgetrack.segmentation.backends import available_backends, make_segmenter, segment_frame
from bridgetrack.segmentation.builtin import estimate_diameter, estimate_foreground
from bridgetrack.segmentation.movie import (
    SegmentedFrame,
    movie_settings,
    probability_movie,
    segment_lazily,
    segment_movie,
    segment_to_file,
)
from bridgetrack.segmentation.pixels import (
    PixelModel,
    load_pixel_model,
    save_pixel_model,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.strokes import learn_pixels, uncertain_pixels

__all__ = [
    "PixelModel",
    "SegmentationSettings",
    "SegmentedFrame",
    "available_backends",
    "estimate_diameter",
    "estimate_foreground",
    "learn_pixels",
    "load_pixel_model",
    "make_segmenter",
    "movie_settings",
    "probability_movie",
    "save_pixel_model",
    "segment_frame",
    "segment_lazily",
    "segment_movie",
    "segment_to_file",
    "uncertain_pixels",
]
