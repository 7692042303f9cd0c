"""One row per track: when it lives, how far it goes, where it comes from and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import Tracks

if TYPE_CHECKING:
    import networkx as nx

Rows = NDArray[np.int64]


def space_unit(geometry: Geometry) -> str:
    """``um`` where the scale is known, else ``px``."""
    return "um" if geometry.unit == "micrometer" else "px"


def time_unit(geometry: Geometry) -> str:
    """``min`` where the interval is known, else ``frames``."""
    return "frames" if geometry.frame_interval is None else "min"


def lineage_graph(tracks: Tracks) -> nx.DiGraph:
    """Detections as nodes, named by their ``id``, and links as edges from earlier to later.

    Nodes and edges have the columns of `Tracks` as attributes.
    """
    import networkx as nx

    graph: nx.DiGraph = nx.DiGraph()
    nodes, edges = tracks.nodes.set_index("id"), tracks.edges
    graph.add_nodes_from(nodes.to_dict("index").items())
    ends = zip(edges["source"].tolist(), edges["target"].tolist(), strict=True)
    columns = edges.drop(columns=["source", "target"]).to_dict("records")
    graph.add_edges_from((*pair, row) for pair, row in zip(ends, columns, strict=True))
    return graph


def track_table(tracks: Tracks) -> pd.DataFrame:
    """Summarise every track.

    Returns
    -------
    pandas.DataFrame
        Sorted by ``track_id``: ``lineage_id``; ``parent_id`` (tracks it came from, parted by
        blanks, empty at roots) and ``link`` (the event per parent); ``start [frame]``,
        ``end [frame]``; ``duration`` (time between first and last sight); ``detections``;
        ``path_length`` (sum of the steps), ``displacement`` (from first to last sight);
        ``mean_speed`` (path length by duration, empty where that is 0); ``generation``
        (divisions since the root); ``ends_in``: ``division``, ``merge``, ``split``,
        ``continuation`` (as another track), ``end of movie``, ``leaving`` (last seen within its
        own diameter of the frame's edge) or ``unknown``. Units stand in brackets in the header:
        um and min where scale and interval are known, else px and frames.
    """
    steps = _positions(tracks)
    geometry = tracks.geometry
    interval = geometry.frame_interval or 1.0
    first = steps.groupby("track_id").first()
    last = steps.groupby("track_id").last()
    axes = list(geometry.axes)
    hop = steps[axes].diff().to_numpy()
    hop[~steps["track_id"].duplicated().to_numpy(dtype=bool)] = 0.0
    steps["hop"] = np.sqrt((hop**2).sum(axis=1))
    path = steps.groupby("track_id")["hop"].sum().to_numpy()
    reach = np.sqrt(((last[axes] - first[axes]).to_numpy() ** 2).sum(axis=1))
    start, end = first["frame"].to_numpy(), last["frame"].to_numpy()
    duration = (end - start) * interval
    ids = first.index.to_numpy(dtype=np.int64)
    parents, kinds = _parents(ids, tracks.links)
    um, minutes = space_unit(geometry), time_unit(geometry)
    per = "min" if minutes == "min" else "frame"
    elapsed = np.where(duration > 0, duration, np.nan)
    return pd.DataFrame(
        {
            "track_id": ids,
            "lineage_id": tracks.nodes.groupby("track_id")["lineage_id"].first().to_numpy(),
            "parent_id": parents,
            "link": kinds,
            "start [frame]": start,
            "end [frame]": end,
            f"duration [{minutes}]": duration if minutes == "min" else end - start,
            "detections": tracks.nodes.groupby("track_id").size().to_numpy(),
            f"path_length [{um}]": path,
            f"displacement [{um}]": reach,
            f"mean_speed [{um}/{per}]": path / elapsed,
            "generation": _generations(ids, start, tracks.links),
            "ends_in": _endings(ids, last, tracks),
        }
    )


def _positions(tracks: Tracks) -> pd.DataFrame:
    """One row per track and frame: the area-weighted centroid in the unit, and the area."""
    nodes, axes = tracks.nodes, list(tracks.geometry.axes)
    weight = np.maximum(nodes["area"].to_numpy(dtype=np.float64), 1e-9)
    table = nodes[["track_id", "frame"]].copy()
    table["area"] = weight
    for axis, scale in zip(axes, tracks.geometry.scale, strict=True):
        table[axis] = nodes[axis].to_numpy(dtype=np.float64) * scale * weight
    sums = table.groupby(["track_id", "frame"], as_index=False).sum()
    sums[axes] = sums[axes].div(sums["area"], axis=0)
    return sums


def _parents(ids: Rows, links: pd.DataFrame) -> tuple[list[str], list[str]]:
    words = links[["parent_id", "event"]].astype(str).groupby(links["track_id"]).agg(" ".join)
    words = words.reindex(ids, fill_value="")
    return words["parent_id"].tolist(), words["event"].tolist()


def _generations(ids: Rows, start: Rows, links: pd.DataFrame) -> Rows:
    came: dict[int, list[tuple[int, int]]] = {}
    for child, parent, event in zip(
        links["track_id"].tolist(), links["parent_id"].tolist(), links["event"], strict=True
    ):
        came.setdefault(child, []).append((parent, int(event == "divide")))
    generation: dict[int, int] = {}
    for i in ids[np.argsort(start, kind="stable")].tolist():
        parents = came.get(i, [])
        generation[i] = max((generation.get(p, 0) + step for p, step in parents), default=0)
    return np.asarray([generation[i] for i in ids.tolist()], dtype=np.int64)


def _endings(ids: Rows, last: pd.DataFrame, tracks: Tracks) -> Sequence[str]:
    end = last["frame"].to_numpy()
    ending = np.full(len(ids), "unknown", dtype=object)
    ending[_at_edge(last, tracks.geometry)] = "leaving"
    begins = tracks.nodes.groupby("track_id")["frame"].min()
    links = tracks.links
    child_begin = begins.reindex(links["track_id"]).to_numpy()
    parent = np.searchsorted(ids, links["parent_id"].to_numpy(dtype=np.int64))
    over = end[parent] < child_begin if len(links) else np.zeros(0, dtype=bool)
    event = links["event"].to_numpy(dtype=object)
    names = {"move": "continuation", "skip": "continuation", "split": "split", "merge": "merge"}
    for kind, name in (*names.items(), ("divide", "division")):
        ending[parent[over & (event == kind)]] = name
    ending[end == tracks.geometry.n_frames - 1] = "end of movie"
    return [str(e) for e in ending]


def _at_edge(last: pd.DataFrame, geometry: Geometry) -> NDArray[np.bool_]:
    if geometry.shape is None:
        return np.zeros(len(last), dtype=bool)
    area = last["area"].to_numpy(dtype=np.float64)
    ndim = geometry.ndim
    volume = area * np.prod(geometry.scale_array)
    diameter = 2 * np.sqrt(volume / np.pi) if ndim == 2 else 2 * np.cbrt(volume * 3 / (4 * np.pi))
    # Along z cells are cut off everywhere in thin stacks, so only the frame's edge counts.
    here = last[["y", "x"]].to_numpy(dtype=np.float64)
    scale = geometry.scale_array[-2:]
    far = (np.asarray(geometry.shape[-2:]) - 1) * scale - here
    return np.asarray(np.minimum(here, far).min(axis=1) <= diameter)
