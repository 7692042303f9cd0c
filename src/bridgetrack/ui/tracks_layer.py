"""The Tracks layer of one viewer, kept in step with the tracking."""

from __future__ import annotations

import colorsys
import weakref
from typing import Any

import numpy as np
from napari.layers import Tracks as TracksLayer
from napari.utils.colormaps import Colormap

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.results import TracksData
from bridgetrack.session.session import Session
from bridgetrack.ui.background import EventLoopQueue
from bridgetrack.ui.layers import KEY, add_below, find_role, placed_like, tag

COLOURINGS = {"family": "lineage", "certainty": "certainty"}


def colormaps() -> dict[str, Colormap]:
    """Colours by what tracks are coloured by, see `COLOURINGS`."""
    sure = np.array([[0.84, 0.37, 0.0, 1], [0.94, 0.89, 0.26, 1], [0.34, 0.71, 0.91, 1]])
    hues = np.linspace(0, 1, 25)
    wheel = np.array([[*colorsys.hsv_to_rgb(h % 1.0, 0.75, 1.0), 1.0] for h in hues])
    return {
        "certainty": Colormap(sure, name="bridgetrack certainty"),
        "lineage": Colormap(wheel, name="bridgetrack families"),
    }


class ResultLayer:
    """Shows the session's tracks as a Tracks layer, from the first call of `show` on."""

    def __init__(self, viewer: Any, session: Session) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session = session
        self._shown: TracksData | None = None
        self._colour = "family"
        self._queue = EventLoopQueue()
        self.wanted = self.layer is not None  # whether the tracks are shown
        if self.wanted:
            session.tracking_changed.connect(self._follow)

    @property
    def _viewer(self) -> Any:
        return self._viewer_ref()

    @property
    def layer(self) -> Any | None:
        """The layer, None until there is one."""
        viewer = self._viewer
        return None if viewer is None else find_role(viewer.layers, "tracks")

    def show(self) -> None:
        """Show the present tracks and all that follow."""
        if not self.wanted:
            self.wanted = True
            self._session.tracking_changed.connect(self._follow)
        self._follow()

    def close(self) -> None:
        """Let go of the viewer."""
        self._queue.stop()
        if self.wanted:
            self._session.tracking_changed.disconnect(self._follow)

    def colour_by(self, colour: str) -> None:
        """Colour by family or by certainty."""
        self._colour = colour
        if self.layer is not None:
            self.layer.color_by = COLOURINGS[colour]

    def _follow(self) -> None:
        """Add the layer over the segmentation, or bring it up to date.

        In parts, with turns of the event loop between them: each takes napari a moment.
        """
        self._queue.stop()
        session = self._session
        tracking = session.tracking
        labels = None if session.movie is None else session.movie.layers[1]
        if not self.wanted or self._viewer is None or tracking is None or labels is None:
            return
        fresh: list[Any] = []

        def convert() -> None:
            _ = session.layer_data

        def build() -> None:
            found = session.layer_data
            if found is None:
                return
            if self.layer is None:
                self._shown = found
                fresh.append(_layer(found, tracking, self._colour, labels))
            else:
                self._set_data(self.layer, found)

        def add() -> None:
            if fresh and labels in self._viewer.layers:
                add_below(self._viewer, fresh[0], "marks", "events")
            elif self.layer is not None and self._shown is not None:
                self._set_graph(self.layer, self._shown)
                self.layer.metadata[KEY]["tracks"] = tracking.tracks

        def draw() -> None:
            if fresh:
                fresh[0].visible = True

        self._queue.begin(convert, build, add, draw)

    def _set_data(self, layer: Any, found: TracksData) -> None:
        before, self._shown = self._shown, found
        if before is not None and np.array_equal(before.data, found.data):
            return
        colour = layer.color_by
        # Tracks of the old graph may be gone, which napari refuses.
        layer.graph = {}
        layer.data = found.data
        layer.features = found.features
        layer.color_by = colour

    def _set_graph(self, layer: Any, found: TracksData) -> None:
        colour = layer.color_by
        layer.features = found.features
        layer.color_by = colour
        if {int(k): list(v) for k, v in layer.graph.items()} != found.graph:
            layer.graph = found.graph


def _layer(found: TracksData, tracking: Tracking, colour: str, labels: Any) -> TracksLayer:
    return TracksLayer(
        found.data, features=found.features, graph=found.graph, name="Tracks",
        metadata=tag("tracks", tracks=tracking.tracks), tail_length=8, tail_width=3,
        blending="translucent", colormaps_dict=colormaps(), color_by=COLOURINGS[colour],
        visible=False, **placed_like(labels),
    )  # fmt: skip
