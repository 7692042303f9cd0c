"""The tracks, and the cells in their colours, as layers that follow the tracking."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from napari.layers import Labels
from napari.layers import Tracks as TracksLayer
from napari.utils import DirectLabelColormap
from napari.utils.colormaps import Colormap

from bridgetrack.arrays import Array, Index
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.session import Session
from bridgetrack.tracks.colours import PALETTES, UNKNOWN, Colouring
from bridgetrack.tracks.numbers import coloured_cells, layer_data
from bridgetrack.ui.background import Links
from bridgetrack.ui.layers import add_below, find_role, placed_like, role_of, tag
from bridgetrack.ui.looks import Looks

TRACKS, COLOURED = "tracks", "coloured"
"""Roles of the layers."""

_SHADE = "colour"
"""Feature of the Tracks layer that holds the colours."""

SHOWING = "show tracks"
"""Name of the background work that prepares the layers."""


@dataclass(frozen=True)
class _Shown:
    """Content of the layers."""

    tracking: Tracking
    colours: Colouring
    data: Array  # rows of the Tracks layer
    features: pd.DataFrame
    graph: dict[int, list[int]]
    pixels: Any  # of the coloured cells, None if there are no masks
    numbers: Index  # in the pixels, and their colours
    shades: Array

    @cached_property  # with the attributes that napari computes, in the background
    def label_colours(self) -> DirectLabelColormap:
        """Colours of the numbers in the pixels."""
        known: dict[int | None, Any] = {None: "transparent", 0: "transparent"}
        solid = np.column_stack([self.shades, np.ones(len(self.shades))])
        known |= dict(zip(self.numbers.tolist(), solid, strict=True))
        return DirectLabelColormap(color_dict=known)


class ResultLayers:
    """Shows the session's tracks as lines and as colours of the cells, from `show` on.

    A layer that the user deletes does not come back before the next `show` or the next movie.
    """

    def __init__(self, viewer: Any, session: Session, looks: Looks) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session, self._looks = session, looks
        self._wanted: set[str] = set()  # roles
        self._over: Any = None  # the layer of the cells that they were made for
        self._shown: _Shown | None = None
        self._seen: bool | None = None  # whether lines were in view before they were checked
        self._links = Links()
        self._links.add(session.tracking_changed, self._follow)
        self._links.add(session.movie_changed, self._on_movie)
        self._links.add(session.questions.check.changed, self._follow_check)
        self._links.add(looks.colour_changed, self._follow)
        self._links.add(viewer.layers.events.removed, self._on_removed)

    def show(self) -> None:
        """Show the present tracks and all that follow."""
        self._wanted = {TRACKS, COLOURED}
        self.show_cells(True)
        self._follow()

    def show_cells(self, shown: bool) -> None:
        """Show or hide the colours of the cells: over the image, questions are hard to judge."""
        layer = self._layer(COLOURED)
        if layer is not None:
            layer.visible = shown

    def _follow_check(self) -> None:
        """Hide the lines while tracks are checked, and restore them."""
        layer, running = self._layer(TRACKS), self._session.questions.check.running
        if layer is not None and running == (self._seen is None):
            seen = layer.visible if self._seen is None else self._seen
            layer.visible, self._seen = seen and not running, seen if running else None

    def close(self) -> None:
        """Stop following."""
        self._links.cut()

    def _layer(self, role: str) -> Any | None:
        viewer = self._viewer_ref()
        return None if viewer is None else find_role(viewer.layers, role)

    def _on_removed(self, event: Any) -> None:
        self._wanted.discard(role_of(event.value))

    def _on_movie(self) -> None:
        """The layers of another movie go; those of this one are made above its layers."""
        movie, viewer = self._session.movie, self._viewer_ref()
        if viewer is None or (movie is not None and movie.layers[1] is self._over):
            return
        wanted = {TRACKS, COLOURED} if self._wanted or self._over is not None else set[str]()
        for layer in filter(None, map(self._layer, (TRACKS, COLOURED))):
            viewer.layers.remove(layer)
        self._wanted = wanted

    def _follow(self) -> None:
        """Show the layers, or bring them up to date."""
        session, viewer = self._session, self._viewer_ref()
        session.cancel(SHOWING)
        tracking = session.tracking
        cells = None if session.movie is None else session.movie.layers[1]
        if not self._wanted or viewer is None or tracking is None or cells is None:
            return
        frame = max(viewer.dims.current_step[0], 0)

        def draw(found: _Shown) -> None:
            if cells in viewer.layers:
                self._draw(viewer, cells, found)

        session.run(SHOWING, lambda: _prepared(tracking, self._looks, frame), draw)

    def _draw(self, viewer: Any, cells: Any, found: _Shown) -> None:
        before, self._shown = self._shown, found
        self._over = cells
        if COLOURED in self._wanted and found.pixels is not None:
            self._draw_cells(viewer, cells, found, before)
        if TRACKS in self._wanted:
            self._draw_tracks(viewer, cells, found)
            self._follow_check()

    def _draw_tracks(self, viewer: Any, cells: Any, found: _Shown) -> None:
        layer = self._layer(TRACKS)
        features = found.features.assign(**{_SHADE: found.colours.shades})
        palette = found.colours.palette
        shades = Colormap(
            PALETTES[palette], name=f"bridgetrack {palette}", nan_color=(*UNKNOWN, 1.0)
        )
        if layer is None:
            layer = TracksLayer(
                found.data, features=features, graph=found.graph, name="Tracks",
                metadata=tag(TRACKS), tail_length=8, tail_width=3, blending="translucent",
                colormaps_dict={_SHADE: shades}, color_by=_SHADE, **placed_like(cells),
            )  # fmt: skip
            add_below(viewer, layer, "marks", "events")
        else:
            if not np.array_equal(layer.data, found.data):
                # Tracks of the old graph may no longer exist, which napari refuses, and with other
                # data it forgets the features, of which it would warn.
                layer.graph, layer.color_by = {}, "track_id"
                layer.data = found.data
            layer.features = features
            layer.colormaps_dict = {_SHADE: shades}
            layer.color_by = _SHADE
            layer.graph = found.graph

    def _draw_cells(self, viewer: Any, cells: Any, found: _Shown, before: _Shown | None) -> None:
        layer = self._layer(COLOURED)
        if layer is None:
            layer = Labels(
                found.pixels, name="Cells by track", metadata=tag(COLOURED), opacity=0.5,
                colormap=found.label_colours, **placed_like(cells),
            )  # fmt: skip
            layer.editable = False
            add_below(viewer, layer, TRACKS, "marks", "events")
            return
        # Drawn again at the end only.
        seen, layer.visible = layer.visible, False
        layer.data = found.pixels
        if (
            before is None
            or not np.array_equal(before.numbers, found.numbers)
            or not np.array_equal(before.shades, found.shades)
        ):
            layer.colormap = found.label_colours
        layer.visible = seen


def _prepared(tracking: Tracking, looks: Looks, frame: int) -> Steps[_Shown]:
    """Compute the content of the layers without touching them.

    Done on the main thread, reading the frame in view, and the code that napari compiles for its
    first colours, would block the window.
    """
    yield Progress("Colouring the tracks", 0.0)
    colours, lines = looks.colouring(tracking.tracks), layer_data(tracking.tracks)
    cells, numbers, shades = coloured_cells(tracking.scene.labels, tracking.tracks, colours)
    pixels = None
    if cells is not None:
        chunks = tuple((1,) * n if k < 1 else (n,) for k, n in enumerate(cells.shape))
        pixels = da.from_array(cells, chunks=chunks, name=False, asarray=False)
    found = _Shown(tracking, colours, *lines, pixels, numbers, shades)
    yield Progress("Colouring the tracks", 0.5)
    if pixels is not None:
        for kind in (pixels.dtype, np.uint8):  # of pixels, and of a layer that is not shown yet
            found.label_colours.map(np.zeros((2, 2), kind))
        pixels[min(frame, len(pixels) - 1)].compute()
    return found
