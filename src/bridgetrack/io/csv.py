"""Tracks as tables for spreadsheets and scripts: written, and read from many programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.arrays import Index
from bridgetrack.errors import InputError
from bridgetrack.files import as_path, program_version, writing
from bridgetrack.io.columns import LINK_COLUMNS, known_columns, plain_names, shown
from bridgetrack.io.tables import NOTHING, PIECES, SIDECAR, CellTable, read_cells
from bridgetrack.io.text_table import read_text_table
from bridgetrack.movie.geometry import geometry_to_json
from bridgetrack.movie.raw import reading
from bridgetrack.tracks.table import sights, sizes_known, track_table, units
from bridgetrack.tracks.tracks import EDGE_EVENTS, MARGINS, Tracks, assemble_tracks

_AT_ONCE = 10_000
"""Rows that are written at once."""
_FILES = ("detections.csv", "edges.csv", "events.csv", "tracks.csv")
_STANDARD = ("id", "frame", "label", "z", "y", "x", "area", "track_id")


def write_csv(tracks: Tracks, folder: Path | str) -> tuple[str, ...]:
    """Write ``detections.csv``, ``edges.csv``, ``events.csv``, ``tracks.csv``, ``units.json``.

    Columns of ``detections.csv`` are ``t,[z],y,x,id,parent_id,track_id,...``, positions in
    pixels; `read_tracks_csv` reads it back without loss. A cell that is drawn in pieces has one row
    there, and one per piece in ``pieces.csv``. Returns notes about data that the tables cannot
    hold. Raises an `OutputError` if they cannot be written.
    """
    folder, notes, (cells, pieces) = as_path(folder), csv_notes(tracks), plain_cells(tracks)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _write(cells, folder / "detections.csv")
        if len(pieces):
            _write(pieces, folder / PIECES)
        _write(tracks.edges, folder / "edges.csv")
        _write(tracks.events, folder / "events.csv")
        _write(track_table(tracks), folder / "tracks.csv")
        sidecar = _sidecar(tracks, list(cells.columns), notes)
        sidecar["files"] += [PIECES] * bool(len(pieces))
        text = json.dumps(sidecar, indent=1, allow_nan=False) + "\n"
        (folder / SIDECAR).write_text(text, encoding="utf-8")
    return notes


def plain_cells(tracks: Tracks) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per track and frame, and one per piece of those that are drawn in pieces.

    Columns are ``t,[z],y,x,id,parent_id,track_id,label,lineage_id,area,...``; areas are empty
    where the sizes of cells are not known. A cell in pieces has the sum of their areas, their
    centroid, and all else of the largest.
    """
    nodes, axes = tracks.nodes, list(tracks.geometry.axes)
    columns: dict[str, Any] = {"t": nodes["frame"]}
    columns |= {axis: nodes[axis] for axis in axes}
    columns |= {"id": nodes["id"], "parent_id": first_parents(tracks)}
    columns |= {name: nodes[name] for name in ("track_id", "label", "lineage_id", "area")}
    if not sizes_known(tracks):
        columns["area"] = pd.Series(np.nan, index=nodes.index)
    columns |= {name: nodes[name] for name in nodes.columns if name not in {*_STANDARD, *columns}}
    cells = pd.DataFrame({name: column.array for name, column in columns.items()}, copy=False)
    parted = cells.duplicated(["t", "track_id"], keep=False).to_numpy()
    pieces = cells[parted]
    if not parted.any():
        return cells, pieces
    in_pixels = replace(tracks.geometry, scale=(1.0,) * len(axes))
    joined = sights(replace(tracks, nodes=nodes[parted], geometry=in_pixels)).set_index("id")
    largest = pieces[pieces["id"].isin(joined.index)].copy()
    measured = [*axes, "area"] if sizes_known(tracks) else axes
    largest[measured] = joined.loc[largest["id"], measured].to_numpy()
    whole = pd.concat([cells[~parted], largest]).sort_index()
    same = ["t", "track_id"]  # a parent is named by its largest piece, since others are in no row
    shown = pieces[same].merge(largest[[*same, "id"]], on=same)["id"].set_axis(pieces["id"])
    parent = whole["parent_id"]
    return whole.assign(parent_id=parent.map(shown).astype("Int64").fillna(parent)), pieces


