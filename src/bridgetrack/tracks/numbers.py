"""Tracks in numbers: a Tracks layer, coloured cells, the table, curves, and a summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from skimage.util import map_array

from bridgetrack.arrays import Array, Index
from bridgetrack.movie.movie import LazyFrames, Movie, label_frame
from bridgetrack.progress import Progress, Steps
from bridgetrack.tracks.colours import UNKNOWN, Colouring, paint, title_of
from bridgetrack.tracks.table import cell_features, cells_by_track, sights, track_table
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.tracks.trees import Lineages, lineages


def layer_data(tracks: Tracks) -> tuple[Array, pd.DataFrame, dict[int, list[int]]]:
    """Arrays for ``viewer.add_tracks(data, features=..., graph=...)``.

    Returns
    -------
    data
        ``ID, T, (Z), Y, X`` in pixels, sorted by track and frame, shape (n, 2 + ndim). A track
        has one row per frame: pieces of one cell give their area-weighted centroid. A gap stays
        inside its track.
    features
        One row each: ``node_id`` and ``label`` (of the largest piece), ``lineage_id``, ``area``
        (the sum of the pieces).
    graph
        Track → tracks it came from; several after a merge.
    """
    geometry = tracks.geometry
    pixels = replace(geometry, scale=(1.0,) * geometry.ndim)
    table = sights(replace(tracks, geometry=pixels)).rename(columns={"id": "node_id"})
    labels = tracks.nodes.set_index("id")["label"]
    table["label"] = labels.loc[table["node_id"]].to_numpy(dtype=np.int64)
    graph: dict[int, list[int]] = {}
    for child, parent in tracks.links[["track_id", "parent_id"]].to_numpy(dtype=np.int64).tolist():
        graph.setdefault(child, []).append(parent)
    data = table[["track_id", "frame", *geometry.axes]].to_numpy(dtype=np.float64)
    return data, table[["node_id", "label", "lineage_id", "area"]], graph


class CellsByTrack(LazyFrames):
    """A label movie in which the cell of every node has its number; made as it is looked at.

    Detections that belong to no track are background.
    """

    def __init__(self, labels: Movie, nodes: pd.DataFrame, numbers: Index) -> None:
        # napari draws numbers of two bytes directly; others take 50 ms a frame.
        kind = np.uint16 if numbers.max(initial=0) < 2**16 else np.int32
        super().__init__((labels.n_frames, *(labels.geometry.shape or ())), kind)
        self._labels, self._numbers = labels, numbers.astype(kind)
        self._frame, self._label = (nodes[c].to_numpy(dtype=np.int64) for c in ("frame", "label"))
        self._last: tuple[int, NDArray[Any]] | None = None

    def frame(self, t: int) -> NDArray[Any]:
        """Numbers of one frame, shape ([Z,] Y, X)."""
        if self._last is None or self._last[0] != t:
            labels, here = label_frame(self._labels, t), self._frame == t
            made = map_array(labels, self._label[here], self._numbers[here])
            self._last = t, made  # shown, probably again soon
        return self._last[1]


_SHADES = 64
"""Number of shades if colours change along tracks."""


def coloured_cells(
    labels: Movie | None, tracks: Tracks, colours: Colouring
) -> tuple[CellsByTrack | None, Index, Array]:
    """Cells in the colours of their tracks, the numbers in them, (n,), and their colours, (n, 3).

    They have the numbers of tracks, or of shades where these change along a track, in place of
    labels; None without masks.
    """
    nodes = tracks.nodes
    track = nodes["track_id"].to_numpy(dtype=np.int64)
    if colours.along:
        shades = colours.shades[colours.at(track, nodes["frame"].to_numpy(dtype=np.int64))]
        bins = np.rint(np.nan_to_num(shades) * (_SHADES - 1)).astype(np.int64) + 1
        shown = np.where(np.isnan(shades), _SHADES + 1, bins)
        numbers = np.arange(1, _SHADES + 2)
        table = np.vstack([paint(np.linspace(0, 1, _SHADES), colours.palette), UNKNOWN])
    else:
        shown = track
        numbers, first = np.unique(colours.track_id, return_index=True)
        table = colours.colours[first]
    return None if labels is None else CellsByTrack(labels, nodes, shown), numbers, table


_BINS = 40


@dataclass(frozen=True)
class TrackNumbers:
    """Measures of the tracks of a movie."""

    tracks: Tracks
    table: pd.DataFrame  # one row per track, see `track_table`
    cells: pd.DataFrame  # one row per track and frame, see `cells_by_track`
    trees: Lineages  # all lineages laid out

    @property
    def features(self) -> dict[str, str]:
        """Measures that can be plotted, with words: of cells, then (with ``track:``) of tracks."""
        geometry = self.tracks.geometry
        known = {name: title_of(name, geometry) for name in cell_features(self.tracks)}
        named = {"track_id", "lineage_id"}
        columns = zip(map(str, self.table.columns), self.table.dtypes, strict=True)
        numbers = [c for c, kind in columns if kind.kind in "iuf" and c not in named]
        return known | {f"track:{c}": f"{c.replace('_', ' ')} of tracks" for c in numbers}

    def sight(self, track: int, frame: int) -> int | None:
        """Row of the cell at which a track is seen nearest to a frame.

        Before it begins, or after its end, that is its first sight.
        """
        own = self.cells[self.cells["track_id"] == track]
        if not len(own):
            return None
        frames = own["frame"].to_numpy()
        k = int(np.abs(frames - frame).argmin()) if frames[0] <= frame <= frames[-1] else 0
        return int(own["id"].iloc[k])

    def track_of(self, row: int) -> int | None:
        """Track of a cell, by its row; None where it belongs to none."""
        nodes = self.tracks.nodes
        found = nodes.loc[nodes["id"] == row, "track_id"]
        return int(found.iloc[0]) if len(found) else None

    def curves(self, feature: str, chosen: Sequence[int]) -> pd.DataFrame:
        """A measure of the cells of some tracks over time: ``track_id``, ``time``, its values."""
        own = self.cells[self.cells["track_id"].isin(list(chosen))]
        names = ["track_id", *dict.fromkeys(("time", feature))]
        return own[names].reset_index(drop=True)

    def distribution(
        self, feature: str, chosen: Collection[int] = ()
    ) -> tuple[Array, Index, Index]:
        """Distribution of a measure over all cells or tracks.

        Edges of the bins, shape (n + 1,); how many of all and of those chosen are in each, (n,).
        """
        of_tracks = feature.startswith("track:")
        table = self.table if of_tracks else self.cells
        values = table[feature.removeprefix("track:")].to_numpy(dtype=np.float64)
        known = np.isfinite(values)
        mine = table["track_id"].isin(list(chosen)).to_numpy(dtype=bool) & known
        whole = values[known]
        counted = len(np.unique(whole)) <= _BINS and bool((whole == np.rint(whole)).all())
        if counted and len(whole) and np.ptp(whole) < 5 * _BINS:
            edges = np.arange(whole.min(), whole.max() + 2) - 0.5
        else:
            edges = np.histogram_bin_edges(whole, _BINS)
        return edges, np.histogram(whole, edges)[0], np.histogram(values[mine], edges)[0]


def numbers_of(tracks: Tracks) -> Steps[TrackNumbers]:
    """Compute all measures of some tracks."""
    yield Progress("Measuring the tracks", 0.0)
    table = track_table(tracks)
    yield Progress("Measuring the tracks", 0.4)
    cells = cells_by_track(tracks)
    yield Progress("Measuring the tracks", 0.8)
    return TrackNumbers(tracks, table, cells, lineages(tracks))


_UNITS = {"um": "µm", "2": "²", "3": "³", "/": "/\N{WORD JOINER}"}
"""Units of tables as they are shown; a line does not break within one."""


def column_words(column: str) -> str:
    """The name of a column of a table in words."""
    name, bracket, unit = column.partition(" [")
    for plain, shown in _UNITS.items():
        unit = unit.replace(plain, shown)
    return name.replace("_", " ") + bracket + unit
