"""Tracks as what napari's Tracks layer wants, and lists made of them.

The Tracks layer of one viewer, kept in step with the tracking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Tracks as TracksLayer
from napari.utils.colormaps import Colormap
from numpy.typing import NDArray

from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.napari_tracks import to_napari
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.layers import KEY, find_role, placed_like, role_of, tag

_GOLDEN = 0.618033988749895
SURE = 6.0
"""Margins from here on are shown as certain."""


@dataclass(frozen=True)
class TracksData:
    """Rows (id, t, [z,] y, x), one feature value per row, and parents of each track."""

    data: NDArray[np.float64]
    features: pd.DataFrame
    graph: dict[int, list[int]]


def certainty(margin: NDArray[np.float64]) -> NDArray[np.float64]:
    """From a margin to a number between 0 (a coin toss) and 1 (nothing else is likely)."""
    capped = np.minimum(np.nan_to_num(margin, nan=SURE, posinf=SURE), SURE)
    return np.asarray(np.clip(capped, 0, SURE) / SURE)


def node_margins(tracks: Tracks) -> NDArray[np.float64]:
    """Smallest margin of the events that each node takes part in, shape (nodes,)."""
    events = tracks.events
    highest = int(tracks.nodes["id"].max()) + 1 if len(tracks.nodes) else 0
    best = np.full(highest, np.inf)
    for column in ("sources", "targets"):
        long = events[[column, "margin"]].explode(column).dropna()
        ids = long[column].to_numpy(dtype=np.int64)
        known = ids < highest
        np.minimum.at(best, ids[known], long["margin"].to_numpy(dtype=np.float64)[known])
    return best[tracks.nodes["id"].to_numpy(dtype=np.int64)]


def to_layer_data(tracks: Tracks) -> TracksData:
    """Convert tracks, with what the layer is coloured by."""
    data, properties, graph = to_napari(tracks)
    known = pd.Series(node_margins(tracks), index=tracks.nodes["id"])
    node = np.asarray(properties["node_id"])
    features = pd.DataFrame(
        {
            "lineage": (np.asarray(properties["lineage_id"]) * _GOLDEN) % 1.0,
            "certainty": certainty(np.asarray(known.reindex(node), dtype=np.float64)),
            **{name: properties[name] for name in ("node_id", "label", "lineage_id", "area")},
        }
    )
    return TracksData(data, features, graph)


def least_certain(tracks: Tracks, limit: int = 50) -> pd.DataFrame:
    """Events with the smallest margins first, at most `limit` rows of ``tracks.events``."""
    events = tracks.events[np.isfinite(tracks.events["margin"].to_numpy(dtype=np.float64))]
    return events.sort_values("margin", kind="stable").head(limit)


def summary(tracks: Tracks) -> str:
    """The result in a sentence."""
    counts = tracks.events["event"].value_counts()
    roots = tracks.nodes["lineage_id"].nunique()
    parts = [f"{tracks.n_tracks} tracks in {roots} families"]
    for key, one, many in (
        ("divide", "division", "divisions"),
        ("merge", "merge", "merges"),
        ("split", "wrong cut", "wrong cuts"),
        ("skip", "closed gap", "closed gaps"),
        ("false", "false detection", "false detections"),
    ):
        n = int(counts.get(key, 0))
        if n:
            parts.append(f"{n} {one if n == 1 else many}")
    return ", ".join(parts) + "."


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

    def parts(self, tracking: Tracking, colour: str, labels: Any) -> list[Callable[[], None]]:
        """Parts that add the layer over the segmentation `labels`, or bring it up to date.

        To be done in this order, with turns of the event loop between them: each takes napari a
        moment.
        """
        made: list[TracksData] = []
        fresh: list[Any] = []

        def convert() -> None:
            made.append(to_layer_data(tracking.tracks))

        def build() -> None:
            if self.layer is None:
                self._shown = made[0]
                fresh.append(_layer(made[0], tracking, colour, labels))
            else:
                self._set_data(self.layer, made[0])

        def add() -> None:
            if fresh and labels in self._viewer.layers:
                self._add(fresh[0])
            elif self.layer is not None:
                self._set_graph(self.layer, made[0])
                self.layer.metadata[KEY]["tracks"] = tracking.tracks

        def draw() -> None:
            if fresh:
                fresh[0].visible = True

        return [convert, build, add, draw]

    def _add(self, layer: Any) -> None:
        active = self._viewer.layers.selection.active
        self._viewer.add_layer(layer)
        overlay = [x for x in self._viewer.layers if role_of(x) in ("marks", "events")]
        lowest = min((self._viewer.layers.index(x) for x in overlay), default=None)
        if lowest is not None:
            self._viewer.layers.move(self._viewer.layers.index(layer), lowest)
        if active is not None and active in self._viewer.layers:
            self._viewer.layers.selection.active = active

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

    def colour_by(self, colour: str) -> None:
        """Colour by family or by certainty."""
        layer = self.layer
        if layer is not None:
            layer.color_by = COLOURINGS[colour]


def _layer(found: TracksData, tracking: Tracking, colour: str, labels: Any) -> TracksLayer:
    return TracksLayer(
        found.data, features=found.features, graph=found.graph, name="Tracks",
        metadata=tag("tracks", tracks=tracking.tracks), tail_length=8, tail_width=3,
        blending="translucent", colormaps_dict=_colormaps(), color_by=COLOURINGS[colour],
        visible=False, **placed_like(labels),
    )  # fmt: skip