def first_parents(tracks: Tracks) -> pd.Series[Any]:
    """Id of the (first) parent of every node, missing at roots; nullable integers."""
    source, target = (tracks.edges[name].to_numpy() for name in ("source", "target"))
    order = np.argsort(source, kind="stable")[::-1]  # the first of several is written last
    place = pd.Index(tracks.nodes["id"]).get_indexer(target[order])
    parent, root = np.zeros(len(tracks.nodes), np.int64), np.ones(len(tracks.nodes), bool)
    parent[place], root[place] = source[order], False
    return pd.Series(pd.arrays.IntegerArray(parent, root), copy=False)


def csv_notes(tracks: Tracks) -> tuple[str, ...]:
    """Notes about tracks that a table with one parent per row cannot hold."""
    many = int((tracks.edges["target"].value_counts() > 1).sum())
    if not many:
        return ()
    have = "detection has" if many == 1 else "detections have"
    return (f"{many} {have} several parents: parent_id names the first; all are in edges.csv",)


def _write(table: pd.DataFrame, path: Path) -> None:
    """Write a table a part at a time, as words take much more memory than numbers."""
    for start in range(0, max(len(table), 1), _AT_ONCE):
        part = table.iloc[start : start + _AT_ONCE]
        for name in ("sources", "targets"):
            if name in table:
                part = part.assign(**{name: [" ".join(map(str, ids)) for ids in part[name]]})
        with path.open("a" if start else "w", encoding="utf-8", newline="") as file:
            part.to_csv(file, index=False, header=start == 0, lineterminator="\n")


def _sidecar(tracks: Tracks, columns: list[str], notes: tuple[str, ...]) -> dict[str, Any]:
    types = tracks.nodes.dtypes.drop([*_STANDARD], errors="ignore")
    kinds = {name: _KINDS.get(dtype.kind, "str") for name, dtype in types.items()}
    return {
        "program": "bridgetrack",
        "version": program_version(),
        "format": 1,
        "files": list(_FILES),
        "geometry": geometry_to_json(tracks.geometry),
        "units": _units(tracks, columns),
        "dtypes": kinds,
        "notes": list(tracks.notes),
        "limits": list(notes),
    }


def _units(tracks: Tracks, columns: list[str]) -> dict[str, str]:
    unit, geometry = units(tracks.geometry)["major"], tracks.geometry
    scaled = geometry.unit == "micrometer" and set(geometry.scale) == {1.0}
    um = "um" if scaled else "px"
    known = dict.fromkeys(("z", "y", "x"), um) | {"area": f"{um}{geometry.ndim}"}
    known |= {"t": "frame", "major": unit, "minor": unit, "border_distance": unit}
    return {c: known[c] for c in columns if c in known}


_KINDS = {"i": "int64", "u": "int64", "b": "bool", "f": "float64"}
"""Types that every format holds, by numpy's kind; all others become text."""


def as_plain(values: np.ndarray) -> np.ndarray:
    """Values in one of the four kinds that every format holds."""
    if (kind := _KINDS.get(values.dtype.kind)) is not None:
        return values.astype(kind)
    return np.asarray([str(v) for v in values.tolist()], dtype=str)


