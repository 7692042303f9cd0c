"""Files and folders as layers, and the reader of napari's File menu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import napari
import numpy as np
from qtpy.QtCore import QThread
from qtpy.QtWidgets import QApplication, QMainWindow

from bridgetrack.detections.table import Detections, detections_at
from bridgetrack.errors import BridgetrackError
from bridgetrack.files import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.io.ctc import is_ctc, read_ctc
from bridgetrack.io.geff import is_trackmate, read_trackmate
from bridgetrack.io.tables import read_detections_csv, table_holds
from bridgetrack.movie import Movie, looks_like_labels, open_labels, open_movie
from bridgetrack.movie.opening import movie_path, scaled_like
from bridgetrack.pipeline.project import is_project, load_project
from bridgetrack.tracks.numbers import layer_data
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.layers import (
    IMPORTED,
    KEY,
    LayerData,
    placement,
    points_data,
    tag,
    whole_numbers,
)

if TYPE_CHECKING:
    from bridgetrack.ui.state import ViewerState

Columns = dict[str, str] | None
Reader = Callable[[Path], list[LayerData]]

_COLOURS = ("gray", "green", "magenta", "cyan", "yellow", "red", "blue")
"""Colours of the channels of a movie, in order."""


def _known(role: str, movie: Movie, path: Path | None, **more: Any) -> dict[str, Any]:
    """Metadata of a layer of a movie."""
    own = {"path": path and str(path), "frame_interval": movie.geometry.frame_interval}
    return tag(role, **own, **more)


def image_data(
    movie: Movie, name: str, path: Path | None, channel: int | str = 0, **more: Any
) -> LayerData:
    """A channel of a movie as the data of an image layer."""
    k = movie.channel_number(channel)
    meta, where = _known("image", movie, path, **more), placement(movie.geometry)
    look = {"colormap": "gray", **_contrast(movie, k)}
    if len(movie.channels) > 1:
        name = f"{name}, {movie.channels[k]}"
        look |= {"colormap": _COLOURS[k % len(_COLOURS)], "blending": "additive"}
    return movie.array[:, k], {"name": name, "metadata": meta, **look, **where}, "image"


def _contrast(movie: Movie, channel: int) -> dict[str, tuple[float, float]]:
    """Limits that a few bright pixels do not darken, from one plane in the middle."""
    plane = movie.array[movie.n_frames // 2, channel]
    if plane.ndim == 3:
        plane = plane[plane.shape[0] // 2]
    low, high = np.percentile(np.asarray(plane.compute()), (1.0, 99.7)).tolist()
    return {"contrast_limits": (low, high)} if high > low else {}


def labels_data(movie: Movie, name: str, path: Path | None, **more: Any) -> LayerData:
    """A label movie as the data of a Labels layer, in memory, so that it can be painted."""
    meta, where = _known("labels", movie, path, **more), placement(movie.geometry)
    pixels = whole_numbers(movie.array[:, 0].compute(), movie.source)
    return pixels, {"name": name, "metadata": meta, "opacity": 0.3, **where}, "labels"


def tracks_data(tracks: Tracks, name: str, path: Path) -> LayerData:
    """Tracks as the data of a Tracks layer."""
    data, features, graph = layer_data(tracks)
    meta = tag(IMPORTED, path=str(path), tracks=tracks)
    where = placement(tracks.geometry)
    options = {"name": name, "metadata": meta, "features": features, "graph": graph, **where}
    return data, options, "tracks"


def _reading(path: Path) -> Reader | None:
    """The reader of a file or folder that states its content; None for others."""
    if is_project(path):
        return _read_project
    if path.is_dir():
        if is_ctc(path):
            return _read_ctc
        return movie_layers if _is_movie(path) else None
    if is_trackmate(path):
        return _read_tracks
    return {"tracks": _read_tracks, "cells": _read_detections}.get(table_holds(path))


def _is_movie(path: Path) -> bool:
    try:
        open_movie(path)
    except BridgetrackError:
        return False
    return True


def movie_layers(path: Path) -> list[LayerData]:
    """A movie, or masks if its pixels look like cell numbers; with the masks that it contains.

    Every channel is a layer; they are blended as napari blends channels.
    """
    movie, name = open_movie(path), _name(path)
    if looks_like_labels(movie):
        return [labels_data(movie, name, path)]
    layers = [image_data(movie, name, path, k) for k in range(len(movie.channels))]
    if (path / "labels").is_dir():
        layers.append(labels_data(open_labels(path), f"{name} cells", path))
    return layers


def _name(path: Path) -> str:
    return path.name.removesuffix(".zarr").removesuffix(".ome") if path.is_dir() else path.stem


def layers_of(path: Path, columns: Columns = None) -> list[LayerData]:
    """The layers of a file or folder: a project, tracks, cells, masks or a movie.

    `columns` are the roles of columns of a table that are not recognised.

    Raises
    ------
    BridgetrackError
        If it cannot be read; the message names what can be.
    """
    if columns is not None:
        return (_read_tracks if "track" in columns else _read_detections)(path, columns)
    path = movie_path(path)
    read = _reading(path)
    if read is None and path.suffix.lower() == ".csv":
        read = _read_detections  # says which columns are missing
    return (read or movie_layers)(path)


def masks_of(path: Path) -> list[LayerData]:
    """Masks or a table of cells from a file or folder, whatever they look like; raises as above."""
    path = movie_path(path)
    if path.suffix.lower() in (".csv", ".xml"):
        return table_of(path)
    return [labels_data(open_labels(path), _name(path), path)]


def table_of(path: Path, columns: Columns = None) -> list[LayerData]:
    """Cells from a table; if it holds tracks, these with their cells; raises as above."""
    layers = layers_of(path, columns)
    if [kind for *_, kind in layers] != ["tracks"]:
        return layers
    tracks = layers[0][1]["metadata"][KEY]["tracks"]
    nodes, geometry = tracks.nodes, tracks.geometry
    frame, label, area = (nodes[name].to_numpy() for name in ("frame", "label", "area"))
    position = nodes[list(geometry.axes)].to_numpy(np.float64)
    cells = detections_at(frame, position, geometry, label, area)
    return [points_data(cells, f"{_name(path)} cells", path), *layers]


def _read_ctc(folder: Path) -> list[LayerData]:
    found = read_ctc(folder)
    cells, tracks = found.labels, found.tracks
    layers = []
    images = folder.with_name(folder.name.split("_")[0])
    if images == folder or not images.is_dir():
        images = folder.parent.with_name(folder.parent.name.split("_")[0])
    if images not in (folder, folder.parent) and images.is_dir():
        movie = open_movie(images)
        layers.append(image_data(movie, images.name, images))
        cells = scaled_like(cells, movie)
        tracks = replace(tracks, geometry=cells.geometry)
    layers.append(labels_data(cells, f"{folder.name} cells", folder))
    layers.append(tracks_data(tracks, f"{folder.name} tracks", folder))
    return layers


def _read_project(file: Path) -> list[LayerData]:
    project = load_project(file)
    cells, image = project.open()
    own = {"project": str(file)}
    where = project.labels.path
    if isinstance(cells, Detections):
        layers = [points_data(cells, "Cells", where, **own)]
    else:
        layers = [labels_data(cells, "Cells", where, **own, found=project.found)]
    if image is not None and project.image is not None:
        seen = project.image.path
        layers.insert(0, image_data(image, seen.stem, seen, project.channel, **own))
    return layers


def _read_tracks(file: Path, columns: Columns = None) -> list[LayerData]:
    tracks = read_trackmate(file) if is_trackmate(file) else read_tracks_csv(file, columns)
    return [tracks_data(tracks, file.stem, file)]


def _read_detections(file: Path, columns: Columns = None) -> list[LayerData]:
    return [points_data(read_detections_csv(file, columns), file.stem, file)]


# ---------------------------------------------------------------------- napari's File menu

_LATER: list[LayerData] = [(None,)]  # type: ignore[list-item]
"""Return value of a reader that has no layers for napari to add."""


def reader(path: str | list[str]) -> Callable[[Any], list[LayerData]] | None:
    """The reader that napari calls for a file or folder; None if the content is unknown.

    It reads a movie or masks in a folder, a project, or a table of tracks or of detections.

    napari calls readers in the thread of its window, which is blocked until they return. They may
    return that there is nothing to add, though; the layers are added once they are read. Scripts
    wait for what ``viewer.open`` returns, and get the layers from it.
    """
    if not isinstance(path, str):
        return None
    file = Path(path)
    read, table = _reading(file), file.suffix.lower() == ".csv"
    if read is None and table and not _of_napari(file) and _window_of_a_person() is not None:
        read = layers_of  # a message says which columns are missing
    if read is None:
        return None

    def layers(_: Any) -> list[LayerData]:
        state = _window_of_a_person()
        if state is None:
            return read(file)
        state.read(file.name, lambda: read(file), state.add_layers)
        return _LATER

    return layers


def _window_of_a_person() -> ViewerState | None:
    """The window in which an event is handled and a panel of ours shows the outcome."""
    from bridgetrack.ui.state import shared_state  # most scripts need no panel

    app, here = QApplication.instance(), QThread.currentThread()
    if app is None or here is not app.thread() or not here.loopLevel():
        return None
    windows = [w for w in app.topLevelWidgets() if isinstance(w, QMainWindow) and w.isVisible()]
    viewer = napari.current_viewer()
    return None if viewer is None or len(windows) > 1 else shared_state(viewer)


def _of_napari(path: Path) -> bool:
    """Whether a table holds points or shapes in the columns that napari gives them."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return "axis-0" in file.readline().split(",")
    except OSError:
        return True


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image, truth = folder / SAMPLE_SEQUENCE, folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA"
    movie, of = open_movie(image), {"sample": "sample movie"}
    # Without a path: its answers are kept in the user's data folder.
    pixels, *look = image_data(movie, "Sample movie", None, file=str(image), **of)
    cells = labels_data(open_labels(truth), "Cells", None, file=str(truth), **of)
    return [(pixels.compute(), *look), cells]
