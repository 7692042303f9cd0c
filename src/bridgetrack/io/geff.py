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
from numpy.typing import NDArray

from bridgetrack.arrays import Index
from bridgetrack.detections.table import content
from bridgetrack.errors import InputError
from bridgetrack.files import as_path, in_one_go, program_version, writing
from bridgetrack.io.columns import guess_columns
from bridgetrack.io.csv import as_plain
from bridgetrack.io.tables import are_times, count_frames
from bridgetrack.movie.geometry import Geometry, GeometryField, geometry_to_json
from bridgetrack.movie.raw import micrometers, minutes, reading
from bridgetrack.schema import OpenEntry, check
from bridgetrack.tracks.tracks import MARGINS, Tracks, assemble_tracks

_UNSAFE = ("pickle",)


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
    _refuse_unsafe(path)
    try:
        graph = _graph(path)
    except Exception as error:
        raise InputError(f"{path}: cannot be read as GEFF ({error})") from error
    ours = (graph["metadata"].extra or {}).get("bridgetrack")
    if ours is not None:
        return _own(graph, ours, path)
    geometry, names, frame = _axes(graph, path)
    _check_stored(path, names)
    nodes = _nodes(graph, geometry, names, frame, path)
    pairs = np.asarray(graph["edge_ids"]).astype(np.int64).reshape(-1, 2)
    if not graph["metadata"].directed:
        pairs = _forward(pairs, nodes)
    edges = pd.DataFrame(pairs, columns=["source", "target"])
    return assemble_tracks(nodes, edges, geometry, source=str(path))


def is_geff(path: Path) -> bool:
    """Whether a folder is a GEFF store, whatever its name."""
    files = (path / ".zattrs", path / "zarr.json")
    try:
        return any('"geff"' in file.read_text(encoding="utf-8") for file in files if file.is_file())
    except (OSError, UnicodeDecodeError):
        return False


def _forward(pairs: NDArray[Any], nodes: pd.DataFrame) -> NDArray[Any]:
    """Edges with the earlier node first; their ids, shape (n, 2)."""
    rows = pd.Index(nodes["id"]).get_indexer(pd.Index(pairs.ravel()))
    when = nodes["frame"].to_numpy()[rows].reshape(-1, 2)
    return np.where(when[:, :1] > when[:, 1:], pairs[:, ::-1], pairs)


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

    try:
        image = next((e for _, e in ElementTree.iterparse(path) if e.tag == "ImageData"), None)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = Path(folder) / "tracks.geff"
            from_trackmate_xml_to_geff(path, store, discard_filtered_tracks=True)
            graph = _graph(store)
        spots = {k: _values(v) for k, v in graph["node_props"].items()}
        if "FRAME" not in spots:
            raise InputError(
                f"{path}: holds no tracks that TrackMate shows; track in TrackMate, let its "
                "filters show some tracks, and save again"
            )
        frame, radius = spots["FRAME"].astype(np.int64), spots["RADIUS"].astype(np.float64)
        units = {a.name: a.unit for a in graph["metadata"].axes}
        said = {} if image is None else image.attrib
        axes = [a for a in "zyx" if a != "z" or np.any(spots["POSITION_Z"] != 0)]
        sizes = {"z": "voxeldepth", "y": "pixelheight", "x": "pixelwidth"}
        pixel = np.array([float(said.get(sizes[a]) or 1) for a in axes])
        extents = {"z": "nslices", "y": "height", "x": "width"}
        shape = tuple(int(said.get(extents[a]) or 0) for a in axes)
        n_frames = max(int(said.get("nframes") or 1), int(frame.max(initial=0)) + 1)
        position = np.stack([spots[f"POSITION_{a.upper()}"] for a in axes], axis=1) / pixel
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a file of TrackMate ({error!r})") from error
    micro = micrometers(1, units["POSITION_X"])
    geometry = Geometry(
        n_frames,
        shape if all(shape) else None,
        tuple((pixel * (micro or 1.0)).tolist()),
        "pixel" if micro is None else "micrometer",
        minutes(said.get("timeinterval"), units["POSITION_T"]),
    )
    ids = np.asarray(graph["node_ids"]).astype(np.int64)
    nodes = pd.DataFrame(position, columns=axes)
    nodes = nodes.assign(id=ids, frame=frame, area=content(radius, len(axes)) / np.prod(pixel))
    nodes["label"] = nodes.groupby("frame").cumcount() + 1
    # edges that somebody drew by hand in TrackMate may point back in time
    edges = _forward(np.asarray(graph["edge_ids"]).astype(np.int64).reshape(-1, 2), nodes)
    links = pd.DataFrame(edges, columns=["source", "target"])
    return assemble_tracks(nodes, links, geometry, source=str(path))


def _graph(path: Path) -> Any:
    """The content of a store, in memory."""
    from geff.core_io import read_to_memory

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_to_memory(str(path))


