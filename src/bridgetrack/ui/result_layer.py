"""The Tracks layer of one viewer, kept in step with the tracking."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Tracks as TracksLayer
from napari.utils.colormaps import Colormap

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.ui.layers import KEY, find_role, placed_like, tag
from bridgetrack.ui.tracks_layer import TracksData, to_layer_data

COLOURINGS = {"family": "lineage", "certainty": "certainty"}


def _colormaps() -> dict[str, Colormap]:
    sure = np.array([[0.84, 0.37, 0.0, 1], [0.94, 0.89, 0.26, 1], [0.34, 0.71, 0.91, 1]])
    wheel = np.array([_hue(h) for h in np.linspace(0, 1, 25)])
    return {
        "certainty": Colormap(sure, name="bridgetrack certainty"),
        "lineage": Colormap(wheel, name="bridgetrack families"),
    }


def _hue(h: float) -> list[float]:
    """A clear colour around the wheel, darker and paler in turns."""
    import colorsys

    return [*colorsys.hsv_to_rgb(h % 1.0, 0.75, 1.0), 1.0]


class ResultLayer:
    """Shows a tracking as a Tracks layer."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._shown: TracksData | None = None

    @property
    def layer(self) -> Any | None:
        """The layer, None until there is one."""
        return find_role(self._viewer.layers, "tracks")

    def show(self, tracking: Tracking, colour: str, labels: Any) -> None:
        """Add the layer over the segmentation `labels`, or bring it up to date."""
        found = to_layer_data(tracking.tracks)
        layer = self.layer
        if layer is None:
            self._add(found, tracking, colour, labels)
        else:
            self._update(layer, found)
            layer.metadata[KEY]["tracks"] = tracking.tracks
        self._shown = found

    def _add(self, found: TracksData, tracking: Tracking, colour: str, labels: Any) -> None:
        active = self._viewer.layers.selection.active
        layer = TracksLayer(
            found.data, features=found.features, graph=found.graph, name="Tracks",
            metadata=tag("tracks", tracks=tracking.tracks), tail_length=8, tail_width=3,
            blending="translucent", colormaps_dict=_colormaps(), color_by=COLOURINGS[colour],
            **placed_like(labels),
        )  # fmt: skip
        self._viewer.add_layer(layer)
        if active is not None and active in self._viewer.layers:
            self._viewer.layers.selection.active = active

    def _update(self, layer: Any, found: TracksData) -> None:
        before = self._shown
        same = before is not None and np.array_equal(before.data, found.data)
        if before is not None and same and before.graph == found.graph:
            layer.features = found.features
            return
        colour = layer.color_by
        layer.graph = {}
        layer.data = found.data
        layer.features = found.features
        layer.graph = found.graph
        layer.color_by = colour

    def colour_by(self, colour: str) -> None:
        """Colour by family or by certainty."""
        layer = self.layer
        if layer is not None:
            layer.color_by = COLOURINGS[colour]
