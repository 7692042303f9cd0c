"""Segmentation: built in, taught by strokes, by Cellpose or by StarDist."""

from .backends import (
    available_backends as available_backends,
)
from .backends import (
    make_segmenter as make_segmenter,
)
from .backends import (
    segment_frame as segment_frame,
)
from .builtin import (
    estimate_diameter as estimate_diameter,
)
from .builtin import (
    estimate_foreground as estimate_foreground,
)
from .movie import (
    SegmentedFrame as SegmentedFrame,
)
from .movie import (
    movie_settings as movie_settings,
)
from .movie import (
    probability_movie as probability_movie,
)
from .movie import (
    segment_lazily as segment_lazily,
)
from .movie import (
    segment_movie as segment_movie,
)
from .movie import (
    segment_to_file as segment_to_file,
)
from .pixels import (
    PixelModel as PixelModel,
)
from .pixels import (
    load_pixel_model as load_pixel_model,
)
from .pixels import (
    save_pixel_model as save_pixel_model,
)
from .settings import SegmentationSettings as SegmentationSettings
from .strokes import learn_pixels as learn_pixels
from .strokes import uncertain_pixels as uncertain_pixels
