"""Sample movies in napari's File menu."""

from __future__ import annotations

from typing import Any

from bridgetrack.movie import open_labels, open_movie
from bridgetrack.simulation.sample import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.ui.layers import placement, tag

LayerData = tuple[Any, dict[str, Any], str]


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image = open_movie(folder / SAMPLE_SEQUENCE)
    labels = open_labels(folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA")
    where = placement(image.geometry)
    interval = image.geometry.frame_interval
    pixels = image.array[:, 0].compute()
    return [
        (
            pixels,
            {
                "name": "Sample movie",
                "metadata": tag("image", sample="sample movie", frame_interval=interval),
                "contrast_limits": (float(pixels.min()), float(pixels.max())),
                "colormap": "gray",
                **where,
            },
            "image",
        ),
        (
            labels.array[:, 0].compute(),
            {
                "name": "Cells",
                "metadata": tag("labels", sample="sample movie", frame_interval=interval),
                "opacity": 0.3,
                **where,
            },
            "labels",
        ),
    ]
