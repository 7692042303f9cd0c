"""Tracks with lineages, built from the chosen events or from a plain graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.arrays import Index, Mask
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Tracks:
    """Tracks of a movie as three plain tables.

    Parameters
    ----------
    nodes
        One row per detection that belongs to a track: ``id`` (unique integer, the detection's
        row), ``frame``, ``label`` (in the segmentation), position in pixels (``z``, ``y``,
        ``x``), ``area``, ``track_id`` (from 1), ``lineage_id`` (the track_id of the root).
        Two pieces of one wrongly cut cell have the same ``track_id`` in the same frame. More
        columns are carried along.
    edges
        ``source``, ``target`` (node ids, source earlier), ``event`` (``move``, ``skip``,
        ``divide``, ``split``, ``merge``), ``score``, and `MARGIN` (NaN if unknown).
    events
        Every chosen event: ``frame`` (of the later cell; of the last sight for ``disappear`` and
        of the detection for ``false``), ``event``, ``sources``, ``targets`` (tuples of
        detection ids), ``score``, and `MARGIN`.
    links
        Which track comes from which: ``track_id``, ``parent_id``, ``event`` (``divide``,
        ``split`` or ``merge``); a track after a merge has two rows.
    geometry
        Extent, scale and units of the movie.
    notes
        What there is to say about them.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    events: pd.DataFrame
    links: pd.DataFrame
    geometry: Geometry
    notes: tuple[str, ...] = field(default=())

    @property
    def n_tracks(self) -> int:
        """Number of tracks."""
        return int(self.nodes["track_id"].nunique())


EDGE_EVENTS = ("move", "skip", "divide", "split", "merge")
MARGIN = "margin_at_least"
"""Column of margins: the best explanation without an event is worse by at least this much."""
MARGINS = (MARGIN, "margin")
"""Its names in files; earlier versions wrote exact margins."""
EVENT_COLUMNS = ["frame", "event", "sources", "targets", "score", MARGIN]


def events_from_edges(
    nodes: pd.DataFrame, edges: pd.DataFrame, src: Index, tgt: Index, n_frames: int
) -> pd.DataFrame:
    """The events of a graph (see `Tracks.events`).

    Edges of one ``divide`` or ``split`` share the source, those of one ``merge`` the target. The
    frame of an event with several later cells is that of the earliest. `src` and `tgt` are the
    rows of `nodes` that every edge joins, shapes (E,).
    """
    ids = nodes["id"].to_numpy(dtype=np.int64)
    frame = nodes["frame"].to_numpy(dtype=np.int64)
    n = len(nodes)
    kind = edges["event"].to_numpy(dtype=object)
    # One event has the edges of a kind that share an end, or a move or skip alone.
    shared = np.where(kind == "merge", tgt, src)
    other = np.where(np.isin(kind, ("move", "skip")), tgt, -1)
    order = np.lexsort((ids[tgt], ids[src]))
    parts = pd.DataFrame({"kind": kind, "shared": shared, "other": other}).iloc[order]
    number = parts.groupby(list(parts), sort=False).ngroup().to_numpy()
    order = order[np.argsort(number, kind="stable")]
    first = np.searchsorted(np.sort(number), np.arange(number.max(initial=-1) + 1))
    spans = list(pairwise([*first.tolist(), len(order)]))
    sources, targets = (
        [tuple(dict.fromkeys(cells[a:b])) for a, b in spans]
        for cells in (ids[src[order]].tolist(), ids[tgt[order]].tolist())
    )
    begin = np.flatnonzero((np.bincount(tgt, minlength=n) == 0) & (frame > 0))
    end = np.flatnonzero((np.bincount(src, minlength=n) == 0) & (frame < n_frames - 1))
    known, unknown = edges.iloc[order[first]], np.full(len(begin) + len(end), np.nan)
    kinds = [*known["event"], *["appear"] * len(begin), *["disappear"] * len(end)]
    table = {
        "frame": np.r_[np.minimum.reduceat(frame[tgt[order]], first), frame[begin], frame[end]],
        "event": pd.Series(kinds, dtype=object),
        "sources": [*sources, *[()] * len(begin), *((i,) for i in ids[end].tolist())],
        "targets": [*targets, *((i,) for i in ids[begin].tolist()), *[()] * len(end)],
        "score": np.r_[known["score"].to_numpy(), unknown],
        MARGIN: np.r_[known[MARGIN].to_numpy(), unknown],
    }
    return sort_events(pd.DataFrame(table))