def read_tracks_csv(
    path: Path | str, columns: Mapping[str, str | None] | None = None, **how: Any
) -> Tracks:
    """Read tracks with lineages from CSV files.

    The lineage comes from the first of: the files beside the table (``edges.csv`` for
    ``detections.csv``, ``X_edges.csv`` for ``X_nodes.csv``); a column of
    parents; a column of tracks with, if there is one, a column of parent tracks. Tracks written
    by `write_csv` are read back without loss; their events follow from ``edges.csv``.

    Parameters
    ----------
    path, columns
        See `read_detections_csv`.
    **how
        ``scale``, ``unit`` and others, see `read_detections_csv`.

    Raises
    ------
    InputError
        If nothing says which cell comes from which, a parent is in the future or unknown, or
        the files are unreadable; names file and row.
    """
    path = as_path(path)
    cells = read_cells(path, columns, pieces=True, **how)
    beside, notes = _beside(path), list(cells.notes)
    if beside is not None and "id" not in cells.columns:
        raise InputError(
            f"{path}: {beside.name} names cells by ids, and no column holds unique ones"
        )
    if beside is not None:
        graph = _known_only(_read_edges(beside), cells, notes)
    else:
        graph = _edges_from(cells, _parents(cells))
    nodes = _nodes(cells, graph, notes)
    links = None
    if cells.sidecar is not None:
        links = _own_links(path)
        notes.extend(cells.sidecar.notes)
    return assemble_tracks(
        nodes, graph, cells.geometry, links=links, notes=tuple(notes), source=str(path)
    )


def _beside(path: Path) -> Path | None:
    """The table of edges that belongs to a table of cells."""
    ours = path.name == "detections.csv"
    edges = path.with_name("edges.csv" if ours else path.name.replace("_nodes.csv", "_edges.csv"))
    return edges if edges != path and edges.is_file() else None


def _known_only(graph: pd.DataFrame, cells: CellTable, notes: list[str]) -> pd.DataFrame:
    """Edges without those of cells that were left out because they have no size."""
    if cells.complete:
        return graph
    known = graph[["source", "target"]].isin(cells.table["id"].to_numpy()).all(axis=1)
    if not known.all():
        notes.append(f"{int((~known).sum())} edges of the rows left out were left out")
    return graph[known].reset_index(drop=True)


def _parents(cells: CellTable) -> Index:
    """Id of the parent of every cell, `NOTHING` where it has none."""
    table = cells.table
    # a column of parents says it where some have one, or there are no tracks that could
    if "parent" in table and ("track" not in table or bool((table["parent"] > 0).any())):
        parent = table["parent"].to_numpy(dtype=np.int64)
        return parent if (table["id"] == 0).any() else np.where(parent == 0, NOTHING, parent)
    if "track" not in table:
        raise InputError(
            f"{cells.text.source}: nothing says which cell comes from which; name a column of "
            "parents or of tracks in the column mapping, or give a table of edges"
        )
    rows = table[table["track"] != NOTHING].sort_values(["track", "frame"], kind="stable")
    track = rows["track"]

    def refuse(wrong: pd.Series[bool], what: Callable[[int], str]) -> None:
        cells.text.refuse(wrong.to_numpy(), what, lines=rows.index)

    refuse(
        rows.duplicated(["track", "frame"]),
        lambda k: (
            f"the track {track.iloc[k]} has two cells in frame {rows['frame'].iloc[k]}, so it is "
            "not a track but a lineage; give a table of edges or a column of parents"
        ),
    )
    again = track == track.shift()
    parents = rows["id"].shift().where(again, NOTHING)
    if "parent_track" in rows:
        mother = rows["parent_track"]
        refuse(
            again & (mother != mother.shift()),
            lambda k: f"the track {track.iloc[k]} names different parents in its rows",
        )
        last = rows.groupby("track")["id"].last()
        named = ~again & (mother > 0)
        refuse(
            named & ~mother.isin(last.index),
            lambda k: f"the parent track {mother.iloc[k]} is not in the table",
        )
        parents = parents.mask(named, mother.map(last))
    return parents.reindex(table.index, fill_value=NOTHING).to_numpy(dtype=np.int64)


def _edges_from(cells: CellTable, parent: Index) -> pd.DataFrame:
    """Edges from the id of the parent of every cell."""
    ids, frame = (cells.table[c].to_numpy(dtype=np.int64) for c in ("id", "frame"))
    child = parent != NOTHING
    at = pd.Index(ids).get_indexer(pd.Index(parent))
    unknown = child & (at < 0)
    if not cells.complete:
        child &= ~unknown
    else:
        cells.text.refuse(unknown, lambda k: f"the parent {parent[k]} is not in the table")
    cells.text.refuse(
        child & (frame[at] >= frame),
        lambda k: (
            f"the cell {ids[k]} in frame {frame[k]} has the parent {parent[k]} in frame "
            f"{frame[at[k]]}; a parent must be in an earlier frame"
        ),
    )
    return pd.DataFrame({"source": parent[child], "target": ids[child]})


