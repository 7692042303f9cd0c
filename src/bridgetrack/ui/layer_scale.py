"""The scale of a movie's layers: set for all that lie on it, and there again on opening."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.session.answers import autosave_path, project_answers, settings_path
from bridgetrack.session.kept_settings import Scale, load_settings
from bridgetrack.ui.layers import (
    KEY,
    detections_of,
    is_points,
    kind_of,
    labels_of,
    movie_of,
    name_of,
    path_of,
    place_like,
    placed_like,
    tags_of,
)


def set_scale(viewer: Any, image: Any, labels: Any, scale: Scale) -> None:
    """Give the layers of a movie a scale; one of them may be None.

    Other channels and what is drawn over the movie stay where they are on it.
    """
    shown = [layer for layer in (image, labels) if layer is not None]
    beside = [x for x in viewer.layers if _drawn_on(shown[0], x)]
    for layer in dict.fromkeys([*shown, *beside]):
        axes = [("pixel", 1.0), *((scale.unit, side) for side in scale.pixel)][-layer.ndim :]
        layer.units, layer.scale = zip(*axes, strict=True)
    for layer in shown:
        layer.metadata[KEY] = {**tags_of(layer), "frame_interval": scale.minutes}


def share_scale(image: Any, labels: Any) -> None:
    """Where one of a movie's layers says how large a pixel is, the other says nothing else.

    Masks rarely know, and would else be drawn beside the cells that they show.
    """
    if image is None or labels is None or image.ndim != labels.ndim:
        return
    for layer, other in ((image, labels), (labels, image)):
        if _unscaled(layer) and not _unscaled(other):
            place_like(layer, other)
            tags, interval = tags_of(layer), tags_of(other).get("frame_interval")
            layer.metadata[KEY] = {**tags, "frame_interval": tags.get("frame_interval") or interval}


def _unscaled(layer: Any) -> bool:
    """Whether a layer is drawn in pixels, as one of which nobody said how large they are."""
    return set(layer.scale) == {1.0} and {str(unit) for unit in layer.units} == {"pixel"}


def _drawn_on(movie: Any, layer: Any) -> bool:
    """Whether a layer lies on the pixels of a movie's layer, or on those of one of its frames."""
    fewer = movie.ndim - layer.ndim
    if fewer not in (0, 1):
        return False
    here, there = placed_like(layer), placed_like(movie, still=bool(fewer))
    return all(here[name] == there[name] for name in ("scale", "translate", "units"))


def take_scale(viewer: Any, image: Any, labels: Any) -> bool:
    """Give layers the scale that was set for their movie earlier; whether there was one.

    Each may be None. Not where the movie says another scale by now than it did then.
    """
    first = labels if image is None else image
    if first is None or viewer is None:
        return False
    try:
        geometry = _geometry_of(first)
        project = None if labels is None else tags_of(labels).get("project")
        answers = (
            autosave_path(path_of(first), name_of(first), geometry) if project is None
            else project_answers(Path(str(project)), geometry)
        )  # fmt: skip
        kept = load_settings(settings_path(answers))
    except BridgetrackError:
        return False  # told where the movie is opened
    if kept.read is None or kept.given is None or not Scale.of(geometry).like(kept.read):
        return False
    set_scale(viewer, image, labels, kept.given)
    viewer.reset_view()
    return True


def _geometry_of(layer: Any) -> Geometry:
    """Extent and scale of a movie by its image, or else by its cells."""
    if is_points(layer):
        return detections_of(layer).geometry
    return (movie_of if kind_of(layer) == "image" else labels_of)(layer).geometry
