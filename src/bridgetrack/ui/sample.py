"""Sample movies in napari's File menu."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridgetrack.movie import open_labels, open_movie
from bridgetrack.simulation.sample import SAMPLE_SEQUENCE, sample_folder
from bridgetrack.ui.layers import placement, tag

LayerData = tuple[Any, dict[str, Any], str]


def sample_movie() -> list[LayerData]:
    """The simulated movie that comes with the package: image and its true segmentation."""
    folder = sample_folder()
    image = open_movie(folder / SAMPLE_SEQUENCE)
    truth = folder / f"{SAMPLE_SEQUENCE}_GT" / "TRA"
    labels = open_labels(truth)
    where = placement(image.geometry)
    own = {"sample": "sample movie", "frame_interval": image.geometry.frame_interval}
    pixels = image.array[:, 0].compute()
    return [
        (
            pixels,
            {
                "name": "Sample movie",
                "metadata": tag("image", file=str(folder / SAMPLE_SEQUENCE), **own),
                "contrast_limits": tuple(float(p) for p in np.percentile(pixels, (1, 99.7))),
                "colormap": "gray",
                **where,
            },
            "image",
        ),
        (
            labels.array[:, 0].compute(),
            {
                "name": "Cells",
                "metadata": tag("labels", file=str(truth), **own),
                "opacity": 0.3,
                **where,
            },
            "labels",
        ),
    ]