def _refuse_unsafe(path: Path) -> None:
    """Refuse stores whose arrays would be decoded by running code from the file."""
    for name in (".zarray", "zarr.json", ".zmetadata"):
        for file in path.rglob(name):
            try:
                text = json.dumps(json.loads(file.read_text(encoding="utf-8"))).lower()
            except (OSError, ValueError, RecursionError) as error:
                raise InputError(f"{file}: cannot be read ({error})") from error
            if any(f'"{codec}"' in text for codec in _UNSAFE):
                raise InputError(f"{file}: stores with pickled arrays are not read")


def _check_stored(path: Path, names: list[str]) -> None:
    """Refuse a store in which chunks of positions are missing: they would be read as 0."""
    import zarr

    for name in names[-2:]:  # a depth may be 0 everywhere, and chunks of it absent for that
        with reading(path):
            array = zarr.open_array(path / "nodes" / "props" / name / "values", mode="r")
        if missing := array.nchunks - array.nchunks_initialized:
            raise InputError(
                f"{path}: {missing} of {array.nchunks} chunks of {name} are missing; copy the "
                "store again, or take it from a backup"
            )


def _edges(graph: Any) -> pd.DataFrame:
    pairs = np.asarray(graph["edge_ids"]).astype(np.int64).reshape(-1, 2)
    edges = pd.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1]})
    for name in ("event", "score", *MARGINS):
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


class _Links(OpenEntry):
    track_id: list[int]
    parent_id: list[int]
    event: list[str]


class _Own(OpenEntry):
    """What `write_geff` keeps of tracks beside the graph."""

    geometry: GeometryField
    links: _Links
    notes: list[str]


def _own(graph: Any, extra: Any, path: Path) -> Tracks:
    """Tracks of this program."""
    edges = _edges(graph)
    nodes = pd.DataFrame({"id": np.asarray(graph["node_ids"]).astype(np.int64)})
    for name, prop in graph["node_props"].items():
        nodes["frame" if name == "t" else name] = _values(prop)
    ours: _Own = check(_Own, extra, f"{path}, its 'extra' part")
    links = pd.DataFrame(ours.links.model_dump())
    links = links.astype({"track_id": np.int64, "parent_id": np.int64, "event": object})
    notes = tuple(ours.notes)
    return assemble_tracks(nodes, edges, ours.geometry, links=links, notes=notes, source=str(path))


def _axes(graph: Any, path: Path) -> tuple[Geometry, list[str], Index]:
    """Geometry, properties that are positions, and the frame of every node."""
    axes = graph["metadata"].axes or _usual_axes(graph)
    time = [a for a in axes if a.type == "time"]
    space = [a for a in axes if a.type == "space"]
    if len(time) != 1 or len(space) not in (2, 3):
        found = [f"{a.name} ({a.type})" for a in axes]
        raise InputError(f"{path}: needs one time axis and two or three space axes, found {found}")
    names = [a.name for a in space]
    if set(names) <= set("xyz"):
        names.sort(reverse=True)
    by_name = {a.name: a for a in space}
    times = _values(graph["node_props"][time[0].name]).astype(np.float64)
    interval = minutes(time[0].scale, time[0].scaled_unit)
    if np.any(times != np.rint(times)) or are_times(times, "t", time[0].unit or ""):
        what = f"{path}, axis {time[0].name}"
        numbers, counted = count_frames(times, str(time[0].unit), what)
        times = numbers.astype(np.float64)
        interval = interval or counted
    if np.any(times < 0):
        raise InputError(f"{path}: the axis {time[0].name} must count frames from 0")
    scales = [by_name[n].scale or 1.0 for n in names]
    units = [by_name[n].scaled_unit or by_name[n].unit for n in names]
    # Positions already in micrometres have pixels of one micrometre.
    micro = [micrometers(s, u) for s, u in zip(scales, units, strict=True)]
    unit, scale = "micrometer", tuple(m for m in micro if m is not None)
    if len(scale) < len(micro):
        unit, scale = "pixel", tuple(float(s) for s in scales)
    frame = times.astype(np.int64)
    return Geometry(int(frame.max(initial=0)) + 1, None, scale, unit, interval), names, frame


def _usual_axes(graph: Any) -> list[Any]:
    """Axes by the names of properties, where a store does not say them."""
    import geff_spec

    found = guess_columns(list(graph["node_props"]))
    kinds = {"frame": "time", "z": "space", "y": "space", "x": "space"}
    return [geff_spec.Axis(name=found[k], type=v) for k, v in kinds.items() if k in found]


