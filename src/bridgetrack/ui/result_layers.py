"""The tracks, and the cells in their colours, as layers kept in step with the tracking."""

from __future__ import annotations

import weakref
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from napari.layers import Labels
from napari.layers import Tracks as TracksLayer
from napari.utils import DirectLabelColormap

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.results import CellsByTrack, TracksData
from bridgetrack.session.session import Session
from bridgetrack.tracks.colours import UNKNOWN, Colouring, paint
from bridgetrack.ui.background import EventLoopQueue, Links
from bridgetrack.ui.layers import (
    KEY,
    add_below,
    find_role,
    placed_like,
    role_of,
    tag,
)
from bridgetrack.ui.looks import Looks, colormap_of

SHADE = "colour"
"""Feature of the layer that it is coloured by."""


class ResultLayer:
    """Shows the session's tracks as a Tracks layer, from the first call of `show` on."""

    def __init__(self, viewer: Any, session: Session, looks: Looks) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session, self._looks = session, looks
        self._shown: TracksData | None = None
        self._queue = EventLoopQueue()
        self.wanted = self.layer is not None  # whether the tracks are shown
        self._links = Links()
        self._links.add(session.tracking_changed, self._follow)
        self._links.add(looks.colour_changed, self._recolour)

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
        self.wanted = True
        self._follow()

    def close(self) -> None:
        """Let go of the viewer."""
        self._queue.stop()
        self._links.cut()

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
        self._queue.begin(lambda: self._prepare(tracking), lambda: self._put(tracking, labels))

    def _prepare(self, tracking: Tracking) -> None:
        """What takes long and touches no layer."""
        _ = self._session.layer_data
        self._looks.colouring(tracking.tracks)

    def _put(self, tracking: Tracking, labels: Any) -> None:
        found, layer = self._session.layer_data, self.layer
        if found is None or labels not in self._viewer.layers:
            return
        if layer is None:
            self._shown = found
            add_below(self._viewer, self._made(found, tracking, labels), "marks", "events")
            return
        before, self._shown = self._shown, found
        if before is None or not np.array_equal(before.data, found.data):
            # Tracks of the old graph may be gone, which napari refuses.
            layer.graph = {}
            layer.data = found.data
        self._paint(layer, found, tracking)
        if {int(k): list(v) for k, v in layer.graph.items()} != found.graph:
            layer.graph = found.graph
        layer.metadata[KEY]["tracks"] = tracking.tracks

    def _made(self, found: TracksData, tracking: Tracking, labels: Any) -> TracksLayer:
        features, shades = self._coloured(found, tracking)
        return TracksLayer(
            found.data, features=features, graph=found.graph, name="Tracks",
            metadata=tag("tracks", tracks=tracking.tracks), tail_length=8, tail_width=3,
            blending="translucent", colormaps_dict=shades, color_by=SHADE,
            **placed_like(labels),
        )  # fmt: skip


COLOURED = "coloured"
"""Role of the layer."""


_COLOURING = "colour cells"
"""Name of the background work: what the layer is to show."""


class ColouredCells:
    """Shows the masks coloured by track, from `show` until `hide`."""

    def __init__(self, viewer: Any, session: Session, looks: Looks) -> None:
        self._viewer_ref = weakref.ref(viewer)
        self._session, self._looks = session, looks
        self._over: Any = None  # the layer of the cells that it was made for
        self.wanted = False
        self._links = Links()
        self._links.add(session.tracking_changed, self._follow)
        self._links.add(session.movie_changed, self._on_movie)
        self._links.add(looks.colour_changed, self._follow)
        self._links.add(viewer.layers.events.removed, self._on_removed)

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

    def hide(self) -> None:
        """Take the layer away."""
        self._session.cancel(_COLOURING)
        self._remove()
        self.wanted = False

    def close(self) -> None:
        """Let go of the viewer."""
        self._links.cut()

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
            self._remove()

    def _follow(self) -> None:
        """Show the layer, or bring it up to date."""
        self._session.cancel(_COLOURING)
        viewer, tracking, movie = self._viewer_ref(), self._session.tracking, self._session.movie
        cells = None if movie is None else movie.layers[1]
        if not self.wanted or viewer is None or tracking is None or cells is None:
            return
        labels = tracking.scene.labels
        if labels is None:
            return
        frame = min(max(viewer.dims.current_step[0], 0), labels.n_frames - 1)

        def draw(found: tuple[Any, DirectLabelColormap]) -> None:
            if cells in viewer.layers:
                self._draw(viewer, cells, *found)

        found = self._looks.colouring(tracking.tracks)
        self._session.run(_COLOURING, lambda: _prepared(tracking, found, frame), draw)

    def _draw(self, viewer: Any, cells: Any, pixels: Any, colours: DirectLabelColormap) -> None:
        layer = self.layer
        if layer is None:
            self._over = cells
            add_below(viewer, _made(pixels, colours, cells), *_ABOVE)
            return
        # Drawn anew at the end only.
        seen, layer.visible = layer.visible, False
        layer.data = pixels
        if not _same_colours(layer.colormap, colours):
            layer.colormap = colours
        layer.visible = seen


