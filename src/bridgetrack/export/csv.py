"""Tables for spreadsheets and scripts, with our own names of columns or those of other trackers."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.errors import OutputError
from bridgetrack.files import program_version, staged_files
from bridgetrack.movie.geometry import geometry_to_json
from bridgetrack.paged import Pages, ascending, in_parts
from bridgetrack.tracks.table import space_unit, track_table
from bridgetrack.tracks.tracks import Tracks, rows_by_id

PRESETS = ("plain", "trackmate", "ilastik")
SIDECAR = "units.json"
_AT_ONCE = 10_000
"""Rows that are written at once."""
_STANDARD = ("id", "frame", "label", "z", "y", "x", "area", "track_id")


def trackmate_cells(tracks: Tracks) -> tuple[pd.DataFrame, list[list[str]]]:
    """TrackMate's table of spots and its three header rows below the first.

    Positions are in the geometry's unit, time in minutes where the interval is known;
    ``TRACK_ID`` is the lineage, as in TrackMate, counted from 0.
    """
    nodes, geometry = tracks.nodes, tracks.geometry
    lineages = np.unique(nodes["lineage_id"])
    size = np.prod(geometry.scale_array) * nodes["area"].to_numpy(dtype=np.float64)
    radius = np.sqrt(size / np.pi) if geometry.ndim == 2 else np.cbrt(size * 3 / (4 * np.pi))
    interval = geometry.frame_interval or 1.0
    columns = {
        "LABEL": ["ID" + str(i) for i in nodes["id"].tolist()],
        "ID": nodes["id"].to_numpy(),
        "TRACK_ID": np.searchsorted(lineages, nodes["lineage_id"]),
    }
    scales = dict(zip(geometry.axes, geometry.scale, strict=True))
    for axis in "xyz":
        here = nodes[axis].to_numpy(dtype=np.float64) * scales[axis] if axis in scales else 0.0
        columns[f"POSITION_{axis.upper()}"] = here
    columns |= {
        "POSITION_T": nodes["frame"].to_numpy() * interval,
        "FRAME": nodes["frame"].to_numpy(),
        "RADIUS": radius,
    }
    space = "(micron)" if space_unit(geometry) == "um" else "(pixel)"
    time = "(min)" if geometry.frame_interval else "(frame)"
    units = ["", "", "", space, space, space, time, "", space]
    names = ["Label", "Spot ID", "Track ID", "X", "Y", "Z", "T", "Frame", "Radius"]
    short = ["Label", "Spot ID", "Track ID", "X", "Y", "Z", "T", "Frame", "R"]
    return pd.DataFrame(columns), [names, short, units]


def trackmate_edges(tracks: Tracks) -> tuple[pd.DataFrame, list[list[str]]]:
    """TrackMate's table of edges and its three header rows below the first."""
    edges = tracks.edges
    table = pd.DataFrame(
        {
            "SPOT_SOURCE_ID": edges["source"],
            "SPOT_TARGET_ID": edges["target"],
            "LINK_COST": -edges["score"].to_numpy(dtype=np.float64),
        }
    )
    names = ["Source spot ID", "Target spot ID", "Edge cost"]
    return table, [names, ["Source ID", "Target ID", "Cost"], ["", "", ""]]


def ilastik_cells(tracks: Tracks) -> pd.DataFrame:
    """ilastik's table of tracking results; centres in pixels, axes in the order x, y, z.

    ``parentTrackId`` is 0 where there is none; a region in which cells merged has its own track,
    so ``mergerLabelId`` is 0 throughout.
    """
    nodes = tracks.nodes
    first = tracks.links[tracks.links["event"] != "merge"].drop_duplicates("track_id")
    parent = pd.Series(first["parent_id"].to_numpy(), index=first["track_id"].to_numpy())
    begin = nodes.groupby("track_id")["frame"].transform("min") == nodes["frame"]
    parents = parent.reindex(nodes["track_id"]).fillna(0).to_numpy(dtype=np.int64)
    columns = {
        "frame": nodes["frame"].to_numpy(),
        "labelimageId": nodes["label"].to_numpy(),
        "lineageId": nodes["lineage_id"].to_numpy(),
        "trackId": nodes["track_id"].to_numpy(),
        "parentTrackId": np.where(begin, parents, 0),
        "mergerLabelId": np.zeros(len(nodes), dtype=np.int64),
    }
    for k, axis in enumerate(reversed(tracks.geometry.axes)):
        columns[f"Object_Center_{k}"] = nodes[axis].to_numpy(dtype=np.float64)
    columns["Size_in_pixels_0"] = nodes["area"].to_numpy()
    return pd.DataFrame(columns)


