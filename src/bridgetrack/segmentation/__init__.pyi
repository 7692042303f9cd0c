"""Segmentation: built in, or by Cellpose."""

from .backends import available_backends as available_backends
from .backends import make_segmenter as make_segmenter
from .backends import segment_frame as segment_frame
from .builtin import estimate_diameter as estimate_diameter
from .builtin import estimate_foreground as estimate_foreground
from .movie import SegmentedFrame as SegmentedFrame
from .movie import movie_settings as movie_settings
from .movie import segment_movie as segment_movie
from .settings import SegmentationSettings as SegmentationSettings