def _nodes(
    graph: Any, geometry: Geometry, names: list[str], frame: Index, path: Path
) -> pd.DataFrame:
    props = graph["node_props"]
    nodes = pd.DataFrame({"id": np.asarray(graph["node_ids"]).astype(np.int64)})
    nodes["frame"] = frame
    for axis, name in zip(geometry.axes, names, strict=True):
        nodes[axis] = _values(props[name]).astype(np.float64)
        if not np.isfinite(nodes[axis]).all():
            lost = nodes["id"][~np.isfinite(nodes[axis])].iloc[0]
            raise InputError(f"{path}: the node {lost} has no position along {name}")
    nodes["area"] = _areas(graph, geometry.ndim)
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


def _areas(graph: Any, ndim: int) -> Any:
    """Area or volume of every node, 1 where it is not known."""
    props = {k: v for k, v in graph["node_props"].items() if v["values"].dtype.kind in "iuf"}
    found = guess_columns(list(props))
    radius = graph["metadata"].sphere or found.get("radius")
    if "area" in found:
        sizes = _values(props[found["area"]]).astype(np.float64)
    elif radius in props:
        sizes = content(_values(props[radius]).astype(np.float64), ndim)
    else:
        return 1.0
    return np.where(sizes > 0, sizes, 1.0)


def write_geff(tracks: Tracks, path: Path | str, *, labels_path: Path | str | None = None) -> None:
    """Write tracks to a new GEFF store, by custom ``NAME.geff``; `read_geff` gets back all of it.

    Nodes carry every column of ``tracks.nodes`` (the frame as ``t``), edges the event, score
    and margin; links between tracks, notes and geometry are kept under ``extra``. Track ids are
    named as tracklets where all tracks end in divisions, otherwise they are a plain property. The
    file of the segmentation is named as a related object. Raises an `OutputError` if the store
    cannot be written.
    """
    import geff_spec
    from geff.core_io import write_arrays

    nodes, edges = tracks.nodes, tracks.edges
    ids = nodes["id"].to_numpy(dtype=np.int64).astype(np.uint64)
    pairs = edges[["source", "target"]].to_numpy(dtype=np.int64).astype(np.uint64).reshape(-1, 2)
    node_props, edge_props = _props(nodes, "id"), _props(edges, "source", "target")
    related = None
    if labels_path is not None:
        related = [geff_spec.RelatedObject(path=str(labels_path), type="labels", node_prop="label")]
    depth = "z" if tracks.geometry.ndim == 3 else None
    metadata = geff_spec.GeffMetadata(
        directed=True,
        axes=_axes_of(tracks.geometry),
        node_props_metadata=_described(node_props),
        edge_props_metadata=_described(edge_props),
        track_node_props=_track_props(tracks),
        related_objects=related,
        display_hints=geff_spec.DisplayHint(
            display_horizontal="x", display_vertical="y", display_depth=depth, display_time="t"
        ),
        extra={"bridgetrack": _extra(tracks)},
    )
    path = as_path(path)
    with writing(path, "the graph"):
        in_one_go(write_arrays, path, ids, node_props, pairs, edge_props, metadata)


def _props(table: pd.DataFrame, *without: str) -> dict[str, dict[str, Any]]:
    """Columns as properties, those of the frame as ``t``."""
    columns = [c for c in table.columns if c not in without]
    return {
        "t" if c == "frame" else str(c): {"values": as_plain(table[c].to_numpy()), "missing": None}
        for c in columns
    }


def _described(props: dict[str, dict[str, Any]]) -> dict[str, Any]:
    import geff_spec

    return {
        name: geff_spec.PropMetadata(identifier=name, dtype=prop["values"].dtype)
        for name, prop in props.items()
    }


def _axes_of(geometry: Geometry) -> list[Any]:
    import geff_spec

    interval = geometry.frame_interval
    time = {"scale": interval, "scaled_unit": "minute"} if interval else {}
    axes = [geff_spec.Axis(name="t", type="time", unit="frame", **time)]
    for name, scale in zip(geometry.axes, geometry.scale, strict=True):
        axes.append(
            geff_spec.Axis(
                name=name, type="space", unit="pixel", scale=scale, scaled_unit=geometry.unit
            )
        )
    return axes


def _track_props(tracks: Tracks) -> dict[str, str] | None:
    """Where all tracks end in divisions, they are what the format calls tracklets."""
    only = tracks.links.groupby("parent_id").size()
    if (tracks.links["event"] == "divide").all() and (only > 1).all() and _in_one_piece(tracks):
        return {"tracklet": "track_id", "lineage": "lineage_id"}
    return None


def _in_one_piece(tracks: Tracks) -> bool:
    return not tracks.nodes.duplicated(["track_id", "frame"]).any()


def _extra(tracks: Tracks) -> dict[str, Any]:
    links = tracks.links
    return {
        "version": program_version(),
        "format": 1,
        "geometry": geometry_to_json(tracks.geometry),
        "links": {c: as_plain(links[c].to_numpy()).tolist() for c in links.columns},
        "notes": list(tracks.notes),
    }
