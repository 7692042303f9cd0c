"""What napari's File menu opens and saves: samples, CTC folders, projects, tables, tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridgetrack.errors import InputError
from bridgetrack.files import SAMPLE_SEQUENCE, refuse_inputs, replacing, sample_folder
from bridgetrack.io.csv import plain_cells
from bridgetrack.io.ctc import write_ctc
from bridgetrack.io.geff import write_geff
from bridgetrack.io.may_write import refuse_other, signed
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.file_layers import (
    Reader,
    csv_reading,
    folder_reading,
    image_data,
    labels_data,
    project_reading,
    trackmate_reading,
)
from bridgetrack.ui.layers import KEY, LayerData
from bridgetrack.ui.opening import beside


def folder_reader(path: str | list[str]) -> Reader | None:
    """Read a folder that holds a movie or masks, None for other things."""
    return beside(folder_reading(path))


def project_reader(path: str | list[str]) -> Reader | None:
    """Read a Bridgetrack project, None for other things."""
    return beside(project_reading(path))


def csv_reader(path: str | list[str]) -> Reader | None:
    """Read a CSV table of tracks or of detections, None for other tables."""
    return beside(csv_reading(path))


def trackmate_reader(path: str | list[str]) -> Reader | None:
    """Read the tracks in a file that TrackMate saved, None for other XML."""
    return beside(trackmate_reading(path))


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image, truth = folder / SAMPLE_SEQUENCE, folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA"
    (pixels, *look), cells = sample_layers("sample movie", "Sample movie", image, truth)
    return [(pixels.compute(), *look), cells]


def sample_layers(
    sample: str, name: str, image: Path, labels: Path, **known: Any
) -> list[LayerData]:
    """A sample as layers; its answers are kept in the user's data folder."""
    movie, cells = open_movie(image, **known), open_labels(labels, **known)
    layers = [image_data(movie, name, image), labels_data(cells, "Cells", labels)]
    for file, (_, options, _) in zip((image, labels), layers, strict=True):
        tags = options["metadata"][KEY]
        del tags["path"]
        tags.update(sample=sample, file=str(file), frame_interval=movie.geometry.frame_interval)
    return layers


def tracks_of(attributes: dict[str, Any]) -> Tracks:
    """The tracks that a layer shows.

    Raises
    ------
    InputError
        Where they do not come from here.
    """
    ours = attributes.get("metadata", {}).get(KEY, {}).get("tracks")
    if not isinstance(ours, Tracks):
        raise InputError(
            "these tracks do not come from Bridgetrack; save them with the program that made them"
        )
    return ours


def _read_from(attributes: dict[str, Any]) -> str | None:
    """The file that a layer came from, None where it is of no file."""
    path = attributes.get("metadata", {}).get(KEY, {}).get("path")
    return path if isinstance(path, str) else None


def write_csv_file(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a table of cells with tracks and parents."""
    target = Path(path)
    refuse_inputs([target], [_read_from(attributes)])
    table = plain_cells(tracks_of(attributes))
    with replacing(target, "the table") as file:
        table.to_csv(file, index=False)
    return [path]


def write_geff_store(path: str, data: Any, attributes: dict[str, Any]) -> list[str]:
    """Write a GEFF store."""
    refuse_inputs([Path(path)], [_read_from(attributes)])
    refuse_other(Path(path))
    with signed(Path(path)) as spare:
        write_geff(tracks_of(attributes), spare)
    return [path]


def write_ctc_folder(path: str, layers: list[LayerData]) -> list[str]:
    """Write masks and res_track.txt from a Tracks layer with its Labels layer."""
    tracks = next((x for x in layers if x[2] == "tracks"), None)
    labels = next((x for x in layers if x[2] == "labels"), None)
    if tracks is None or labels is None:
        raise InputError("choose the Tracks layer and its Labels layer together to write CTC")
    found = tracks_of(tracks[1])
    axes = "TZYX" if found.geometry.ndim == 3 else "TYX"
    folder = Path(path).with_suffix("")
    refuse_inputs([folder], [_read_from(layer[1]) for layer in layers])
    refuse_other(folder)
    cells = open_labels(labels[0], axes=axes, scale=found.geometry.scale)
    with signed(folder) as spare:
        write_ctc(found, cells, spare)
    return [str(folder)]