def sort_events(table: pd.DataFrame) -> pd.DataFrame:
    """Events by frame, kind and the first detection they name."""
    pairs = zip(table["sources"], table["targets"], strict=True)
    first = np.asarray([(s or t)[0] for s, t in pairs], dtype=np.int64)
    rank = table["event"].map({e.key: int(e) for e in Event}).to_numpy(dtype=np.int64)
    order = np.lexsort((first, rank, table["frame"].to_numpy(dtype=np.int64)))
    return table.iloc[order][EVENT_COLUMNS].reset_index(drop=True)


def assemble_tracks(
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    geometry: Geometry,
    *,
    links: pd.DataFrame | None = None,
    notes: tuple[str, ...] = (),
    source: str = "the tracks",
) -> Tracks:
    """Build tracks with lineages from nodes and edges.

    An edge whose source has several targets is a ``divide``, one whose target has several
    sources a ``merge``, any other a ``move``, or a ``skip`` where it bridges frames; an ``event``
    column of `edges` takes precedence. Without a ``track_id`` column a track is a chain of moves
    and skips. ``lineage_id`` is the track of the earliest node of a connected component. A node
    without a past after the first frame appears, one without a future before the last disappears.

    Parameters
    ----------
    nodes
        ``id``, ``frame``, ``label``, the position in pixels, ``area``; optionally ``track_id``
        and ``lineage_id``; other columns are carried along.
    edges
        ``source``, ``target`` (ids); optionally ``event``, ``score`` and `MARGIN`.
    geometry
        Extent, scale and units of the movie.
    links
        Which track comes from which where it is known; else every edge between two tracks is a
        link.
    notes
        What the reader has to say about the file.
    source
        Name of the file, for messages.

    Raises
    ------
    InputError
        If ids repeat, an edge names an unknown node, runs backwards in time or repeats.
    """
    nodes = nodes.sort_values(["frame", "label", "id"], kind="stable").reset_index(drop=True)
    src, tgt = edge_rows(nodes, edges, source)
    edges = _complete_edges(nodes, edges, src, tgt)
    if "track_id" not in nodes.columns:
        chained = edges["event"].isin(["move", "skip"]).to_numpy(dtype=bool)
        nodes["track_id"] = chains(len(nodes), src, tgt, chained)
    nodes["track_id"] = nodes["track_id"].astype(np.int64)
    if "lineage_id" not in nodes.columns:
        nodes["lineage_id"] = lineage_ids(nodes["track_id"].to_numpy(), src, tgt)
    return Tracks(
        nodes=nodes,
        edges=edges,
        events=events_from_edges(nodes, edges, src, tgt, geometry.n_frames),
        links=links_from_edges(nodes, edges, src, tgt) if links is None else links,
        geometry=geometry,
        notes=notes,
    )


def edge_rows(nodes: pd.DataFrame, edges: pd.DataFrame, source: str) -> tuple[Index, Index]:
    """Index of the two ends of every edge in `nodes`, (E,) each; raises as `assemble_tracks`."""
    ids = pd.Index(nodes["id"].to_numpy(dtype=np.int64))
    if not ids.is_unique:
        again = ids[ids.duplicated()].min()
        raise InputError(f"{source}: the id {again} is used twice; ids must be unique")
    ends = edges[["source", "target"]].to_numpy(dtype=np.int64)
    rows = ids.get_indexer(ends.ravel()).reshape(-1, 2)
    if (rows < 0).any():
        raise InputError(
            f"{source}: an edge names the id {ends[rows < 0][0]}, but there is no such detection"
        )
    frame = nodes["frame"].to_numpy(dtype=np.int64)[rows]
    backwards = np.flatnonzero(frame[:, 0] >= frame[:, 1])
    if len(backwards):
        (i, j), (early, late) = ends[backwards[0]], frame[backwards[0]]
        raise InputError(
            f"{source}: the edge from {i} (frame {early}) to {j} (frame {late}) does not run "
            "forward in time; a parent must be in an earlier frame than its child"
        )
    again = edges.duplicated(["source", "target"]).to_numpy()
    if again.any():
        i, j = ends[again][0]
        raise InputError(f"{source}: the edge from {i} to {j} is listed twice")
    return rows[:, 0], rows[:, 1]


