"""The Tracks layer of one viewer, kept in step with the tracking."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Tracks as TracksLayer

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.results import TracksData
from bridgetrack.session.session import Session
from bridgetrack.ui.background import EventLoopQueue, Turns
from bridgetrack.ui.layers import KEY, add_below, find_role, placed_like, tag
from bridgetrack.ui.looks import Looks, colormap_of

SHADE = "colour"
"""Feature of the layer that it is coloured by."""


class ResultLayer:
    """Shows the session's tracks as a Tracks layer, from the first call of `show` on."""

    def __init__(self, viewer: Any, session: Session, looks: Looks, turns: Turns) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session, self._looks = session, looks
        self._shown: TracksData | None = None
        self._waits = False  # whether the layer is still to be drawn for the first time
        self._queue = EventLoopQueue(turns)
        self.wanted = self.layer is not None  # whether the tracks are shown
        if self.wanted:
            session.tracking_changed.connect(self._follow)
        looks.colour_changed.connect(self._recolour)

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
        self._looks.colour_changed.disconnect(self._recolour)
        if self.wanted:
            self._session.tracking_changed.disconnect(self._follow)

    def _recolour(self) -> None:
        layer, found = self.layer, self._shown
        tracking = self._session.tracking
        # Where the tracks have changed since, `_follow` brings the colours.
        if layer is None or found is None or tracking is None:
            return
        if found is self._session.layer_data:
            self._paint(layer, found, tracking)

    def _paint(self, layer: Any, found: TracksData, tracking: Tracking) -> None:
        features, shades = self._coloured(found, tracking)
        layer.features = features
        layer.colormaps_dict = shades
        layer.color_by = SHADE

    def _coloured(
        self, found: TracksData, tracking: Tracking
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Features of the layer with the shade of every row, and the colours of the shades."""
        colours = self._looks.colouring(tracking.tracks)
        return found.features.assign(**{SHADE: colours.shades}), {
            SHADE: colormap_of(colours.palette)
        }

    def _follow(self) -> None:
        """Add the layer over the segmentation, or bring it up to date."""
        self._queue.stop()
        session = self._session
        tracking = session.tracking
        labels = None if session.movie is None else session.movie.layers[1]
        if not self.wanted or self._viewer is None or tracking is None or labels is None:
            return
        fresh: list[Any] = []

        def convert() -> None:
            _ = session.layer_data

        def shade() -> None:
            self._looks.colouring(tracking.tracks)

        def build() -> None:
            found = session.layer_data
            if found is None:
                return
            if self.layer is None:
                self._shown = found
                fresh.append(self._made(found, tracking, labels))
            else:
                self._set_data(self.layer, found, tracking)

        def add() -> None:
            if fresh and labels in self._viewer.layers:
                self._waits = True
                add_below(self._viewer, fresh[0], "marks", "events")
            elif self.layer is not None and self._shown is not None:
                self._set_graph(self.layer, self._shown, tracking)
                self.layer.metadata[KEY]["tracks"] = tracking.tracks

        def draw() -> None:
            # Not only a fresh one: other tracks may have come between adding it and drawing it.
            if self._waits and self.layer is not None:
                self._waits, self.layer.visible = False, True

        self._queue.begin(convert, shade, build, add, draw)

    def _set_data(self, layer: Any, found: TracksData, tracking: Tracking) -> None:
        before, self._shown = self._shown, found
        if before is not None and np.array_equal(before.data, found.data):
            return
        # Tracks of the old graph may be gone, which napari refuses.
        layer.graph = {}
        layer.data = found.data
        self._paint(layer, found, tracking)

    def _set_graph(self, layer: Any, found: TracksData, tracking: Tracking) -> None:
        self._paint(layer, found, tracking)
        if {int(k): list(v) for k, v in layer.graph.items()} != found.graph:
            layer.graph = found.graph

    def _made(self, found: TracksData, tracking: Tracking, labels: Any) -> TracksLayer:
        features, shades = self._coloured(found, tracking)
        return TracksLayer(
            found.data, features=features, graph=found.graph, name="Tracks",
            metadata=tag("tracks", tracks=tracking.tracks), tail_length=8, tail_width=3,
            blending="translucent", colormaps_dict=shades, color_by=SHADE,
            visible=False, **placed_like(labels),
        )  # fmt: skip
