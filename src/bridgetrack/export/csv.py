"""Tables for spreadsheets and scripts."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.files import program_version, staged_files
from bridgetrack.movie.geometry import geometry_to_json
from bridgetrack.paged import Pages, ascending, in_parts
from bridgetrack.tracks.table import space_unit, track_table
from bridgetrack.tracks.tracks import Tracks, rows_by_id

SIDECAR = "units.json"
_AT_ONCE = 10_000
"""Rows that are written at once."""
_STANDARD = ("id", "frame", "label", "z", "y", "x", "area", "track_id")


def write_csv(tracks: Tracks, folder: Path | str) -> tuple[str, ...]:
    """Write ``detections.csv``, ``edges.csv``, ``events.csv``, ``tracks.csv``, ``units.json``.

    Columns of ``detections.csv`` are ``t,[z],y,x,id,parent_id,track_id,...``, positions in
    pixels; `read_tracks_csv` reads it back without loss.

    Parameters
    ----------
    tracks
        The tracks.
    folder
        Where to; made where it is missing. Files of these names are replaced.

    Returns
    -------
    tuple of str
        What the tables cannot hold.

    Raises
    ------
    OutputError
        Where the files cannot be written; nothing is left behind then.
    """
    notes, cells = csv_notes(tracks), plain_cells(tracks)
    with staged_files(Path(folder)) as staging:
        write = partial(_write, tracks.pages)
        write(cells, staging / "detections.csv")
        write(tracks.edges, staging / "edges.csv")
        write(tracks.events, staging / "events.csv")
        write(track_table(tracks), staging / "tracks.csv")
        sidecar = _sidecar(tracks, list(cells.columns), notes)
        text = json.dumps(sidecar, indent=1, allow_nan=False) + "\n"
        (staging / SIDECAR).write_text(text, encoding="utf-8")
    return notes


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


def csv_notes(tracks: Tracks) -> tuple[str, ...]:
    """What a table with one parent per row cannot hold."""
    many = _with_several_parents(tracks)
    if not many:
        return ()
    have = "detection has" if many == 1 else "detections have"
    return (f"{many} {have} several parents: parent_id names the first; all are in edges.csv",)


def _write(pages: Pages, table: pd.DataFrame, path: Path) -> None:
    """Write a table a part at a time, as its values as Python's would take much memory at once.

    pandas takes half as long again, for the same digits.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(table.columns)
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


def _sidecar(tracks: Tracks, columns: list[str], notes: tuple[str, ...]) -> dict[str, Any]:
    types = tracks.nodes.dtypes.drop([*_STANDARD], errors="ignore")
    kinds = {name: _KINDS.get(dtype.kind, "str") for name, dtype in types.items()}
    return {
        "program": "bridgetrack",
        "version": program_version(),
        "format": 1,
        "files": ["detections.csv", "edges.csv", "events.csv", "tracks.csv"],
        "geometry": geometry_to_json(tracks.geometry),
        "units": _units(tracks, columns),
        "dtypes": kinds,
        "notes": list(tracks.notes),
        "limits": list(notes),
    }


def _units(tracks: Tracks, columns: list[str]) -> dict[str, str]:
    unit = space_unit(tracks.geometry)
    pixels = dict.fromkeys(("z", "y", "x", "area"), "px")
    known = pixels | {"t": "frame", "major": unit, "minor": unit, "border_distance": unit}
    return {c: known[c] for c in columns if c in known}


_KINDS = {"i": "int64", "u": "int64", "b": "bool", "f": "float64"}
"""What every format holds, by numpy's kind; all others become text."""


def as_plain(values: np.ndarray) -> np.ndarray:
    """Values in one of the four kinds that every format holds."""
    if (kind := _KINDS.get(values.dtype.kind)) is not None:
        return values.astype(kind)
    return np.asarray([str(v) for v in values.tolist()], dtype=str)