def write_csv(tracks: Tracks, folder: Path | str, *, preset: str = "plain") -> tuple[str, ...]:
    """Write ``detections.csv``, ``edges.csv``, ``events.csv``, ``tracks.csv``, ``units.json``.

    Parameters
    ----------
    tracks
        The tracks.
    folder
        Where to; made where it is missing. Files of these names are replaced.
    preset
        Column names of ``detections.csv`` and ``edges.csv``: ``"plain"``
        (``t,[z],y,x,id,parent_id,track_id,...``, pixels; read back without loss by
        `read_tracks_csv`), ``"trackmate"`` (four header rows, physical units where known) or
        ``"ilastik"``.

    Returns
    -------
    tuple of str
        What the tables cannot hold.

    Raises
    ------
    OutputError
        Where the preset is unknown or the files cannot be written; nothing is left behind then.
    """
    if preset not in PRESETS:
        raise OutputError(f"there is no preset {preset!r}; known are {', '.join(PRESETS)}")
    notes = csv_notes(tracks, preset)
    cells, header = cells_table(tracks, preset)
    edges, edge_header = trackmate_edges(tracks) if preset == "trackmate" else (tracks.edges, None)
    with staged_files(Path(folder)) as staging:
        write = partial(_write, tracks.pages)
        write(cells, staging / "detections.csv", header)
        write(edges, staging / "edges.csv", edge_header)
        write(tracks.events, staging / "events.csv")
        write(track_table(tracks), staging / "tracks.csv")
        sidecar = _sidecar(tracks, list(cells.columns), preset, notes)
        text = json.dumps(sidecar, indent=1, allow_nan=False) + "\n"
        (staging / SIDECAR).write_text(text, encoding="utf-8")
    return notes


def cells_table(tracks: Tracks, preset: str) -> tuple[pd.DataFrame, list[list[str]] | None]:
    """``detections.csv`` for one of `PRESETS`, and the rows between its header and its values."""
    if preset == "trackmate":
        return trackmate_cells(tracks)
    return (ilastik_cells if preset == "ilastik" else plain_cells)(tracks), None


def plain_cells(tracks: Tracks) -> pd.DataFrame:
    """One row per detection: ``t,[z],y,x,id,parent_id,track_id,label,lineage_id,area,...``."""
    nodes = tracks.nodes
    columns: dict[str, Any] = {"t": nodes["frame"]}
    columns |= {axis: nodes[axis] for axis in tracks.geometry.axes}
    columns |= {"id": nodes["id"], "parent_id": first_parents(tracks)}
    columns |= {name: nodes[name] for name in ("track_id", "label", "lineage_id", "area")}
    columns |= {name: nodes[name] for name in nodes.columns if name not in {*_STANDARD, *columns}}
    # Columns as they are: those of a large movie lie on disk.
    return pd.DataFrame({name: column.array for name, column in columns.items()}, copy=False)


def first_parents(tracks: Tracks) -> pd.Series[Any]:
    """Id of the (first) parent of every node, missing at roots; nullable integers."""
    n, pages, row_of = len(tracks.nodes), tracks.pages, rows_by_id(tracks)
    source, target = (tracks.edges[name].to_numpy() for name in ("source", "target"))
    order = None if ascending(source) else pages.argsort(source)
    parent, root = pages.zeros(n, np.int64), pages.zeros(n, bool)
    root[:] = True
    for part in reversed(list(in_parts(len(source)))):
        rows = np.arange(part.start, min(part.stop, len(source)))
        rows = (rows if order is None else order[rows])[::-1]
        place = row_of(target[rows])  # the first of several is written last
        parent[place], root[place] = source[rows], False
    return pd.Series(pd.arrays.IntegerArray(parent, root), copy=False)