def _nodes(cells: CellTable, graph: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    table, axes = cells.table, cells.geometry.axes
    nodes = table[["id", "frame", "label", *axes, "area"]].reset_index(drop=True)
    if "track" in table:
        track = table["track"].to_numpy(dtype=np.int64).copy()
        alone = track == NOTHING
        if track.min() == 0:
            track += 1 - alone
        track[alone] = max(int(track.max()), 0) + 1 + np.arange(int(alone.sum()))
        if _names_tracks(track, nodes["id"].to_numpy(dtype=np.int64), graph):
            nodes["track_id"] = track
        else:
            notes.append(
                f"the column {cells.columns['track']!r} names whole lineages; tracks were "
                "renumbered from birth to division"
            )
    for name, dtype in (cells.sidecar.dtypes if cells.sidecar is not None else {}).items():
        nodes[name] = _column(cells, name, dtype)
    return nodes


def _names_tracks(track: np.ndarray, ids: np.ndarray, graph: pd.DataFrame) -> bool:
    """Whether no division happens inside a track."""
    if "event" in graph.columns:
        graph = graph[graph["event"] == "divide"]
    else:
        graph = graph[graph["source"].duplicated(keep=False)]
    track_of = pd.Series(track, index=ids)
    mothers = track_of.reindex(graph["source"]).to_numpy()
    return not np.any(mothers == track_of.reindex(graph["target"]).to_numpy())


def _column(cells: CellTable, name: str, dtype: str) -> np.ndarray:
    if name not in cells.text.header:
        raise InputError(f"{cells.text.source}: the column {name!r} of its sidecar is missing")
    if dtype == "float64":
        return cells.text.numbers(name, empty=np.nan)
    if dtype == "int64":
        return cells.text.integers(name)
    text = cells.text.cells[name].to_numpy(dtype=object)
    return text == "True" if dtype == "bool" else text


def _read_edges(path: Path) -> pd.DataFrame:
    """Read ``source`` and ``target``, and ``event``, ``score``, margins where they are there."""
    text = read_text_table(path)
    plain = plain_names(text.header)
    source, target = known_columns(text.header, LINK_COLUMNS).values()
    if source is None or target is None:
        raise InputError(f"{path}: needs the columns source and target, found {shown(text.header)}")
    edges = pd.DataFrame({"source": text.integers(source), "target": text.integers(target)})
    if "event" in plain:
        kinds = text.cells[plain["event"]].str.strip()
        known = ", ".join(EDGE_EVENTS)
        text.refuse(
            ~kinds.isin(EDGE_EVENTS).to_numpy(),
            lambda k: f"{kinds.iloc[k]!r} is not an event of edges; known are {known}",
        )
        edges["event"] = kinds.to_numpy(dtype=object)
    for name in ("score", *MARGINS):
        if name in plain:
            # an event that answers settle has no rival, and an infinite margin
            edges[name] = text.numbers(plain[name], empty=np.nan, infinite=name in MARGINS)
    return edges


def _own_links(detections: Path) -> pd.DataFrame | None:
    """Links between tracks from the ``tracks.csv`` beside a table that this program wrote."""
    path = detections.with_name("tracks.csv")
    if not path.is_file():
        return None
    text = read_text_table(path)
    with reading(path, "a table of tracks"):
        words = text.cells[["parent_id", "link"]].apply(lambda column: column.str.split())
        words.insert(0, "track_id", text.integers("track_id"))
        links = words.explode(["parent_id", "link"]).dropna().rename(columns={"link": "event"})
        return links.astype({"parent_id": np.int64, "event": object}).reset_index(drop=True)
