"""Tracks as the arrays of a napari Tracks layer, and back; nothing of napari is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.table import sights
from bridgetrack.tracks.tracks import AT_LEAST, MARGINS, Tracks, assemble_tracks, margin_column

Array = NDArray[np.float64]
Graph = dict[int, list[int]]


def to_napari(tracks: Tracks) -> tuple[Array, dict[str, NDArray[Any]], Graph]:
    """Arrays for ``viewer.add_tracks(data, properties=..., graph=...)``.

    Returns
    -------
    data
        ``ID, T, (Z), Y, X`` in pixels, sorted by track and frame, shape (n, 2 + ndim). A track
        has one row per frame: pieces of one cell give their area-weighted centroid. A gap stays
        inside its track.
    properties
        One value per row: ``frame``, ``label`` (of the largest piece), ``node_id`` (of the
        largest piece), ``pieces`` (number of detections), ``area`` (their sum), ``lineage_id``,
        ``event`` (how the cell got here: ``start``, ``appear``, ``move``, ``skip``, ``divide``,
        ``split`` or ``merge``), ``score`` and margin (one of `MARGINS`) of that event.
    graph
        Track → tracks it came from; several after a merge.
    """
    geometry = tracks.geometry
    pixels = replace(geometry, scale=(1.0,) * geometry.ndim)
    table = sights(replace(tracks, geometry=pixels))
    ids, frame = table["id"].to_numpy(), table["frame"].to_numpy()
    labels = tracks.nodes.set_index("id")["label"]
    pieces = tracks.nodes.groupby(["track_id", "frame"]).size()
    properties: dict[str, NDArray[Any]] = {
        "frame": frame,
        "label": labels.loc[ids].to_numpy(dtype=np.int64),
        "node_id": ids,
        "pieces": pieces.to_numpy(),
        "area": table["area"].to_numpy(),
        "lineage_id": table["lineage_id"].to_numpy(),
    }
    properties |= _histories(tracks, ids, frame)
    data = table[["track_id", "frame", *geometry.axes]].to_numpy(dtype=np.float64)
    return data, properties, _graph(tracks)


def _histories(tracks: Tracks, ids: NDArray[np.int64], frame: NDArray[np.int64]) -> dict[str, Any]:
    incoming = tracks.edges.drop_duplicates("target").set_index("target").reindex(ids)
    event = incoming["event"].astype(object).to_numpy(copy=True)
    unknown = incoming["event"].isna().to_numpy(dtype=bool)
    event[unknown] = np.where(frame[unknown] == 0, "start", "appear")
    means = (margin_column(tracks.edges), "score")
    values = {name: incoming[name].to_numpy(dtype=np.float64, copy=True) for name in means}
    appear = tracks.events[tracks.events["event"] == "appear"]
    named = pd.Index([target[0] for target in appear["targets"]], dtype=np.int64)
    at = named.get_indexer(pd.Index(ids))
    fresh = unknown & (at >= 0)
    for name in means:
        values[name][fresh] = appear[name].to_numpy(dtype=np.float64)[at[fresh]]
    return {"event": np.asarray(event.tolist(), dtype=str), **values}


def _graph(tracks: Tracks) -> Graph:
    graph: Graph = {}
    links = tracks.links
    for child, parent in zip(links["track_id"].tolist(), links["parent_id"].tolist(), strict=True):
        graph.setdefault(int(child), []).append(int(parent))
    return graph


def from_napari(
    data: Array,
    properties: Mapping[str, Sequence[Any] | NDArray[Any]] | None = None,
    graph: Mapping[int, int | Sequence[int]] | None = None,
    *,
    geometry: Geometry | None = None,
) -> Tracks:
    """Tracks from the arrays of a napari Tracks layer.

    Parameters
    ----------
    data
        ``ID, T, (Z), Y, X``, shape (n, 4) or (n, 5).
    properties
        ``label``, ``area``, ``node_id``, ``score`` and one of `MARGINS` are understood where
        they are there and fit; others of the same length are carried along as columns of the nodes.
    graph
        Track → parent, or list of parents. A track with several parents comes by a merge, one
        whose parent goes on by a split, one that shares its parent with others by a division;
        an only child continues its parent.
    geometry
        Extent and scale; pixels and as many frames as there are where None.

    Raises
    ------
    InputError
        Where the array has another shape, a track is twice in a frame, times or ids are not
        whole numbers, or the graph names unknown tracks or parents from the future.
    """
    data = np.asarray(data, dtype=np.float64)
    _check(data, geometry)
    ndim = data.shape[1] - 2
    order = np.lexsort((data[:, 0], data[:, 1]))
    data = data[order]
    track, frame = data[:, 0].astype(np.int64), data[:, 1].astype(np.int64)
    if geometry is None:
        geometry = Geometry(int(frame.max()) + 1, None, (1.0,) * ndim)
    given = {k: np.asarray(v)[order] for k, v in (properties or {}).items() if len(v) == len(order)}
    nodes = pd.DataFrame({"id": _ids(given, len(data)), "frame": frame})
    nodes["label"] = _labels(given, frame)
    for k, axis in enumerate(geometry.axes):
        nodes[axis] = data[:, 2 + k]
    nodes["area"] = np.asarray(given.get("area", np.ones(len(data))), dtype=np.float64)
    nodes["track_id"] = track
    known = {*nodes.columns, "node_id", "event", "lineage_id", "score", *MARGINS}
    for name, values in given.items():
        if name not in known:
            nodes[name] = values
    edges, links = _edges(nodes, _parents(graph or {}), given)
    return assemble_tracks(nodes, edges, geometry, links=links, source="the Tracks layer")


def _check(data: Array, geometry: Geometry | None) -> None:
    if data.ndim != 2 or data.shape[1] not in (4, 5) or len(data) == 0:
        raise InputError(
            f"a Tracks layer has the columns ID, T, (Z), Y, X; found shape {data.shape}"
        )
    if geometry is not None and geometry.ndim != data.shape[1] - 2:
        raise InputError(f"the tracks are {data.shape[1] - 2}D, the movie is {geometry.ndim}D")
    whole = data[:, :2]
    if not np.isfinite(data).all() or np.any(whole != np.rint(whole)) or np.any(data[:, 1] < 0):
        raise InputError("ids and frames of a Tracks layer must be whole numbers, positions finite")
    _, counts = np.unique(whole, axis=0, return_counts=True)
    if np.any(counts > 1):
        raise InputError("a track of the Tracks layer has two rows in one frame")


def _ids(given: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.int64]:
    ids = given.get("node_id")
    if ids is not None and ids.dtype.kind in "iu" and len(np.unique(ids)) == n:
        return ids.astype(np.int64)
    return np.arange(n, dtype=np.int64)


def _labels(given: Mapping[str, NDArray[Any]], frame: NDArray[np.int64]) -> NDArray[np.int64]:
    labels = given.get("label")
    if labels is not None and labels.dtype.kind in "iu":
        pairs = np.column_stack([frame, labels])
        if len(np.unique(pairs, axis=0)) == len(pairs):
            return labels.astype(np.int64)
    return np.asarray(pd.Series(frame).groupby(frame).cumcount(), dtype=np.int64) + 1


def _parents(graph: Mapping[int, int | Sequence[int]]) -> pd.DataFrame:
    rows = []
    for child, parents in graph.items():
        several = parents if isinstance(parents, Sequence | np.ndarray) else [parents]
        rows += [(int(child), int(p)) for p in several]
    table = pd.DataFrame(rows, columns=["track_id", "parent_id"], dtype=np.int64)
    return table.sort_values(["track_id", "parent_id"], ignore_index=True)


def _edges(
    nodes: pd.DataFrame, parents: pd.DataFrame, given: Mapping[str, NDArray[Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges along tracks and between them, and the links; scores from the later end's row."""
    ids, frame = nodes["id"].to_numpy(), nodes["frame"].to_numpy()
    track = nodes["track_id"].to_numpy()
    order = np.lexsort((frame, track))
    same = track[order[1:]] == track[order[:-1]]
    source, target = order[:-1][same], order[1:][same]
    kind = np.where(frame[target] - frame[source] > 1, "skip", "move").astype(object)
    first, last = order[np.r_[True, ~same]], order[np.r_[~same, True]]
    known = track[first]
    for column in ("track_id", "parent_id"):
        unknown = ~np.isin(parents[column], known)
        if unknown.any():
            raise InputError(
                f"the graph names the track {parents[column][unknown].iloc[0]}, which is not "
                "among the tracks"
            )
    daughters = first[np.searchsorted(known, parents["track_id"])]
    mothers = _last_before(order, track, frame, parents["parent_id"].to_numpy(), frame[daughters])
    if (mothers < 0).any():
        k = int(np.argmax(mothers < 0))
        raise InputError(
            f"the track {track[daughters[k]]} begins in frame {frame[daughters[k]]}, but its "
            f"parent {parents['parent_id'].iloc[k]} is not there before"
        )
    goes_on = frame[last[np.searchsorted(known, parents["parent_id"])]] >= frame[daughters]
    between = _link_kinds(parents, frame[daughters] - frame[mothers], goes_on)
    kinds = np.concatenate([kind, between])
    rows = np.concatenate([target, daughters])
    edges = pd.DataFrame(
        {"source": ids[np.concatenate([source, mothers])], "target": ids[rows], "event": kinds}
    )
    margin = next((name for name in MARGINS if name in given), AT_LEAST)
    for name in (margin, "score"):
        values = given.get(name)
        edges[name] = np.nan if values is None else values[rows].astype(np.float64)
    edges = edges.sort_values(["source", "target"], ignore_index=True)
    return edges, parents.assign(event=between)


def _last_before(
    order: NDArray[np.int64],
    track: NDArray[np.int64],
    frame: NDArray[np.int64],
    wanted: NDArray[np.int64],
    begin: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Row of the last sight of the wanted tracks before `begin`, -1 where there is none."""
    names = np.unique(track)
    span = int(frame.max(initial=0)) + 2
    key = np.searchsorted(names, track[order]) * span + frame[order]
    at = np.searchsorted(key, np.searchsorted(names, wanted) * span + begin) - 1
    row = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (track[row] == wanted), row, -1)


def _link_kinds(
    parents: pd.DataFrame, gap: NDArray[np.int64], goes_on: NDArray[np.bool_]
) -> NDArray[np.object_]:
    """Several parents: merge; a parent that goes on: split; several children: divide."""
    kinds = np.where(gap > 1, "skip", "move").astype(object)
    kinds[parents["parent_id"].duplicated(keep=False).to_numpy()] = "divide"
    kinds[goes_on] = "split"
    kinds[parents["track_id"].duplicated(keep=False).to_numpy()] = "merge"
    return kinds
