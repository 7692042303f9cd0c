"""Lineage graphs in the Graph Exchange File Format (GEFF), and TrackMate's files through it."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import content
from bridgetrack.errors import InputError
from bridgetrack.files import as_path, in_one_go, program_version, writing
from bridgetrack.io.columns import SCORE_COLUMNS, guess_columns, known_columns, shown
from bridgetrack.io.csv import as_plain
from bridgetrack.io.tables import are_times, count_frames
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.movie.raw import micrometers, minutes, reading
from bridgetrack.movie.zarr_store import check_chunks
from bridgetrack.schema import OpenEntry, check
from bridgetrack.tracks.tracks import Tracks, assemble_tracks, components

_JOINED = "component_id"
"""Property of nodes for connected components, if these differ from `lineage_id`."""


def read_geff(path: Path | str) -> Tracks:
    """Read tracks from a GEFF store, this program's (its tracks without loss) or another's.

    A store of another program needs a time axis, of frames or of times in equal steps, and two or
    three axes of space; where it names no axes, properties such as t, y and x are taken. Labels
    come from a property ``label``, ``seg_id`` or ``segmentation_id``, otherwise they are numbered;
    tracks from the property that the store names as tracklet, otherwise they are the chains between
    divisions; areas from a property of areas, volumes or radii.

    Raises
    ------
    InputError
        If the store is absent, broken, unsafe, or lacks axes or positions.
    """
    path = as_path(path)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such GEFF store (it is a folder)")
    with reading(path, "a GEFF store"):
        _refuse_unsafe(path)
        found, edges, metadata = _graph(path)
        ours = (metadata.extra or {}).get("bridgetrack")
        if ours is not None:
            return _own(found, edges, ours, path)
        geometry, names, frame = _axes(found, metadata, path)
        _check_stored(path, names)
        nodes = _nodes(found, metadata, names, frame, path)
        edges = edges[["source", "target"]] if metadata.directed else _forward(edges, nodes)
    return assemble_tracks(nodes, edges, geometry, source=str(path))


def read_edge_scores(path: Path) -> tuple[pd.DataFrame, Array | None]:
    """Read the scores of the edges of a GEFF store, which may be of candidates as HOCT writes them.

    Returns a table of ``frame``, ``source``, ``target_frame``, ``target`` and ``score``, and None
    where source and target are labels. In a store without labels they are rows of the array
    returned, with the frame and the position of every cell. An edge whose score is missing or -1
    (HOCT's mark of one that it did not score) is left out. Raises an `InputError` as `read_geff`
    does, and if it is not clear which property of the edges is the score.
    """
    with reading(path, "a GEFF store"):
        _refuse_unsafe(path)
        found, edges, metadata = _graph(path)
        _, names, frame = _axes(found, metadata, path)
        _check_stored(path, names)
    numbers = sorted(set(map(str, edges.select_dtypes("number"))) - {"source", "target"})
    usual = known_columns(numbers, {"score": SCORE_COLUMNS["score"]})["score"]
    if usual is None and len(numbers) != 1:
        raise InputError(
            f"{path}: which property of its edges is the score is not clear; name it similarity, "
            f"score, probability or weight; its numbers are {shown(numbers) or 'none'}"
        )
    score = edges[usual or numbers[0]].to_numpy(dtype=np.float64)
    scored = np.isfinite(score) & (score != -1)
    edges = _forward(edges[scored], pd.DataFrame({"id": found["id"], "frame": frame}))
    ids = pd.Index(found["id"])
    source, target = (ids.get_indexer(pd.Index(edges[end])) for end in ("source", "target"))
    label, cells = _labels(found, frame), None
    if label is None:
        # a flat movie has a depth, too, where HOCT writes it
        names = [name for name in names if len(names) < 3 or name != names[0] or found[name].any()]
        cells = np.column_stack([frame, *(found[name].to_numpy(np.float64) for name in names)])
        label = np.arange(len(found))
    table = pd.DataFrame({
        "frame": frame[source], "target_frame": frame[target],
        "source": label[source], "target": label[target],
        "score": score[scored],
    })  # fmt: skip
    return table, cells


def is_geff(path: Path) -> bool:
    """Whether a folder is a GEFF store, whatever its name."""
    files = (path / ".zattrs", path / "zarr.json")
    try:
        return any('"geff"' in file.read_text(encoding="utf-8") for file in files if file.is_file())
    except (OSError, UnicodeDecodeError):
        return False


def is_trackmate(path: Path | str) -> bool:
    """Whether a file begins as TrackMate's do; no more of it is read."""
    try:
        return next(e.tag for _, e in ElementTree.iterparse(path, ["start"])) == "TrackMate"
    except (OSError, StopIteration, ElementTree.ParseError):
        return False


def read_trackmate(path: Path | str) -> Tracks:
    """Read tracks from a file that TrackMate saved (XML).

    These are the tracks that TrackMate shows: spots and tracks that its filters hide are left
    out, as are spots in no track. Positions become pixels by the pixel size that the file names.
    The area is that of a disc or ball of the spot's radius; labels are numbered.

    Raises an `InputError` if the file is absent, damaged, or was not saved by TrackMate.
    """
    path = as_path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if not is_trackmate(path):
        raise InputError(
            f"{path}: this is not what Save writes in TrackMate, which begins with <TrackMate>; "
            "open the tracks there and save them"
        )
    from geff.convert import from_trackmate_xml_to_geff

    with reading(path, "a file of TrackMate"):
        image = next((e for _, e in ElementTree.iterparse(path) if e.tag == "ImageData"), None)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = Path(folder) / "tracks.geff"
            from_trackmate_xml_to_geff(path, store, discard_filtered_tracks=True)
            spots, edges, metadata = _graph(store)
        if "FRAME" not in spots:
            raise InputError(
                f"{path}: holds no tracks that TrackMate shows; track in TrackMate, let its "
                "filters show some tracks, and save again"
            )
        frame = spots["FRAME"].to_numpy(dtype=np.int64)
        units = {a.name: a.unit for a in metadata.axes}
        said = {} if image is None else image.attrib
        axes = [a for a in "zyx" if a != "z" or (spots["POSITION_Z"] != 0).any()]
        sizes = {"z": "voxeldepth", "y": "pixelheight", "x": "pixelwidth"}
        pixel = np.array([float(said.get(sizes[a]) or 1) for a in axes])
        extents = {"z": "nslices", "y": "height", "x": "width"}
        shape = tuple(int(said.get(extents[a]) or 0) for a in axes)
        micro = micrometers(1, units["POSITION_X"])
        geometry = Geometry(
            max(int(said.get("nframes") or 1), int(frame.max(initial=0)) + 1),
            shape if all(shape) else None,
            tuple((pixel * (micro or 1.0)).tolist()),
            "pixel" if micro is None else "micrometer",
            minutes(said.get("timeinterval"), units["POSITION_T"]),
        )
        places = [f"POSITION_{a.upper()}" for a in axes]
        nodes = _nodes(spots[["id", *places, "RADIUS"]], metadata, places, frame, path)
        nodes[axes] /= pixel
        nodes["area"] /= np.prod(pixel)
    # edges that somebody drew by hand in TrackMate may point back in time
    return assemble_tracks(nodes, _forward(edges, nodes), geometry, source=str(path))


def _graph(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    """Nodes and edges of a store with their properties that are single values, and metadata."""
    from geff.core_io import read_to_memory

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = read_to_memory(str(path))

    def table(kind: str) -> dict[str, NDArray[Any]]:
        return {k: _values(v) for k, v in graph[kind].items() if v["values"].ndim == 1}

    pairs = np.asarray(graph["edge_ids"]).astype(np.int64).reshape(-1, 2)
    ends = {"source": pairs[:, 0], "target": pairs[:, 1]}
    ids = {"id": np.asarray(graph["node_ids"]).astype(np.int64)}
    nodes = pd.DataFrame({**ids, **table("node_props"), **ids}, copy=False)
    edges = pd.DataFrame({**ends, **table("edge_props"), **ends}, copy=False)
    return nodes, edges, graph["metadata"]


def _values(prop: Any) -> NDArray[Any]:
    values = np.asarray(prop["values"])
    missing = prop.get("missing")
    if missing is not None and np.any(missing) and values.dtype.kind in "iuf":
        values = values.astype(np.float64)
        values[np.asarray(missing, dtype=bool)] = np.nan
    return values.astype(object) if values.dtype.kind in "UTS" else values


def _forward(edges: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """Edges with the earlier node first."""
    pairs = edges[["source", "target"]].to_numpy()
    rows = pd.Index(nodes["id"]).get_indexer(pd.Index(pairs.ravel()))
    when = nodes["frame"].to_numpy()[rows].reshape(-1, 2)
    pairs = np.where(when[:, :1] > when[:, 1:], pairs[:, ::-1], pairs)
    return pd.DataFrame(pairs, columns=["source", "target"])


def _refuse_unsafe(path: Path) -> None:
    """Refuse stores whose arrays would be decoded by running code from the file."""
    for name in (".zarray", "zarr.json", ".zmetadata"):
        for file in path.rglob(name):
            with reading(file, "JSON"):
                text = json.dumps(json.loads(file.read_text(encoding="utf-8"))).lower()
            if '"pickle"' in text:
                raise InputError(f"{file}: stores with pickled arrays are not read")


def _check_stored(path: Path, names: list[str]) -> None:
    """Refuse a store in which chunks of positions are missing: they would be read as 0."""
    for name in names[-2:]:  # a depth may be 0 everywhere, and chunks of it absent for that
        place = path / "nodes" / "props" / name / "values"
        check_chunks(zarr.open_array(place, mode="r"), place, every=True)


class _Links(OpenEntry):
    track_id: list[int]
    parent_id: list[int]
    event: list[str]


class _Own(OpenEntry):
    """Data of tracks that `write_geff` stores beside the graph."""

    geometry: GeometryField
    links: _Links
    notes: list[str]


def _own(nodes: pd.DataFrame, edges: pd.DataFrame, extra: Any, path: Path) -> Tracks:
    """Tracks of this program."""
    ours: _Own = check(_Own, extra, f"{path}, its 'extra' part")
    links = pd.DataFrame(ours.links.model_dump())
    links = links.astype({"track_id": np.int64, "parent_id": np.int64, "event": object})
    nodes = nodes.rename(columns={"t": "frame"}).drop(columns=_JOINED, errors="ignore")
    notes = tuple(ours.notes)
    return assemble_tracks(nodes, edges, ours.geometry, links=links, notes=notes, source=str(path))


def _axes(found: pd.DataFrame, metadata: Any, path: Path) -> tuple[Geometry, list[str], Index]:
    """Geometry, properties that are positions, and the frame of every node."""
    axes = metadata.axes or _usual_axes(list(map(str, found)))
    time = [a for a in axes if a.type == "time"]
    space = {a.name: a for a in axes if a.type == "space"}
    if len(time) != 1 or len(space) not in (2, 3):
        listed = [f"{a.name} ({a.type})" for a in axes]
        raise InputError(f"{path}: needs one time axis and two or three space axes, found {listed}")
    names: list[str] = sorted(space, reverse=True) if set(space) <= set("xyz") else list(space)
    times = found[time[0].name].to_numpy(dtype=np.float64)
    interval = minutes(time[0].scale, time[0].scaled_unit)
    if np.any(times != np.rint(times)) or are_times(times, "t", time[0].unit or ""):
        frame, counted = count_frames(times, str(time[0].unit), f"{path}, axis {time[0].name}")
        interval = interval or counted
    elif np.any(times < 0):
        raise InputError(f"{path}: the axis {time[0].name} must count frames from 0")
    else:
        frame = times.astype(np.int64)
    scales = [space[n].scale or 1.0 for n in names]
    units = [space[n].scaled_unit or space[n].unit for n in names]
    # Positions already in micrometres have pixels of one micrometre.
    micro = [micrometers(s, u) for s, u in zip(scales, units, strict=True)]
    unit, scale = "micrometer", tuple(m for m in micro if m is not None)
    if len(scale) < len(micro):
        unit, scale = "pixel", tuple(float(s) for s in scales)
    return Geometry(int(frame.max(initial=0)) + 1, None, scale, unit, interval), names, frame


def _usual_axes(names: list[str]) -> list[Any]:
    """Axes by the names of properties, where a store does not say them."""
    import geff_spec

    found = guess_columns(names)
    kinds = {"frame": "time", "z": "space", "y": "space", "x": "space"}
    return [geff_spec.Axis(name=found[k], type=v) for k, v in kinds.items() if k in found]


def _nodes(
    found: pd.DataFrame, metadata: Any, names: list[str], frame: Index, path: Path
) -> pd.DataFrame:
    """Nodes for `assemble_tracks`, of positions in the properties of some names."""
    numeric = [str(name) for name in found if found[name].dtype.kind in "iuf"]
    nodes = pd.DataFrame({"id": found["id"], "frame": frame})
    for axis, name in zip("zyx"[-len(names) :], names, strict=True):
        nodes[axis] = found[name].astype(np.float64)
        if not np.isfinite(nodes[axis]).all():
            lost = nodes["id"][~np.isfinite(nodes[axis])].iloc[0]
            raise InputError(f"{path}: the node {lost} has no position along {name}")
    size = guess_columns(numeric)
    radius = metadata.sphere or size.get("radius")
    nodes["area"] = 1.0
    if "area" in size:
        nodes["area"] = found[size["area"]].astype(np.float64)
    elif radius in numeric:
        nodes["area"] = content(found[radius].to_numpy(dtype=np.float64), len(names))
    nodes["area"] = nodes["area"].where(nodes["area"] > 0, 1.0)
    known = _labels(found, frame)
    nodes["label"] = nodes.groupby("frame").cumcount() + 1 if known is None else known
    whole = set(found.select_dtypes("integer"))
    tracklet = (metadata.track_node_props or {}).get("tracklet")
    if tracklet in found:
        tracks = found[tracklet]
        if tracklet not in whole:
            raise InputError(f"{path}: the tracklet property {tracklet} must be integers")
        nodes["track_id"] = tracks.astype(np.int64) + int(tracks.min() < 1) * (1 - tracks.min())
    return nodes


def _labels(found: pd.DataFrame, frame: Index) -> Index | None:
    """Labels of nodes; None where no property holds them."""
    whole = set(found.select_dtypes("integer"))
    for name in [n for n in ("label", "seg_id", "segmentation_id") if n in whole]:
        label = found[name].to_numpy(dtype=np.int64)
        if not pd.MultiIndex.from_arrays([frame, label]).has_duplicates:
            return label
    return None


def write_geff(tracks: Tracks, path: Path | str, *, labels_path: Path | str | None = None) -> None:
    """Write tracks to a new GEFF store, by custom ``NAME.geff``; `read_geff` gets back all of it.

    Nodes carry every column of ``tracks.nodes`` (the frame as ``t``), edges the event, score
    and margin; links between tracks, notes and geometry are kept under ``extra``. Track ids are
    named as tracklets where all tracks end in divisions, otherwise they are a plain property;
    lineages are always named, by a property of their own where cells of several are merged. The
    file of the segmentation is named as a related object. Raises an `OutputError` if the store
    cannot be written.
    """
    import geff_spec
    from geff.core_io import write_arrays

    (nodes, track_props), links = _track_props(tracks), tracks.links
    ids = nodes["id"].to_numpy(dtype=np.int64).astype(np.uint64)
    pairs = tracks.edges[["source", "target"]].to_numpy(dtype=np.int64).astype(np.uint64)
    related = None
    if labels_path is not None:
        related = [geff_spec.RelatedObject(path=str(labels_path), type="labels", node_prop="label")]
    depth = "z" if tracks.geometry.ndim == 3 else None
    kept = {
        "version": program_version(),
        "format": 1,
        "geometry": geometry_to_json(tracks.geometry),
        "links": {c: as_plain(links[c].to_numpy()).tolist() for c in links.columns},
        "notes": list(tracks.notes),
    }
    metadata = geff_spec.GeffMetadata(
        directed=True,
        axes=_axes_of(tracks.geometry),
        node_props_metadata={},  # written by geff
        edge_props_metadata={},
        track_node_props=track_props,
        related_objects=related,
        display_hints=geff_spec.DisplayHint(
            display_horizontal="x", display_vertical="y", display_depth=depth, display_time="t"
        ),
        extra={"bridgetrack": kept},
    )
    node_props, edge_props = _props(nodes, "id"), _props(tracks.edges, "source", "target")
    path = as_path(path)
    with writing(path, "the graph"):
        in_one_go(write_arrays, path, ids, node_props, pairs.reshape(-1, 2), edge_props, metadata)


def _props(table: pd.DataFrame, *without: str) -> dict[str, dict[str, Any]]:
    """Columns as properties, those of the frame as ``t``."""
    columns = table.drop(columns=[*without]).rename(columns={"frame": "t"})
    return {
        str(name): {"values": as_plain(column.to_numpy()), "missing": None}
        for name, column in columns.items()
    }


def _axes_of(geometry: Geometry) -> list[Any]:
    from geff_spec import Axis

    interval = geometry.frame_interval
    time = {"scale": interval, "scaled_unit": "minute"} if interval else {}
    space = {"type": "space", "unit": "pixel", "scaled_unit": geometry.unit}
    scales = zip(geometry.axes, geometry.scale, strict=True)
    return [
        Axis(name="t", type="time", unit="frame", **time),
        *(Axis(name=name, scale=scale, **space) for name, scale in scales),
    ]


def _track_props(tracks: Tracks) -> tuple[pd.DataFrame, dict[str, str]]:
    """Nodes, and their columns that are tracklets and lineages in the sense of the format."""
    nodes, lineage = tracks.nodes, "lineage_id"
    # a lineage of the format is a connected component, also over a merge, where ours are two
    ends = pd.Index(nodes["id"]).get_indexer(pd.Index(np.ravel(tracks.edges[["source", "target"]])))
    joined = components(len(nodes), ends[::2], ends[1::2]) + 1
    both = pd.DataFrame({"ours": nodes[lineage].to_numpy(), "joined": joined}).drop_duplicates()
    if both["ours"].duplicated().any() or both["joined"].duplicated().any():
        nodes, lineage = nodes.assign(**{_JOINED: joined}), _JOINED
    children = tracks.links.groupby("parent_id").size()
    divide = (tracks.links["event"] == "divide").all() and (children > 1).all()
    if divide and not nodes.duplicated(["track_id", "frame"]).any():
        return nodes, {"tracklet": "track_id", "lineage": lineage}
    return nodes, {"lineage": lineage}
