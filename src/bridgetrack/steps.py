"""Long work in steps, as ``bt.steps``: generators that yield progress and return their result.

``bt.run`` drives them; a program with a window takes one step at a time. Closing one ends the work.
"""

from bridgetrack.active.suggester import suggest_steps as suggest
from bridgetrack.pipeline.scene import measure, prepare
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.pipeline.tracking import track_steps as track
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.segmentation.movie import segment_movie
from bridgetrack.training.sources import open_source
from bridgetrack.training.train import strategy_steps as train_with_sources
from bridgetrack.training.train import train_steps as train

__all__ = [
    "Progress",
    "Steps",
    "measure",
    "open_source",
    "prepare",
    "run",
    "segment_movie",
    "suggest",
    "track",
    "track_scene",
    "train",
    "train_with_sources",
]
