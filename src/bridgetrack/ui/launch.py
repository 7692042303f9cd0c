"""Opening napari with the workflow and a movie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.project_file import is_project
from bridgetrack.ui.readers import image_data, labels_data


def fill(viewer: Any, image: Path | None, labels: Path | None) -> Any:
    """Add layers and the workflow to a viewer; returns the workflow's widget."""
    from napari.layers import Layer

    if image is not None and is_project(image):
        from bridgetrack.ui.readers import project_reader

        read = project_reader(str(image))
        layers = read(str(image)) if read is not None else []
    else:
        layers = []
        if image is not None:
            layers.append(image_data(open_movie(image), image.stem, image))
        if labels is not None:
            layers.append(labels_data(open_labels(labels), "Cells", labels))
    for data in layers:
        viewer.add_layer(Layer.create(*data))
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    return widget


def launch(image: Path | None, labels: Path | None) -> None:
    """Open a window and stay until it is closed."""
    import napari

    viewer = napari.Viewer(title="Bridgetrack")
    fill(viewer, image, labels)
    napari.run()
