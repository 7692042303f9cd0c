"""The tracks as arrays for a Tracks layer, the least certain events, and a summary in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.notes import plural
from bridgetrack.tracks.colours import family_shades
from bridgetrack.tracks.table import certainties, to_napari
from bridgetrack.tracks.tracks import Tracks, margin_column


@dataclass(frozen=True)
class TracksData:
    """Rows (id, t, [z,] y, x), one feature value per row, and parents of each track."""

    data: NDArray[np.float64]
    features: pd.DataFrame
    graph: dict[int, list[int]]


def layer_data(tracks: Tracks) -> TracksData:
    """Convert tracks, with what the layer is coloured by."""
    data, properties, graph = to_napari(tracks)
    known = pd.Series(certainties(tracks).to_numpy(), index=tracks.nodes["id"])
    node = np.asarray(properties["node_id"])
    features = pd.DataFrame(
        {
            "lineage": family_shades(properties["lineage_id"]),
            # What nothing speaks against is certain.
            "certainty": np.clip(2 * known.reindex(node).fillna(1.0).to_numpy() - 1, 0, 1),
            **{name: properties[name] for name in ("node_id", "label", "lineage_id", "area")},
        }
    )
    return TracksData(data, features, graph)


class CellsByTrack:
    """A label movie in which every cell has the number of its track; made as it is looked at.

    Detections that belong to no track are background.

    Parameters
    ----------
    labels
        The segmentation.
    tracks
        Its tracks.
    numbers
        Other numbers for the nodes of the tracks, shape (nodes,).
    """

    def __init__(
        self, labels: Movie, tracks: Tracks, numbers: NDArray[np.int64] | None = None
    ) -> None:
        self._labels, self._nodes = labels, tracks.nodes[["frame", "label", "track_id"]]
        if numbers is not None:
            self._nodes = self._nodes.assign(track_id=numbers)
        self.shape = (labels.n_frames, *(labels.geometry.shape or ()))
        self.ndim, self.dtype = len(self.shape), np.dtype(np.int32)
        self._last: tuple[int, NDArray[np.int32]] | None = None

    @cached_property
    def _named(self) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """Labels of each frame, ascending, and their tracks."""
        table = self._nodes.sort_values(["frame", "label"])
        frames, first = np.unique(table["frame"].to_numpy(np.int64), return_index=True)
        labels = np.split(table["label"].to_numpy(np.int64), first[1:])
        tracks = np.split(table["track_id"].to_numpy(np.int32), first[1:])
        return dict(zip(frames.tolist(), zip(labels, tracks, strict=True), strict=True))

    def frame(self, t: int) -> NDArray[np.int32]:
        """Tracks of one frame, shape ([Z,] Y, X)."""
        last = self._last
        if last is None or last[0] != t:
            self._last = last = t, self._make(t)  # looked at, likely once more
        return last[1]

    def _make(self, t: int) -> NDArray[np.int32]:
        labels = label_frame(self._labels, t)
        if t not in self._named:
            return np.zeros(labels.shape, np.int32)
        known, tracks = self._named[t]
        at = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        return np.where(known[at] == labels, tracks[at], 0).astype(np.int32)

    def __getitem__(self, key: Any) -> NDArray[np.int32]:
        times, *rest = key if isinstance(key, tuple) else (key,)
        if not isinstance(times, slice):
            return np.asarray(self.frame(int(times))[tuple(rest)])
        frames = [self.frame(t)[tuple(rest)] for t in range(*times.indices(self.shape[0]))]
        return np.stack(frames) if frames else np.zeros((0, *self.shape[1:]), np.int32)


def least_certain(tracks: Tracks, limit: int = 50) -> pd.DataFrame:
    """Events with the smallest margins first, at most `limit` rows of ``tracks.events``."""
    margin = margin_column(tracks.events)
    events = tracks.events[np.isfinite(tracks.events[margin].to_numpy(dtype=np.float64))]
    return events.sort_values(margin, kind="stable").head(limit)


def summary(tracks: Tracks) -> str:
    """The result in a sentence."""
    counts = Counter(tracks.events["event"].tolist())
    roots = tracks.nodes["lineage_id"].nunique()
    parts = [f"{tracks.n_tracks} tracks in {roots} families"]
    for key, one, many in (
        ("divide", "division", "divisions"),
        ("merge", "merge", "merges"),
        ("split", "wrong cut", "wrong cuts"),
        ("skip", "cell missed for some frames", "cells missed for some frames"),
        ("false", "thing that is not a cell", "things that are not cells"),
    ):
        n = counts[key]
        if n:
            parts.append(plural(n, one, many))
    return ", ".join(parts) + "."
