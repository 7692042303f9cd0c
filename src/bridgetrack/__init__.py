"""Learn to track dividing cells from a few clicks.

The names below are the public interface; what they need is imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridgetrack.annotations.annotation_set import AnnotationSet
    from bridgetrack.annotations.store import load_annotations, save_annotations
    from bridgetrack.annotations.truth import draw as draw_annotations
    from bridgetrack.detections.table import Detections
    from bridgetrack.errors import BridgetrackError
    from bridgetrack.evaluation.evaluate import evaluate
    from bridgetrack.evaluation.match import match_detections
    from bridgetrack.evaluation.true_events import true_events
    from bridgetrack.export.results import write_results
    from bridgetrack.importing.ctc import read_ctc
    from bridgetrack.importing.detections_csv import read_detections_csv
    from bridgetrack.importing.geff import read_geff
    from bridgetrack.importing.tracks_csv import read_tracks_csv
    from bridgetrack.models.model import Model, load_model, save_model
    from bridgetrack.models.shipped import shipped_model, untrained_model
    from bridgetrack.movie.geometry import Geometry
    from bridgetrack.movie.movie import Movie
    from bridgetrack.movie.opening import open_labels, open_movie
    from bridgetrack.movie.writers import save_labels
    from bridgetrack.pipeline.scene import Scene, prepare
    from bridgetrack.pipeline.summary import count_events, least_certain
    from bridgetrack.pipeline.tracking import Tracking, track, track_scene, track_steps
    from bridgetrack.progress import Progress, run
    from bridgetrack.segmentation.backends import segment_frame
    from bridgetrack.segmentation.movie import segment_lazily, segment_movie, segment_to_file
    from bridgetrack.segmentation.settings import SegmentationSettings
    from bridgetrack.session.session import Session
    from bridgetrack.simulation.folder import sample_folder
    from bridgetrack.simulation.movie import simulate
    from bridgetrack.simulation.settings import SimulationSettings
    from bridgetrack.tracks.overlay import draw_montage, draw_overlay
    from bridgetrack.tracks.tracks import Tracks
    from bridgetrack.training.options import TrainingOptions
    from bridgetrack.training.train import strategy_steps, train_steps

__all__ = [
    "AnnotationSet",
    "BridgetrackError",
    "Detections",
    "Geometry",
    "Model",
    "Movie",
    "Progress",
    "Scene",
    "SegmentationSettings",
    "Session",
    "SimulationSettings",
    "Tracking",
    "Tracks",
    "TrainingOptions",
    "count_events",
    "draw_annotations",
    "draw_montage",
    "draw_overlay",
    "evaluate",
    "least_certain",
    "load_annotations",
    "load_model",
    "match_detections",
    "open_labels",
    "open_movie",
    "prepare",
    "read_ctc",
    "read_detections_csv",
    "read_geff",
    "read_tracks_csv",
    "run",
    "sample_folder",
    "save_annotations",
    "save_labels",
    "save_model",
    "segment_frame",
    "segment_lazily",
    "segment_movie",
    "segment_to_file",
    "shipped_model",
    "simulate",
    "strategy_steps",
    "track",
    "track_scene",
    "track_steps",
    "train_steps",
    "true_events",
    "untrained_model",
    "write_results",
]

_HOME = {
    "AnnotationSet": "annotations.annotation_set",
    "draw_annotations": "annotations.truth",
    "load_annotations": "annotations.store",
    "save_annotations": "annotations.store",
    "Detections": "detections.table",
    "BridgetrackError": "errors",
    "evaluate": "evaluation.evaluate",
    "match_detections": "evaluation.match",
    "true_events": "evaluation.true_events",
    "write_results": "export.results",
    "read_ctc": "importing.ctc",
    "read_detections_csv": "importing.detections_csv",
    "read_geff": "importing.geff",
    "read_tracks_csv": "importing.tracks_csv",
    "Model": "models.model",
    "shipped_model": "models.shipped",
    "load_model": "models.model",
    "save_model": "models.model",
    "untrained_model": "models.shipped",
    "Geometry": "movie.geometry",
    "Movie": "movie.movie",
    "open_labels": "movie.opening",
    "open_movie": "movie.opening",
    "save_labels": "movie.writers",
    "Progress": "progress",
    "run": "progress",
    "Scene": "pipeline.scene",
    "prepare": "pipeline.scene",
    "count_events": "pipeline.summary",
    "least_certain": "pipeline.summary",
    "Tracking": "pipeline.tracking",
    "track": "pipeline.tracking",
    "track_scene": "pipeline.tracking",
    "track_steps": "pipeline.tracking",
    "segment_frame": "segmentation.backends",
    "segment_lazily": "segmentation.movie",
    "segment_movie": "segmentation.movie",
    "segment_to_file": "segmentation.movie",
    "SegmentationSettings": "segmentation.settings",
    "simulate": "simulation.movie",
    "sample_folder": "simulation.folder",
    "Session": "session.session",
    "SimulationSettings": "simulation.settings",
    "draw_montage": "tracks.overlay",
    "draw_overlay": "tracks.overlay",
    "Tracks": "tracks.tracks",
    "TrainingOptions": "training.options",
    "strategy_steps": "training.train",
    "train_steps": "training.train",
}
_ELSEWHERE = {"draw_annotations": "draw"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from bridgetrack.files import program_version

        return program_version()
    if name not in _HOME:
        raise AttributeError(f"module 'bridgetrack' has no attribute {name!r}")
    module = import_module(f"bridgetrack.{_HOME[name]}")
    value = getattr(module, _ELSEWHERE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
