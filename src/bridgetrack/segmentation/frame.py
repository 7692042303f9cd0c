"""Segment one frame with the built-in method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.segmentation.cells import (
    Labels,
    cell_landscape,
    clean_cells,
    cut_edges,
    foreground_mask,
    split_cells,
)
from bridgetrack.segmentation.estimate import complete_settings
from bridgetrack.segmentation.filters import sampling_of
from bridgetrack.segmentation.merging import merge_shallow
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import cell_signal, finite_image


def segment_builtin(
    image: NDArray[Any],
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None = None,
) -> Labels:
    """Cells of one frame by threshold and seeded watershed.

    Parameters
    ----------
    image
        One channel of one frame, shape ([Z,] Y, X). NaN and infinite pixels are background.
    settings
        What is left open in them is estimated from this frame.
    scale
        Pixel size per axis; only ratios matter.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n, 0 for background, shape of the image.
    """
    if image.ndim not in (2, 3):
        raise InputError(f"a frame has 2 or 3 axes, not {image.ndim}")
    if np.ptp(finite_image(image)[0]) == 0:
        return np.zeros(image.shape, dtype=np.int32)
    settings = complete_settings([image], settings)
    diameter = float(settings.diameter or 20.0)
    sampling = sampling_of(scale, image.shape, diameter)
    smoothing = float(settings.smoothing or 0.0)
    signal = cell_signal(
        image, settings.foreground, diameter, smoothing, settings.background_window, sampling
    )
    mask = foreground_mask(signal, settings, diameter, sampling)
    height = cell_landscape(signal, mask, settings.seeds, diameter, sampling)
    labels = split_cells(mask, height, settings.separation * diameter, sampling)
    labels = merge_shallow(labels, height, float(settings.depth or 0.0))
    labels = cut_edges(labels, signal.values, settings.edge)
    labels = clean_cells(labels, settings, diameter, sampling)
    return np.where(signal.invalid, 0, labels) if signal.invalid.any() else labels