def _with_several_parents(tracks: Tracks) -> int:
    """How many detections have more than one parent."""
    target, row_of = tracks.edges["target"].to_numpy(), rows_by_id(tracks)
    seen, again = (tracks.pages.zeros(len(tracks.nodes), bool) for _ in range(2))
    for part in in_parts(len(target)):
        place = np.sort(row_of(target[part]))
        again[place[seen[place]]] = True
        again[place[1:][place[1:] == place[:-1]]] = True
        seen[place] = True
    return int(again.sum())


def csv_notes(tracks: Tracks, preset: str) -> tuple[str, ...]:
    """What a table with one parent per row cannot hold."""
    notes = []
    many = _with_several_parents(tracks)
    if many:
        column = "" if preset != "plain" else " parent_id names the first;"
        have = "detection has" if many == 1 else "detections have"
        notes.append(f"{many} {have} several parents:{column} all are in edges.csv")
    if preset == "ilastik":
        born = int((tracks.links["event"] == "merge").sum())
        if born:
            notes.append("ilastik's table has no place for merges; they are in events.csv")
    return tuple(notes)


def _write(
    pages: Pages, table: pd.DataFrame, path: Path, header: list[list[str]] | None = None
) -> None:
    """Write a table a part at a time, as its values as Python's would take much memory at once.

    pandas takes half as long again, for the same digits.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerows([table.columns, *(header or [])])
        for start in range(0, len(table), _AT_ONCE):
            part = table.iloc[start : start + _AT_ONCE]
            rows.writerows(zip(*(_values(part[name]) for name in part), strict=True))
            pages.let_go()


def _values(column: pd.Series[Any]) -> list[Any]:
    """Values for a table of text: nothing where they are missing, lists of numbers as words."""
    if column.name in ("sources", "targets"):
        return [" ".join(map(str, ids)) for ids in column]
    found = column.to_numpy(dtype=object)
    gone = column.isna().to_numpy()
    if gone.any():
        found = np.where(gone, "", found)
    return list(found.tolist())


def _sidecar(
    tracks: Tracks, columns: list[str], preset: str, notes: tuple[str, ...]
) -> dict[str, Any]:
    types = tracks.nodes.dtypes.drop([*_STANDARD], errors="ignore")
    kinds = {name: _KINDS.get(dtype.kind, "str") for name, dtype in types.items()}
    return {
        "program": "bridgetrack",
        "version": program_version(),
        "format": 1,
        "files": ["detections.csv", "edges.csv", "events.csv", "tracks.csv"],
        "preset": preset,
        "geometry": geometry_to_json(tracks.geometry),
        "units": _units(tracks, columns, preset),
        "dtypes": kinds if preset == "plain" else {},
        "notes": list(tracks.notes) if preset == "plain" else [],
        "limits": list(notes),
    }


def _units(tracks: Tracks, columns: list[str], preset: str) -> dict[str, str]:
    unit = space_unit(tracks.geometry)
    pixels = {"z": "px", "y": "px", "x": "px", "area": "px", "t": "frame", "frame": "frame"}
    known = {**pixels, "major": unit, "minor": unit, "border_distance": unit}
    if preset == "trackmate":
        known = {f"POSITION_{a}": unit for a in "XYZ"} | {"RADIUS": unit, "FRAME": "frame"}
        known["POSITION_T"] = "min" if tracks.geometry.frame_interval else "frame"
    if preset == "ilastik":
        known |= {f"Object_Center_{k}": "px" for k in range(3)}
    return {c: known[c] for c in columns if c in known}


_KINDS = {"i": "int64", "u": "int64", "b": "bool", "f": "float64"}
"""What every format holds, by numpy's kind; all others become text."""


def as_plain(values: np.ndarray) -> np.ndarray:
    """Values in one of the four kinds that every format holds."""
    if (kind := _KINDS.get(values.dtype.kind)) is not None:
        return values.astype(kind)
    return np.asarray([str(v) for v in values.tolist()], dtype=str)
