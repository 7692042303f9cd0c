"""Lineage graphs in the Graph Exchange File Format (GEFF)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.export.csv import as_plain
from bridgetrack.files import program_version, refuse_foreign, staged_files
from bridgetrack.movie.geometry import Geometry, geometry_to_json
from bridgetrack.tracks.tracks import Tracks, chains, components, edge_rows, margin_column

_OURS = (".zgroup", ".zattrs", "zarr.json", "nodes", "edges", ".zmetadata")
_DESCRIPTIONS = {
    "label": "label in the segmentation",
    "area": "pixels or voxels",
    "track_id": "cell from birth to division",
    "lineage_id": "track of the first ancestor",
}


def write_geff(
    tracks: Tracks, path: Path | str, *, labels_path: Path | str | None = None
) -> tuple[str, ...]:
    """Write tracks to a GEFF store; `read_geff` gets back all of it.

    Nodes carry every column of ``tracks.nodes`` (the frame as ``t``), edges the event, score
    and margin; links, events, notes and geometry are kept under ``extra``.

    Parameters
    ----------
    tracks
        The tracks.
    path
        Name of the store, by custom ending in ``.geff``; an earlier store is replaced.
    labels_path
        The segmentation, named in the store as a related object.

    Returns
    -------
    tuple of str
        What other readers will not see: track or lineage ids that break the format's rules are
        kept as plain properties.

    Raises
    ------
    OutputError
        Where the store cannot be written; nothing is left behind then.
    """
    import geff_spec
    from geff.core_io import write_arrays

    nodes, edges = tracks.nodes, tracks.edges
    ids = nodes["id"].to_numpy(dtype=np.int64).astype(np.uint64)
    pairs = edges[["source", "target"]].to_numpy(dtype=np.int64).astype(np.uint64).reshape(-1, 2)
    node_props = {
        ("t" if c == "frame" else str(c)): _prop(nodes[c]) for c in nodes.columns if c != "id"
    }
    edge_props = {str(c): _prop(edges[c]) for c in edges.columns if c not in ("source", "target")}
    props, notes = track_props(tracks)
    related = None
    if labels_path is not None:
        related = [geff_spec.RelatedObject(path=str(labels_path), type="labels", node_prop="label")]
    depth = "z" if tracks.geometry.ndim == 3 else None
    metadata = geff_spec.GeffMetadata(
        directed=True,
        axes=_axes(tracks.geometry),
        node_props_metadata=_described(node_props),
        edge_props_metadata=_described(edge_props),
        track_node_props=props or None,
        related_objects=related,
        display_hints=geff_spec.DisplayHint(
            display_horizontal="x", display_vertical="y", display_depth=depth, display_time="t"
        ),
        extra={"bridgetrack": _extra(tracks)},
    )
    path = Path(path)
    refuse_foreign(path, lambda name: name in _OURS)
    with staged_files(path.parent) as staging:
        write_arrays(staging / path.name, ids, node_props, pairs, edge_props, metadata)
    return notes


def _prop(column: pd.Series[Any]) -> dict[str, Any]:
    return {"values": as_plain(column.to_numpy()), "missing": None}


def _described(props: dict[str, dict[str, Any]]) -> dict[str, Any]:
    import geff_spec

    return {
        name: geff_spec.PropMetadata(
            identifier=name, dtype=prop["values"].dtype, description=_DESCRIPTIONS.get(name)
        )
        for name, prop in props.items()
    }


def _axes(geometry: Geometry) -> list[Any]:
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


def track_props(tracks: Tracks) -> tuple[dict[str, str], tuple[str, ...]]:
    """Track and lineage ids that are what the format calls tracklets and lineages.

    A tracklet is a longest unbranched path, a lineage a connected component.
    """
    nodes = tracks.nodes
    src, tgt = edge_rows(nodes, tracks.edges, "the tracks")
    props, notes = {}, []
    if _same_groups(nodes["track_id"].to_numpy(), chains(len(nodes), src, tgt)):
        props["tracklet"] = "track_id"
    else:
        notes.append(
            "some tracks are not the longest unbranched paths that GEFF calls tracklets; "
            "track_id is a plain property"
        )
    if _same_groups(nodes["lineage_id"].to_numpy(), components(len(nodes), src, tgt)):
        props["lineage"] = "lineage_id"
    else:
        notes.append("merges tie lineages together, so lineage_id is a plain property")
    return props, tuple(notes)


def _same_groups(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two numberings put the same nodes together."""
    sizes = [len(np.unique(x, axis=0)) for x in (one, other, np.column_stack([one, other]))]
    return min(sizes) == max(sizes)


def _extra(tracks: Tracks) -> dict[str, Any]:
    events, links = tracks.events, tracks.links
    margin = margin_column(events)
    return {
        "version": program_version(),
        "format": 1,
        "geometry": geometry_to_json(tracks.geometry),
        "links": {c: as_plain(links[c].to_numpy()).tolist() for c in links.columns},
        "events": {
            "frame": [int(f) for f in events["frame"]],
            "event": [str(e) for e in events["event"]],
            "sources": [[int(i) for i in ids] for ids in events["sources"]],
            "targets": [[int(i) for i in ids] for ids in events["targets"]],
            "score": _nullable(events["score"].tolist()),
            margin: _nullable(events[margin].tolist()),
        },
        "notes": list(tracks.notes),
    }


def _nullable(values: Sequence[float]) -> list[float | None]:
    """JSON has no NaN."""
    return [float(v) if np.isfinite(v) else None for v in values]
