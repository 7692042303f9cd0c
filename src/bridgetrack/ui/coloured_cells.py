"""The cells in the colours of their tracks: a Labels layer kept in step with the tracking."""

from __future__ import annotations

import weakref
from typing import Any

import dask.array as da
import numpy as np
from napari.layers import Labels
from napari.utils import DirectLabelColormap

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.results import CellsByTrack, TracksData
from bridgetrack.session.session import Session
from bridgetrack.ui.background import EventLoopQueue
from bridgetrack.ui.layers import add_below, find_role, placed_like, role_of, tag
from bridgetrack.ui.tracks_layer import COLOURINGS, colormaps

COLOURED = "coloured"
"""Role of the layer."""


def _warm_up() -> Steps[None]:
    """Colour a pixel, for which napari compiles code for seconds; no layer is touched."""
    yield Progress("Getting ready", 0.0)
    background: dict[int | None, Any] = {None: "transparent", 0: "transparent", 1: "white"}
    DirectLabelColormap(color_dict=background).map(np.zeros((2, 2), np.int32))


class ColouredCells:
    """Shows the masks coloured by track, from `show` until `hide`."""

    def __init__(self, viewer: Any, session: Session) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session = session
        self._queue = EventLoopQueue()
        self._over: Any = None  # the layer of the cells that it was made for
        self._colour = "family"
        self.wanted = self._warm = False
        session.tracking_changed.connect(self._follow)
        session.movie_changed.connect(self._on_movie)
        viewer.layers.events.removed.connect(self._on_removed)

    @property
    def layer(self) -> Any | None:
        """The layer, None until there is one."""
        viewer = self._viewer_ref()
        return None if viewer is None else find_role(viewer.layers, COLOURED)

    def show(self) -> None:
        """Show the cells by their present tracks and all that follow."""
        if not self.wanted:
            self.wanted = True
            self._follow()

    def colour_by(self, colour: str) -> None:
        """Colour by family, or by the least certain event of each track."""
        self._colour = colour
        self._follow()

    def hide(self) -> None:
        """Take the layer away."""
        self.wanted = False
        self._queue.stop()
        self._remove()

    def close(self) -> None:
        """Let go of the viewer."""
        self._queue.stop()
        self._session.tracking_changed.disconnect(self._follow)
        self._session.movie_changed.disconnect(self._on_movie)
        viewer = self._viewer_ref()
        if viewer is not None:
            viewer.layers.events.removed.disconnect(self._on_removed)

    def _remove(self) -> None:
        viewer, layer = self._viewer_ref(), self.layer
        if viewer is not None and layer is not None:
            wanted = self.wanted
            viewer.layers.remove(layer)
            self.wanted = wanted

    def _on_removed(self, event: Any) -> None:
        """Who deletes the layer does not want it back at the next answer."""
        if role_of(event.value) == COLOURED:
            self.wanted = False

    def _on_movie(self) -> None:
        movie = self._session.movie
        if movie is None or movie.layers[1] is not self._over:
            self._queue.stop()
            self._remove()

    def _follow(self) -> None:
        if not self._warm and self._session.tracking is not None:
            self._warm = True
            self._session.run("warm up colours", _warm_up, lambda _: None)
        if self.wanted and self._session.tracking is not None:
            self._queue.begin(self._draw)

    def _draw(self) -> None:
        viewer, tracking, movie = self._viewer_ref(), self._session.tracking, self._session.movie
        cells = None if movie is None else movie.layers[1]
        if viewer is None or tracking is None or cells is None or cells not in viewer.layers:
            return
        if tracking.scene.labels is None:
            return
        found = self._session.layer_data
        assert found is not None
        layer, pixels, colours = self.layer, _pixels(tracking), _colours(found, self._colour)
        if layer is not None:
            layer.data, layer.colormap = pixels, colours
            return
        self._over = cells
        made = Labels(
            pixels, name="Cells by track", metadata=tag(COLOURED), opacity=0.5,
            colormap=colours, **placed_like(cells),
        )  # fmt: skip
        made.editable = False
        add_below(viewer, made, "tracks", "marks", "events")


def _colours(found: TracksData, colour: str) -> DirectLabelColormap:
    """A colour for each track, that of its lines; doubtful tracks have that of their doubt."""
    values = found.of_tracks(COLOURINGS[colour])
    shades = colormaps()[COLOURINGS[colour]].map(values.to_numpy())
    known: dict[int | None, Any] = {None: "transparent", 0: "transparent"}
    known |= dict(zip(values.index.tolist(), shades, strict=True))
    return DirectLabelColormap(color_dict=known)


def _pixels(tracking: Tracking) -> Any:
    """Tracks in place of labels, read frame by frame when they are looked at."""
    assert tracking.scene.labels is not None
    found = CellsByTrack(tracking.scene.labels, tracking.tracks)
    chunks = tuple((1,) * n if k < 1 else (n,) for k, n in enumerate(found.shape))
    return da.from_array(found, chunks=chunks, name=False, asarray=False)
