"""Tracks in numbers: one row per track, one per cell and frame, and the arrays of a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.hypotheses.events import FATES, Event, Events
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import Tracks, margin_column, rows_by_id

VERIFIED, NAMED = "verified", "named"
"""Columns of nodes: whether its track is verified, what ends or begins there; only where any is."""


def space_unit(geometry: Geometry) -> str:
    """``um`` where the scale is known, else ``px``."""
    return "um" if geometry.unit == "micrometer" else "px"


def time_unit(geometry: Geometry) -> str:
    """``min`` where the interval is known, else ``frames``."""
    return "frames" if geometry.frame_interval is None else "min"


def size_unit(geometry: Geometry) -> str:
    """``um2`` or ``um3`` where the scale is known, else ``px``."""
    return f"um{geometry.ndim}" if geometry.unit == "micrometer" else "px"


def feature_unit(name: str, geometry: Geometry) -> str:
    """Unit of a column of `cells_by_track`, empty if it has none."""
    um, minutes = space_unit(geometry), time_unit(geometry)
    per = "min" if minutes == "min" else "frame"
    known = {"area": size_unit(geometry), "speed": f"{um}/{per}", "time": minutes}
    known |= dict.fromkeys(("z", "y", "x", "major", "minor", "border_distance"), um)
    return known.get(name, "")


def track_titles(geometry: Geometry) -> dict[str, str]:
    """Columns of `track_table` that have units, by their names without."""
    um, minutes = space_unit(geometry), time_unit(geometry)
    units = {
        "start": "frame", "end": "frame", "duration": minutes, "path_length": um,
        "displacement": um, "mean_speed": feature_unit("speed", geometry),
        "mean_area": size_unit(geometry), "growth": "1/h" if minutes == "min" else "1/frame",
    }  # fmt: skip
    return {name: f"{name} [{unit}]" for name, unit in units.items()}


def sizes_known(tracks: Tracks) -> bool:
    """Whether the areas of cells mean something: points without sizes have 1 throughout."""
    return bool((tracks.nodes["area"] != 1).any())


def track_table(tracks: Tracks) -> pd.DataFrame:
    """Summarise every track.

    Returns
    -------
    pandas.DataFrame
        Sorted by ``track_id``: ``lineage_id``; ``parent_id`` (tracks it came from, separated by
        blanks, empty at roots) and ``link`` (the event per parent); ``start [frame]``,
        ``end [frame]``; ``duration`` (time between first and last sight); ``detections``;
        ``path_length`` (sum of the steps), ``displacement`` (from first to last sight);
        ``mean_speed`` (path length by duration, empty if that is 0); ``generation``
        (divisions since the root); ``ends_in``: ``division``, ``merge``, ``split``,
        ``continuation`` (as another track), ``end of movie``, ``leaving`` (last seen within its
        own diameter of the frame's edge), ``unknown``, or what answers call it (``death``,
        ``exit``, ``fusion``); ``divisions`` (of it and its
        descendants); ``mean_area``; ``growth`` (slope of the logarithm of the area, empty below
        three sights; both empty if sizes are unknown); ``certainty`` (see `certainties`; empty
        where nothing is known of its events); ``verified`` where some tracks are: whether answers
        confirm all of its events; ``begins_in`` where answers name an end or a beginning:
        ``birth``, ``entry`` or nothing. Units stand in brackets in the header: um, min and 1/h
        where scale and interval are known, else px, frames and 1/frame.
    """
    geometry, margins = tracks.geometry, node_margins(tracks)
    title = track_titles(geometry)
    table = _summary(tracks, margins)
    ids, start, end = (table[name].to_numpy() for name in ("track_id", "start", "end"))
    if not (table["largest"].max() > table["smallest"].min()):  # sizes are unknown
        table["growth"] = np.nan
    if not sizes_known(tracks):
        table["mean_area"] = np.nan
    parents, kinds = _parents(ids, tracks.links)
    table["parent_id"], table["link"] = parents, kinds
    table["generation"] = generations(ids, start, tracks.links)
    table["ends_in"] = _endings(ids, start, end, table["at_edge"].to_numpy(), tracks)
    more = [name for name in (VERIFIED,) if name in tracks.nodes.columns]
    if NAMED in tracks.nodes.columns:
        _take_names(table, tracks)
        more.append("begins_in")
    table["divisions"] = _divisions(ids, start, tracks.links)
    table = table.rename(columns=title)
    return table[[title.get(name, name) for name in (*_COLUMNS, *more)]]


def _take_names(table: pd.DataFrame, tracks: Tracks) -> None:
    """Write what ends and beginnings were called into a table of tracks."""
    table["begins_in"] = ""
    row = {track: k for k, track in enumerate(table["track_id"])}
    nodes = tracks.nodes[tracks.nodes[NAMED] != ""]
    for track, frame, names in nodes[["track_id", "frame", NAMED]].itertuples(index=False):
        for name in names.split():
            ends = FATES[name][0] == Event.DISAPPEAR
            if table["end" if ends else "start"].iloc[row[track]] == frame:
                table.loc[row[track], "ends_in" if ends else "begins_in"] = name


_COLUMNS = (
    "track_id", "lineage_id", "parent_id", "link", "start", "end", "duration", "detections",
    "path_length", "displacement", "mean_speed", "generation", "ends_in", "divisions", "mean_area",
    "growth", "certainty",
)  # fmt: skip
"""Of the table of tracks, without units."""


def _summary(tracks: Tracks, margins: Array) -> pd.DataFrame:
    """What is known of every track by its own cells, with the smallest and largest area."""
    steps, nodes, geometry = sights(tracks), tracks.nodes, tracks.geometry
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
    elapsed = np.where(duration > 0, duration, np.nan)
    size, groups = float(np.prod(geometry.scale_array)), nodes.groupby("track_id")
    areas = steps.groupby("track_id")["area"]
    certainty = pd.Series(certainty_of(margins), index=nodes.index)
    known = {}
    if VERIFIED in nodes.columns:
        known[VERIFIED] = groups[VERIFIED].first().to_numpy()
    return pd.DataFrame(
        {
            "track_id": first.index.to_numpy(dtype=np.int64),
            "lineage_id": groups["lineage_id"].first().to_numpy(),
            "start": start,
            "end": end,
            "duration": duration if geometry.frame_interval else end - start,
            "detections": groups.size().to_numpy(),
            "path_length": path,
            "displacement": reach,
            "mean_speed": path / elapsed,
            "mean_area": areas.mean().to_numpy() * size,
            "growth": _growth(steps, geometry),
            "certainty": certainty.groupby(nodes["track_id"]).min().to_numpy(),
            "at_edge": _at_edge(last, geometry),
            "smallest": areas.min().to_numpy(),
            "largest": areas.max().to_numpy(),
            **known,
        }
    )


def certainties(tracks: Tracks) -> pd.Series[float]:
    """How probable the least certain event of every node is, shape (nodes,).

    Against the best alternative: an event of margin m has the probability 1 / (1 + exp(-m)). At
    least so probable, where only a lower bound on the margin is known. NaN if nothing is known
    of a node's events, 1 where answers leave no other.
    """
    return pd.Series(certainty_of(node_margins(tracks)), index=tracks.nodes.index)


def certainty_of(margin: Array) -> Array:
    """How probable events of some margins are, ``1 / (1 + exp(-margin))``."""
    from scipy.special import expit

    return np.asarray(expit(margin))


def node_margins(tracks: Tracks) -> Array:
    """Smallest margin of the events of each node, NaN if unknown, shape (nodes,).

    A lower bound on it, where that is all that is known of the events.
    """
    margin = margin_column(tracks.events)
    ids, row_of = tracks.nodes["id"].to_numpy(dtype=np.int64), rows_by_id(tracks)
    least, seen = np.full(len(ids), np.inf), np.zeros(len(ids), bool)
    for side in ("sources", "targets") if len(ids) else ():
        named = tracks.events[[side, margin]].explode(side).dropna().to_numpy(dtype=np.float64)
        cell = named[:, 0].astype(np.int64)
        place = row_of(cell)
        known = ids[place] == cell  # events of false detections name what is no node
        seen[place[known]] = True
        np.minimum.at(least, place[known], named[known, 1])
    least[~seen] = np.nan
    return least


def cells_by_track(tracks: Tracks) -> pd.DataFrame:
    """The cells along their tracks, one row per track and frame.

    Returns
    -------
    pandas.DataFrame
        Sorted by ``track_id`` and ``frame``: ``id`` (of the largest piece), ``lineage_id``,
        ``time``, position, ``area``, ``speed`` (by the step from the last sight; empty at the
        first), and whatever else was measured, the mean of the pieces weighted by their areas.
        Units: see `feature_unit`.
    """
    geometry, more = tracks.geometry, _measured(tracks)
    table = sights(tracks, more)
    step = table[["frame", *geometry.axes]].diff().to_numpy()
    step[~table["track_id"].duplicated().to_numpy(dtype=bool)] = np.nan
    interval = geometry.frame_interval or 1.0
    table["area"] *= float(np.prod(geometry.scale_array))
    table["time"] = table["frame"] * interval
    table["speed"] = np.sqrt((step[:, 1:] ** 2).sum(axis=1)) / (step[:, 0] * interval)
    head = ["id", "track_id", "lineage_id", "frame", "time", *geometry.axes, "area", "speed"]
    return table[[*head, *more]]


def cell_features(tracks: Tracks) -> list[str]:
    """Names of the numbers in `cells_by_track`."""
    return ["time", *tracks.geometry.axes, "area", "speed", *_measured(tracks)]


def _measured(tracks: Tracks) -> list[str]:
    """Numbers beside place and area that are known of the cells."""
    known = {"id", "file_id", "label", "frame", "track_id", "lineage_id", "area", "time", "speed"}
    known |= set(tracks.geometry.axes)
    kinds = tracks.nodes.dtypes
    columns = [str(c) for c in tracks.nodes.columns if kinds[c].kind in "iuf" and c not in known]
    return [c for c in columns if not c.startswith("axis_")]


def sights(tracks: Tracks, more: Sequence[str] = ()) -> pd.DataFrame:
    """One row per track and frame: centroid in the unit, summed area in pixels, other means.

    All means are weighted by the areas of the pieces.
    """
    nodes, axes = tracks.nodes, list(tracks.geometry.axes)
    weight = np.maximum(nodes["area"].to_numpy(dtype=np.float64), 1e-9)
    order = np.lexsort((-weight, nodes["frame"].to_numpy(), nodes["track_id"].to_numpy()))
    weight, new = weight[order], np.arange(len(order)) == 0
    for name in ("track_id", "frame"):
        values = nodes[name].to_numpy()[order]
        new[1:] |= values[1:] != values[:-1]
    starts, sights = np.flatnonzero(new), np.cumsum(new) - 1
    total = np.bincount(sights, weights=weight, minlength=len(starts))
    head = ("track_id", "frame", "id", "lineage_id")
    columns = {name: nodes[name].to_numpy()[order[starts]] for name in head}
    found = pd.DataFrame(columns | {"area": total}, copy=False)
    scales = dict(zip(axes, tracks.geometry.scale, strict=True))
    for name in (*axes, *more):
        values = nodes[name].to_numpy(dtype=np.float64)[order] * scales.get(name, 1.0)
        sums = np.bincount(sights, weights=values * weight, minlength=len(starts))
        # A cell in one piece keeps its values to the last digit.
        alone = np.diff(np.r_[starts, len(order)]) == 1
        found[name] = np.where(alone, values[starts], sums / np.where(total > 0, total, 1))
    return found


def _parents(ids: Index, links: pd.DataFrame) -> tuple[list[str], list[str]]:
    words = links[["parent_id", "event"]].astype(str).groupby(links["track_id"]).agg(" ".join)
    words = words.reindex(ids, fill_value="")
    return words["parent_id"].tolist(), words["event"].tolist()


def generations(ids: Index, start: Index, links: pd.DataFrame) -> Index:
    """Divisions before every track, by all ways it came, shape (tracks,)."""
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


def _divisions(ids: Index, start: Index, links: pd.DataFrame) -> Index:
    """Divisions of every track and its descendants, each counted once."""
    count = dict.fromkeys(ids.tolist(), 0)
    divides = links.loc[links["event"] == "divide", "parent_id"]
    count |= dict.fromkeys(divides.tolist(), 1)
    first = links.drop_duplicates("track_id")
    mother = dict(zip(first["track_id"].tolist(), first["parent_id"].tolist(), strict=True))
    for track in ids[np.argsort(-start, kind="stable")].tolist():
        if track in mother:
            count[mother[track]] += count[track]
    return np.asarray([count[i] for i in ids.tolist()], dtype=np.int64)


def _growth(steps: pd.DataFrame, geometry: Geometry) -> Array:
    """Slope of the log area of every track, shape (tracks,)."""
    interval = geometry.frame_interval
    hours = steps["frame"] * (1.0 if interval is None else interval / 60)
    table = pd.DataFrame({"t": hours, "a": np.log(steps["area"]), "track": steps["track_id"]})
    groups = table.groupby("track")
    table["t"] -= groups["t"].transform("mean")
    table["a"] -= groups["a"].transform("mean")
    table["ta"], table["tt"] = table["t"] * table["a"], table["t"] ** 2
    sums, counts = table.groupby("track")[["ta", "tt"]].sum(), groups.size()
    slope = sums["ta"] / sums["tt"].where(sums["tt"] > 0)
    return slope.where(counts >= 3).to_numpy(dtype=np.float64)


def _endings(ids: Index, start: Index, end: Index, at_edge: Mask, tracks: Tracks) -> Sequence[str]:
    ending = np.full(len(ids), "unknown", dtype=object)
    ending[at_edge] = "leaving"
    links = tracks.links
    child_begin = pd.Series(start, index=ids).reindex(links["track_id"]).to_numpy()
    parent = np.searchsorted(ids, links["parent_id"].to_numpy(dtype=np.int64))
    over = end[parent] < child_begin if len(links) else np.zeros(0, dtype=bool)
    event = links["event"].to_numpy(dtype=object)
    names = {"move": "continuation", "skip": "continuation", "split": "split", "merge": "merge"}
    for kind, name in (*names.items(), ("divide", "division")):
        ending[parent[over & (event == kind)]] = name
    ending[end == tracks.geometry.n_frames - 1] = "end of movie"
    return [str(e) for e in ending]


def _at_edge(last: pd.DataFrame, geometry: Geometry) -> Mask:
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


def with_verified(tracks: Tracks, chosen: Events, confirmed: Mask) -> Tracks:
    """The tracks with the column ``verified`` in their nodes, where some are.

    Parameters
    ----------
    tracks
        The tracks that the events amount to.
    chosen
        The events that hold, E of them, with rows of detections.
    confirmed
        Which of them answers confirm, shape (E,).
    """
    nodes = tracks.nodes
    if not confirmed.any() or not len(nodes):
        return tracks
    n = int(nodes["id"].max()) + 1

    def named(events: Events) -> Index:
        cells = np.concatenate([events.sources, events.targets], axis=1).ravel()
        return np.bincount(cells[(cells >= 0) & (cells < n)], minlength=n)

    happened = named(chosen)
    sure = (named(chosen.take(confirmed)) == happened) & (happened > 0)
    mine = nodes.assign(sure=sure[nodes["id"].to_numpy(dtype=np.int64)])
    verified = mine.groupby("track_id")["sure"].transform("all").to_numpy(dtype=bool)
    if not verified.any():
        return tracks
    return replace(tracks, nodes=nodes.assign(**{VERIFIED: verified}))


def with_fates(tracks: Tracks, names: Mapping[int, str]) -> Tracks:
    """The tracks with the column ``named`` in their nodes, where some ends or beginnings are.

    Parameters
    ----------
    tracks
        The tracks.
    names
        What the end or the beginning at a cell is, by the cell's id; both separated by a blank.
    """
    if not names:
        return tracks
    named = tracks.nodes["id"].map(dict(names)).fillna("").astype(object)
    return replace(tracks, nodes=tracks.nodes.assign(**{NAMED: named}))


def verified_tracks(tracks: Tracks) -> frozenset[int]:
    """Numbers of the verified tracks."""
    if VERIFIED not in tracks.nodes.columns:
        return frozenset()
    return frozenset(tracks.nodes.loc[tracks.nodes[VERIFIED], "track_id"].tolist())


# ---------------------------------------------------------------------- for napari


def to_napari(tracks: Tracks) -> tuple[Array, dict[str, NDArray[Any]], dict[int, list[int]]]:
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


def _histories(tracks: Tracks, ids: Index, frame: Index) -> dict[str, Any]:
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


def _graph(tracks: Tracks) -> dict[int, list[int]]:
    graph: dict[int, list[int]] = {}
    links = tracks.links
    for child, parent in zip(links["track_id"].tolist(), links["parent_id"].tolist(), strict=True):
        graph.setdefault(int(child), []).append(int(parent))
    return graph