_ABOVE = ("tracks", "marks", "events")
"""Roles of the layers that lie above the cells."""


def _prepared(
    tracking: Tracking, found: Colouring, frame: int
) -> Steps[tuple[Any, DirectLabelColormap]]:
    """What the layer shows, and its colours; touches no layer.

    Done on the main thread, reading the frame in view, and the code that napari compiles for its
    first colours, would hold up the window.
    """
    yield Progress("Colouring the cells", 0.0)
    pixels, colours = _pixels(tracking, found), _colours(found)
    for kind in (np.int32, np.uint8):  # of pixels, and of a layer that is not shown yet
        colours.map(np.zeros((2, 2), kind))
        yield Progress("Colouring the cells", 0.5)
    pixels[frame].compute()
    return pixels, colours


def _made(pixels: Any, colours: DirectLabelColormap, cells: Any) -> Labels:
    made = Labels(
        pixels, name="Cells by track", metadata=tag(COLOURED), opacity=0.5,
        colormap=colours, **placed_like(cells),
    )  # fmt: skip
    made.editable = False
    return made


def _same_colours(one: Any, other: DirectLabelColormap) -> bool:
    """Whether two colour the same numbers alike."""
    if not isinstance(one, DirectLabelColormap) or one.color_dict.keys() != other.color_dict.keys():
        return False
    known = list(other.color_dict)
    return np.array_equal(
        np.array([one.color_dict[k] for k in known]), np.array([other.color_dict[k] for k in known])
    )


_SHADES = 64
"""How many shades cells have whose colour changes along their tracks."""


def _colours(found: Colouring) -> DirectLabelColormap:
    """A colour for each track, that of its lines; or for each shade, where cells change theirs."""
    if found.along:
        numbers = np.arange(1, _SHADES + 1)
        shades = np.vstack([paint(np.linspace(0, 1, _SHADES), found.palette), UNKNOWN])
        numbers = np.append(numbers, _SHADES + 1)
    else:
        numbers, first = np.unique(found.track_id, return_index=True)
        shades = found.colours[first]
    known: dict[int | None, Any] = {None: "transparent", 0: "transparent"}
    solid = np.column_stack([shades, np.ones(len(shades))])
    known |= dict(zip(numbers.tolist(), solid, strict=True))
    return DirectLabelColormap(color_dict=known)


def _pixels(tracking: Tracking, colours: Colouring) -> Any:
    """Tracks, or shades, in place of labels, read frame by frame when they are looked at."""
    labels, numbers = tracking.scene.labels, None
    assert labels is not None
    if colours.along:
        nodes = tracking.tracks.nodes
        shades = colours.shades[colours.at(nodes["track_id"].to_numpy(), nodes["frame"].to_numpy())]
        bins = np.rint(np.nan_to_num(shades) * (_SHADES - 1)).astype(np.int64) + 1
        numbers = np.where(np.isnan(shades), _SHADES + 1, bins)
    found = CellsByTrack(labels, tracking.tracks, numbers)
    chunks = tuple((1,) * n if k < 1 else (n,) for k, n in enumerate(found.shape))
    return da.from_array(found, chunks=chunks, name=False, asarray=False)