def _complete_edges(
    nodes: pd.DataFrame, edges: pd.DataFrame, src: Index, tgt: Index
) -> pd.DataFrame:
    edges = edges.rename(columns=dict.fromkeys(MARGINS, MARGIN)).reset_index(drop=True)
    edges = edges.loc[:, ~edges.columns.duplicated()]  # a table of others may have both
    if "event" not in edges.columns:
        edges["event"] = edge_events(nodes, src, tgt)
    for column in ("score", MARGIN):
        if column not in edges.columns:
            edges[column] = np.nan
        edges[column] = edges[column].astype(np.float64)
    head = ["source", "target", "event", "score", MARGIN]
    return edges[head + [c for c in edges.columns if c not in head]]


def edge_events(nodes: pd.DataFrame, src: Index, tgt: Index) -> NDArray[np.object_]:
    """Events of edges, by the numbers of edges at their ends and the frames between these, (E,)."""
    frame, n = nodes["frame"].to_numpy(dtype=np.int64), len(nodes)
    kinds = np.where(frame[tgt] - frame[src] > 1, "skip", "move").astype(object)
    kinds[np.bincount(tgt, minlength=n)[tgt] > 1] = "merge"
    kinds[np.bincount(src, minlength=n)[src] > 1] = "divide"
    return kinds


def components(n: int, src: Index, tgt: Index) -> Index:
    """Number of the connected component of every node, shape (n,)."""
    graph = sp.coo_matrix((np.ones(len(src), dtype=np.int8), (src, tgt)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def chains(n: int, src: Index, tgt: Index, allowed: Mask) -> Index:
    """Number of the longest unbranched path of every node, from 1 by first node, shape (n,).

    Edges join the nodes `src` and `tgt`; a path takes those that are `allowed`, shapes (E,).
    """
    alone = (np.bincount(src, minlength=n)[src] == 1) & (np.bincount(tgt, minlength=n)[tgt] == 1)
    simple = allowed & alone
    component = components(n, src[simple], tgt[simple])
    _, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(1, len(first) + 1)
    return rank[inverse] if n else np.zeros(0, dtype=np.int64)


def lineage_ids(track_id: Index, src: Index, tgt: Index) -> Index:
    """Track of the earliest node of every node's lineage, shape (n,); nodes sorted by frame."""
    n = len(track_id)
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    _, row = np.unique(track_id, return_index=True)
    first_of_track = row[np.searchsorted(track_id[row], track_id)]
    # Tying every node to the first of its track keeps pieces of one cell in one lineage.
    component = components(
        n, np.concatenate([src, np.arange(n)]), np.concatenate([tgt, first_of_track])
    )
    _, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    return track_id[first][inverse]


def links_from_edges(
    nodes: pd.DataFrame, edges: pd.DataFrame, src: Index, tgt: Index
) -> pd.DataFrame:
    """Which track comes from which: one row per pair of tracks that an edge joins."""
    track = nodes["track_id"].to_numpy(dtype=np.int64)
    between = track[src] != track[tgt]
    links = pd.DataFrame(
        {
            "track_id": track[tgt][between],
            "parent_id": track[src][between],
            "event": edges["event"].to_numpy(dtype=object)[between],
        }
    )
    links = links.drop_duplicates(["track_id", "parent_id"])
    return links.sort_values(["track_id", "parent_id"]).reset_index(drop=True)


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
