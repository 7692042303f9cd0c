"""The scale of a movie's layers: set for all that lie on it, and there again on opening."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.session.answers import autosave_path, project_answers
from bridgetrack.session.settings import Scale, load_settings
from bridgetrack.ui.layers import (
    IMPORTED,
    KEY,
    ROLE,
    detections_of,
    is_points,
    kind_of,
    labels_of,
    movie_of,
    name_of,
    path_of,
    place_like,
    placed_like,
    role_of,
    scale_of,
    tags_of,
)


def set_scale(viewer: Any, image: Any, labels: Any, scale: Scale) -> None:
    """Give the layers of a movie a scale; one of them may be None.

    Other channels and what is drawn over the movie stay where they are on it.
    """
    shown = [layer for layer in (image, labels) if layer is not None]
    beside = [x for x in viewer.layers if _drawn_on(shown[0], x)]
    layers = list(dict.fromkeys([*shown, *beside]))
    others = [x for x in viewer.layers if x not in layers]
    # In pixels beside others that are, see `_in_one_unit`.
    known = scale.unit if set(scale.pixel) == {1.0} or not any(map(_in_pixels, others)) else "pixel"
    for layer in layers:
        axes = [("pixel", 1.0), *((known, side) for side in scale.pixel)][-layer.ndim :]
        layer.units, layer.scale = zip(*axes, strict=True)
        layer.metadata[KEY] = {**tags_of(layer), "frame_interval": scale.minutes}


def share_scale(image: Any, labels: Any) -> None:
    """Where one of a movie's layers says how large a pixel is, the other says nothing else.

    Masks rarely know, and would else be drawn beside the cells that they show. Where both say the
    same, masks that were opened here are drawn in the units of the image.
    """
    if image is None or labels is None or not _may_lie_on(labels, image):
        return
    for layer, other in ((image, labels), (labels, image)):
        if _unscaled(layer) and not _unscaled(other):
            place_like(layer, other)
            tags, interval = tags_of(layer), tags_of(other).get("frame_interval")
            layer.metadata[KEY] = {**tags, "frame_interval": tags.get("frame_interval") or interval}
    (here, unit), (there, theirs) = scale_of(image), scale_of(labels)
    if role_of(labels) and unit == theirs and all(map(math.isclose, here, there)):
        place_like(labels, image)


def fit_in(layers: Sequence[Any], made: Sequence[Any], image: Any = None) -> None:
    """Draw layers that are to be added where their movie is, in the units of all others.

    Before they are added: napari warns as soon as it draws others. Their movie is among them, or
    it is `image`, or one that is there and has the same pixels.
    """
    own = next((x for x in made if kind_of(x) == "image"), image)
    for layer in made:
        if role_of(layer) in _OF_A_MOVIE:
            share_scale(own or _movie_like(layers, layer), layer)
    _in_one_unit([*layers, *made])


_OF_A_MOVIE = frozenset({"labels", ROLE, IMPORTED})
"""Roles of layers that show the cells of a movie, and may be read without it."""


def _movie_like(layers: Sequence[Any], layer: Any) -> Any | None:
    """The movie that a layer may lie on, where those that are there agree about their scale."""
    there = [x for x in layers if kind_of(x) == "image" and _may_lie_on(layer, x)]
    return there[0] if len({scale_of(x) for x in there}) == 1 else None


def _in_one_unit(layers: Sequence[Any]) -> None:
    """Draw what was scaled here in pixels beside layers that have no units."""
    scaled = [x for x in layers if not _in_pixels(x)]
    if len(scaled) < len(layers) and all(map(_may_be_in_pixels, scaled)):
        for layer in scaled:
            layer.units = [u if str(u) != "micrometer" else "pixel" for u in layer.units]


def _may_be_in_pixels(layer: Any) -> bool:
    """Whether this was scaled here, and as much is known of it without units."""
    sides = {s for s, u in zip(layer.scale, layer.units, strict=True) if str(u) == "micrometer"}
    return bool(tags_of(layer)) and sides != {1.0}


def _in_pixels(layer: Any) -> bool:
    """Whether napari draws a layer in pixels of space."""
    return "pixel" in {str(unit) for unit in layer.units[-2:]}


def _unscaled(layer: Any) -> bool:
    """Whether a layer is drawn in pixels, as one of which nobody said how large they are."""
    return set(layer.scale) == {1.0} and {str(unit) for unit in layer.units} == {"pixel"}


def _may_lie_on(layer: Any, image: Any) -> bool:
    """Whether a layer can show cells of a movie: masks have the same pixels."""
    if layer.ndim != image.ndim:
        return False
    return kind_of(layer) not in ("labels", "image") or np.array_equal(
        layer.extent.data, image.extent.data
    )


def _drawn_on(movie: Any, layer: Any) -> bool:
    """Whether a layer lies on the pixels of a movie's layer, or on those of one of its frames."""
    fewer = movie.ndim - layer.ndim
    if fewer not in (0, 1):
        return False
    here, there = placed_like(layer), placed_like(movie, still=bool(fewer))
    return all(here[name] == there[name] for name in ("scale", "translate", "units"))


def take_scale(viewer: Any, image: Any, labels: Any) -> None:
    """Give layers the scale that was set for their movie earlier, and each that of the other.

    Each may be None.
    """
    if not _take_kept(viewer, image, labels):
        share_scale(image, labels)
        # What was set took the place of what the masks alone said.
        _take_kept(viewer, image, labels)


def _take_kept(viewer: Any, image: Any, labels: Any) -> bool:
    """Give layers the scale that was set for their movie earlier; whether there was one."""
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
        kept = load_settings(answers)
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
