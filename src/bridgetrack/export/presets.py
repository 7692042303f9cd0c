"""Column names of other trackers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bridgetrack.export.track_table import space_unit
from bridgetrack.tracks.tracks import Tracks

PRESETS = ("plain", "trackmate", "ilastik")


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
