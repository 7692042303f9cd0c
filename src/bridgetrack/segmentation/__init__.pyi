"""Segmentation: built in, or by Cellpose."""

from .builtin import estimate_diameter as estimate_diameter
from .builtin import estimate_foreground as estimate_foreground
from .segment import available_backends as available_backends
from .segment import segment_frame as segment_frame
from .settings import SegmentationSettings as SegmentationSettings
