"""Saving Tracks layers by napari's File menu: CSV, GEFF, CTC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridgetrack.errors import InputError
from bridgetrack.export.csv import plain_cells
from bridgetrack.export.ctc import write_ctc
from bridgetrack.export.geff import write_geff
from bridgetrack.files import replacing
from bridgetrack.movie import open_labels
from bridgetrack.tracks.napari_tracks import from_napari
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.layers import KEY

FullLayerData = tuple[Any, dict[str, Any], str]


def tracks_of(data: Any, attributes: dict[str, Any]) -> Tracks:
    """The tracks of a layer: as tracked where they came from here, else from its arrays."""
    ours = attributes.get("metadata", {}).get(KEY, {}).get("tracks")
    if isinstance(ours, Tracks):
        return ours
    features = attributes.get("features", {})
    return from_napari(data, {k: features[k] for k in features}, attributes.get("graph"))


def write_csv_file(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a table of cells with tracks and parents."""
    target = Path(path)
    table = plain_cells(tracks_of(data, attributes))
    with replacing(target, "the table") as file:
        table.to_csv(file, index=False)
    return [path]


def write_geff_store(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a GEFF store."""
    write_geff(tracks_of(data, attributes), path)
    return [path]


def write_ctc_folder(path: str, layers: list[FullLayerData]) -> list[str]:
    """Write masks and res_track.txt from a Tracks layer with its Labels layer."""
    tracks = next((x for x in layers if x[2] == "tracks"), None)
    labels = next((x for x in layers if x[2] == "labels"), None)
    if tracks is None or labels is None:
        raise InputError("choose the Tracks layer and its Labels layer together to write CTC")
    found = tracks_of(tracks[0], tracks[1])
    axes = "TZYX" if found.geometry.ndim == 3 else "TYX"
    folder = Path(path).with_suffix("")
    write_ctc(found, open_labels(labels[0], axes=axes, scale=found.geometry.scale), folder)
    return [str(folder)]
