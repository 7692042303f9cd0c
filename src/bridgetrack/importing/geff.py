"""Lineage graphs in the Graph Exchange File Format (GEFF)."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry, GeometryField
from bridgetrack.schema import check
from bridgetrack.tracks.tracks import Tracks, assemble_tracks

_MICROMETERS = {"micrometer": 1.0, "nanometer": 1e-3, "millimeter": 1e3}
_MINUTES = {"minute": 1.0, "second": 1 / 60, "hour": 60.0, "millisecond": 1 / 60_000}
_UNSAFE = ("pickle",)


def read_geff(path: Path | str) -> Tracks:
    """Read tracks from a GEFF store, this program's (without loss) or another's.

    A store of another program needs a time axis that counts frames and two or three axes of
    space. Labels come from a property ``label``, ``seg_id`` or ``segmentation_id``, else they
    are numbered; tracks from the property that the store names as tracklet, else they are the
    chains between divisions.

    Raises
    ------
    InputError
        Where the store is absent, broken, undirected, unsafe, or lacks axes.
    """
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such GEFF store (it is a folder)")
    _refuse_unsafe(path)
    from geff.core_io import read_to_memory

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph: Any = read_to_memory(str(path))
    except Exception as error:
        raise InputError(f"{path}: cannot be read as GEFF ({error})") from error
    metadata = graph["metadata"]
    if not metadata.directed:
        raise InputError(f"{path}: the graph is undirected; lineages need directed edges")
    ours = (metadata.extra or {}).get("bridgetrack")
    edges = _edges(graph)
    if ours is not None:
        return _own(graph, edges, ours, path)
    geometry, names, time = _axes(graph, path)
    nodes = _nodes(graph, geometry, names, time, path)
    return assemble_tracks(nodes, edges, geometry, source=str(path))


def _refuse_unsafe(path: Path) -> None:
    """Refuse stores whose arrays would be decoded by running code from the file."""
    for name in (".zarray", "zarr.json", ".zmetadata"):
        for file in path.rglob(name):
            try:
                text = json.dumps(json.loads(file.read_text(encoding="utf-8"))).lower()
            except (OSError, ValueError) as error:
                raise InputError(f"{file}: cannot be read ({error})") from error
            if any(f'"{codec}"' in text for codec in _UNSAFE):
                raise InputError(f"{file}: stores with pickled arrays are not read")


def _edges(graph: Any) -> pd.DataFrame:
    pairs = np.asarray(graph["edge_ids"]).astype(np.int64).reshape(-1, 2)
    edges = pd.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1]})
    for name in ("event", "score", "margin"):
        if name in graph["edge_props"]:
            edges[name] = _values(graph["edge_props"][name])
    return edges


def _values(prop: Any) -> NDArray[Any]:
    values = np.asarray(prop["values"])
    missing = prop.get("missing")
    if missing is not None and np.any(missing) and values.dtype.kind in "iuf":
        values = values.astype(np.float64)
        values[np.asarray(missing, dtype=bool)] = np.nan
    return values.astype(object) if values.dtype.kind in "UTS" else values


def _own(graph: Any, edges: pd.DataFrame, ours: dict[str, Any], path: Path) -> Tracks:
    nodes = pd.DataFrame({"id": np.asarray(graph["node_ids"]).astype(np.int64)})
    for name, prop in graph["node_props"].items():
        nodes["frame" if name == "t" else name] = _values(prop)
    try:
        geometry = check(GeometryField, ours["geometry"], f"{path}: 'extra': geometry")
        events = pd.DataFrame(
            {
                "frame": np.asarray(ours["events"]["frame"], dtype=np.int64),
                "event": np.asarray(ours["events"]["event"], dtype=object),
                "sources": [tuple(int(i) for i in ids) for ids in ours["events"]["sources"]],
                "targets": [tuple(int(i) for i in ids) for ids in ours["events"]["targets"]],
                "score": np.asarray(ours["events"]["score"], dtype=np.float64),
                "margin": np.asarray(ours["events"]["margin"], dtype=np.float64),
            }
        )
        links = pd.DataFrame(
            {
                "track_id": np.asarray(ours["links"]["track_id"], dtype=np.int64),
                "parent_id": np.asarray(ours["links"]["parent_id"], dtype=np.int64),
                "event": np.asarray(ours["links"]["event"], dtype=object),
            }
        )
        notes = tuple(str(n) for n in ours["notes"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its 'extra' part is damaged ({error!r})") from error
    return assemble_tracks(
        nodes, edges, geometry, events=events, links=links, notes=notes, source=str(path)
    )


def _axes(graph: Any, path: Path) -> tuple[Geometry, list[str], str]:
    axes = graph["metadata"].axes or []
    time = [a for a in axes if a.type == "time"]
    space = [a for a in axes if a.type == "space"]
    if len(time) != 1 or len(space) not in (2, 3):
        found = [f"{a.name} ({a.type})" for a in axes]
        raise InputError(f"{path}: needs one time axis and two or three space axes, found {found}")
    names = [a.name for a in space]
    if set(names) <= set("xyz"):
        names.sort(reverse=True)
    by_name = {a.name: a for a in space}
    frames = _values(graph["node_props"][time[0].name])
    if np.any(frames != np.rint(frames)) or np.any(frames < 0):
        raise InputError(
            f"{path}: the axis {time[0].name} must count frames from 0 in whole numbers"
        )
    scales = [by_name[n].scale or 1.0 for n in names]
    units = [by_name[n].scaled_unit or by_name[n].unit for n in names]
    physical = all(u in _MICROMETERS for u in units)
    # Positions already in micrometres have pixels of one micrometre.
    scale = tuple(
        float(s) * (_MICROMETERS[str(u)] if physical else 1.0)
        for s, u in zip(scales, units, strict=True)
    )
    minute = _MINUTES.get(str(time[0].scaled_unit))
    interval = float(time[0].scale) * minute if time[0].scale and minute else None
    n_frames = int(frames.max()) + 1 if len(frames) else 1
    unit = "micrometer" if physical else "pixel"
    return Geometry(n_frames, None, scale, unit, interval), names, time[0].name


def _nodes(graph: Any, geometry: Geometry, names: list[str], time: str, path: Path) -> pd.DataFrame:
    props = graph["node_props"]
    nodes = pd.DataFrame({"id": np.asarray(graph["node_ids"]).astype(np.int64)})
    nodes["frame"] = _values(props[time]).astype(np.int64)
    for axis, name in zip(geometry.axes, names, strict=True):
        nodes[axis] = _values(props[name]).astype(np.float64)
    nodes["area"] = _values(props["area"]).astype(np.float64) if "area" in props else 1.0
    nodes["label"] = nodes.groupby("frame").cumcount() + 1
    for name in ("label", "seg_id", "segmentation_id"):
        if name in props and props[name]["values"].dtype.kind in "iu":
            labels = nodes.assign(label=_values(props[name]))
            if not labels.duplicated(["frame", "label"]).any():
                nodes["label"] = labels["label"].astype(np.int64)
                break
    tracklet = (graph["metadata"].track_node_props or {}).get("tracklet")
    if tracklet in props:
        tracks = _values(props[tracklet])
        if tracks.dtype.kind not in "iu":
            raise InputError(f"{path}: the tracklet property {tracklet} must be integers")
        nodes["track_id"] = tracks.astype(np.int64) + int(tracks.min() < 1) * (1 - tracks.min())
    return nodes
