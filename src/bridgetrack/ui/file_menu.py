"""What napari's File menu opens: the sample, CTC folders, projects, tables, tracks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import napari
from qtpy.QtCore import QThread
from qtpy.QtWidgets import QApplication, QMainWindow

from bridgetrack.files import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.ui.file_layers import (
    Reader,
    csv_reading,
    folder_reading,
    image_data,
    labels_data,
    layers_of,
    project_reading,
    trackmate_reading,
)
from bridgetrack.ui.layers import KEY, LayerData

if TYPE_CHECKING:
    from bridgetrack.ui.state import ViewerState


_LATER: list[LayerData] = [(None,)]  # type: ignore[list-item]
"""What a reader returns that has read a file and has no layers for napari to add."""


def _beside(read: Reader | None) -> Reader | None:
    """A reader that has a file read beside the window while a person waits in it.

    napari calls readers in the thread of its window, which stands still until they return. They may
    return that there is nothing to add, though; the layers are added once they are read. Scripts
    wait for what ``viewer.open`` returns, and get the layers from it.
    """
    if read is None:
        return None

    def reader(path: str | list[str]) -> list[LayerData]:
        state = _window_of_a_person()
        if state is None:
            return read(path)
        name = Path(path if isinstance(path, str) else path[0]).name
        state.files.read(name, lambda: read(path), state.add_layers)
        return _LATER

    return reader


def _window_of_a_person() -> ViewerState | None:
    """The window in which an event is handled and a panel of ours tells what comes of it."""
    from bridgetrack.ui.state import shared_state  # most scripts need no panel

    app, here = QApplication.instance(), QThread.currentThread()
    if app is None or here is not app.thread() or not here.loopLevel():
        return None
    windows = [w for w in app.topLevelWidgets() if isinstance(w, QMainWindow) and w.isVisible()]
    viewer = napari.current_viewer()
    return None if viewer is None or len(windows) > 1 else shared_state(viewer)


def folder_reader(path: str | list[str]) -> Reader | None:
    """Read a folder that holds a movie or masks, None for other things."""
    return _beside(folder_reading(path))


def project_reader(path: str | list[str]) -> Reader | None:
    """Read a Bridgetrack project, None for other things."""
    return _beside(project_reading(path))


def csv_reader(path: str | list[str]) -> Reader | None:
    """Read a CSV table of tracks or of detections, None for those that napari writes."""
    read = csv_reading(path)
    if read is None and isinstance(path, str) and not _of_napari(Path(path)):
        # A person is told which columns are missing.
        return _beside(_whatever) if _window_of_a_person() is not None else None
    return _beside(read)


def _whatever(path: str | list[str]) -> list[LayerData]:
    return layers_of(Path(path if isinstance(path, str) else path[0]))


def _of_napari(path: Path) -> bool:
    """Whether a table holds points or shapes in the columns that napari gives them."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return "axis-0" in file.readline().split(",")
    except OSError:
        return True


def trackmate_reader(path: str | list[str]) -> Reader | None:
    """Read the tracks in a file that TrackMate saved, None for other XML."""
    return _beside(trackmate_reading(path))


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image, truth = folder / SAMPLE_SEQUENCE, folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA"
    movie, cells = open_movie(image), open_labels(truth)
    layers = [image_data(movie, "Sample movie", image), labels_data(cells, "Cells", truth)]
    for file, (_, options, _) in zip((image, truth), layers, strict=True):
        tags = options["metadata"][KEY]
        del tags["path"]  # its answers are kept in the user's data folder
        interval = movie.geometry.frame_interval
        tags.update(sample="sample movie", file=str(file), frame_interval=interval)
    (pixels, *look), labels = layers
    return [(pixels.compute(), *look), labels]
