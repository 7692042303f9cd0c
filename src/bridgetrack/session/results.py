"""The tracks as arrays for a Tracks layer, the least certain events, and a summary in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.tracks.napari_tracks import to_napari
from bridgetrack.tracks.tracks import Tracks

_GOLDEN = 0.618033988749895
"""Families that follow each other get hues that are far apart."""

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


def layer_data(tracks: Tracks) -> TracksData:
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
