"""Tracks in numbers: one row per track, and one per cell and frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.hypotheses.events import FATES, Event, Events
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import MARGIN, Tracks

VERIFIED, NAMED = "verified", "named"
"""Columns of nodes, if any: whether the track is verified, the cause of an end or beginning."""


def units(geometry: Geometry) -> dict[str, str]:
    """Units of the columns of `track_table` and of `cells_by_track` that have one.

    ``um`` and ``min`` where the scale and the interval are known, else ``px`` and ``frames``.
    """
    scaled, timed = geometry.unit == "micrometer", geometry.frame_interval is not None
    um = "um" if scaled else "px"
    minutes, speed = ("min", f"{um}/min") if timed else ("frames", f"{um}/frame")
    places = ("z", "y", "x", "major", "minor", "border_distance", "path_length", "displacement")
    return {
        **dict.fromkeys(places, um),
        **dict.fromkeys(("area", "mean_area"), f"{um}{geometry.ndim}"),
        **dict.fromkeys(("speed", "mean_speed"), speed),
        **dict.fromkeys(("time", "duration"), minutes),
        **dict.fromkeys(("start", "end"), "frame"),
        "growth": "1/h" if timed else "1/frame",
    }


def titles(geometry: Geometry) -> dict[str, str]:
    """The columns that have units, with these in brackets, by their names without."""
    return {name: f"{name} [{unit}]" for name, unit in units(geometry).items()}


def sizes_known(tracks: Tracks) -> bool:
    """Whether the areas of cells are known: points without sizes have the area 1."""
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
    geometry, nodes, links, steps = tracks.geometry, tracks.nodes, tracks.links, sights(tracks)
    groups, axes = steps.groupby("track_id"), list(geometry.axes)
    first, last = groups.first(), groups.last()
    ids = first.index.to_numpy(dtype=np.int64)
    start, end = first["frame"].to_numpy(), last["frame"].to_numpy()
    hop = steps[axes].diff().to_numpy()
    hop[~steps["track_id"].duplicated().to_numpy(dtype=bool)] = 0.0
    steps["hop"] = np.sqrt((hop**2).sum(axis=1))
    path = steps.groupby("track_id")["hop"].sum().to_numpy()
    duration = (end - start) * (geometry.frame_interval or 1)
    area = groups["area"].mean().to_numpy() * float(np.prod(geometry.scale_array))
    # Without sizes all areas are alike.
    sized = len(steps) > 0 and steps["area"].max() > steps["area"].min()
    parents, kinds = _parents(ids, links)
    columns: dict[str, Any] = {
        "track_id": ids,
        "lineage_id": first["lineage_id"].to_numpy(),
        "parent_id": parents,
        "link": kinds,
        "start": start,
        "end": end,
        "duration": duration,
        "detections": nodes.groupby("track_id").size().to_numpy(),
        "path_length": path,
        "displacement": np.sqrt(((last[axes] - first[axes]).to_numpy() ** 2).sum(axis=1)),
        "mean_speed": path / np.where(duration > 0, duration, np.nan),
        "generation": generations(ids, start, links),
        "ends_in": _endings(ids, start, end, _at_edge(last, geometry), tracks),
        "divisions": _divisions(ids, start, links),
        "mean_area": area if sizes_known(tracks) else np.nan,
        "growth": _growth(steps, geometry) if sized else np.nan,
        "certainty": certainties(tracks).groupby(nodes["track_id"]).min().to_numpy(),
    }
    if VERIFIED in nodes.columns:
        columns[VERIFIED] = nodes.groupby("track_id")[VERIFIED].first().to_numpy()
    table = pd.DataFrame(columns)
    if NAMED in nodes.columns:
        _take_names(table, tracks)
    return table.rename(columns=titles(geometry))


def _take_names(table: pd.DataFrame, tracks: Tracks) -> None:
    """Write the named causes of ends and beginnings into a table of tracks."""
    table["begins_in"] = ""
    row = {track: k for k, track in enumerate(table["track_id"])}
    nodes = tracks.nodes[tracks.nodes[NAMED] != ""]
    for track, frame, names in nodes[["track_id", "frame", NAMED]].itertuples(index=False):
        for name in names.split():
            ends = FATES[name][0] == Event.DISAPPEAR
            if table["end" if ends else "start"].iloc[row[track]] == frame:
                table.loc[row[track], "ends_in" if ends else "begins_in"] = name


def certainties(tracks: Tracks) -> pd.Series[float]:
    """How probable the least certain event of every node is, shape (nodes,).

    Against the best alternative: an event of margin m has the probability 1 / (1 + exp(-m)). A
    lower bound if only a lower bound on the margin is known. NaN if nothing is known about a node's
    events, 1 if answers leave no alternative.
    """
    return pd.Series(certainty_of(node_margins(tracks)), index=tracks.nodes.index)


def certainty_of(margin: Array) -> Array:
    """Probability of events with some margins, ``1 / (1 + exp(-margin))``."""
    from scipy.special import expit

    return np.asarray(expit(margin))


def node_margins(tracks: Tracks) -> Array:
    """Smallest margin of the events of each node, NaN if unknown, shape (nodes,)."""
    ids = pd.Index(tracks.nodes["id"])
    least, seen = np.full(len(ids), np.inf), np.zeros(len(ids), bool)
    for side in ("sources", "targets"):
        named = tracks.events[[side, MARGIN]].explode(side).dropna().to_numpy(dtype=np.float64)
        place = ids.get_indexer(named[:, 0].astype(np.int64))
        known = place >= 0  # events of false detections name cells that are no nodes
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
        Units: see `units`.
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
    """Names of the measures of cells other than position and area."""
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
        # The values of a cell in one piece stay exact.
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

    They are built from the `chosen` events, of which answers confirm some, shape (E,).
    """

    def named(events: Events) -> Mask:
        cells = np.concatenate([events.sources, events.targets], axis=1)
        return np.isin(tracks.nodes["id"], cells)

    if not confirmed.any():
        return tracks
    nodes, others = tracks.nodes, named(chosen.take(~confirmed))
    sure = nodes.assign(sure=named(chosen.take(confirmed)) & ~others)
    verified = sure.groupby("track_id")["sure"].transform("all").to_numpy(dtype=bool)
    if not verified.any():
        return tracks
    return replace(tracks, nodes=nodes.assign(**{VERIFIED: verified}))


def with_fates(tracks: Tracks, names: Mapping[int, str]) -> Tracks:
    """The tracks with the column ``named`` in their nodes, where some ends or beginnings are.

    `names` are by the cell's id; where both are named, they are separated by a blank.
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
