"""Pixel work behind the pictures: projection, contrast, borders, tiling, writing."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import OutputError

Picture = NDArray[np.uint8]
"""Red, green, blue, shape (height, width, 3)."""


def stretch(image: NDArray[Any], limits: tuple[float, float] | None = None) -> NDArray[np.float64]:
    """Grey values from 0 to 1 between `limits`, brightened so that dim cells can be seen."""
    low, high = limits or limits_of(image)
    share = (np.nan_to_num(image.astype(np.float64), nan=low) - low) / max(high - low, 1e-12)
    return np.asarray(np.clip(share, 0, 1) ** 0.7)


def write_png(picture: Picture, path: Path) -> None:
    """Write a picture, whole or not at all.

    Raises
    ------
    OutputError
        Where the file cannot be written.
    """
    from matplotlib.image import imsave

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        imsave(partial, picture, format="png", metadata={"Software": "bridgetrack"})
        partial.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write the picture {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def limits_of(image: NDArray[Any]) -> tuple[float, float]:
    """Grey values shown black and white: the 1st and the 99.8th percentile."""
    finite = image[np.isfinite(image)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = np.percentile(finite, [1, 99.8])
    return float(low), float(high)


def project(image: NDArray[Any]) -> NDArray[Any]:
    """Maximum projection of a stack; a flat image is returned as it is."""
    return np.asarray(image.max(axis=0)) if image.ndim == 3 else image


def flat(image: NDArray[Any] | None) -> NDArray[Any] | None:
    """As `project`, where there is an image."""
    return None if image is None else project(image)


def topmost(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Labels seen from the first plane, so that each pixel shows the first cell met."""
    if labels is None or labels.ndim == 2:
        return labels
    first = (labels > 0).argmax(axis=0)
    return np.asarray(np.take_along_axis(labels, first[None], axis=0)[0])


def enlarge(image: NDArray[np.float64], zoom: int) -> NDArray[np.float64]:
    """Bilinear enlargement by a whole factor."""
    from scipy import ndimage

    if zoom == 1:
        return image
    grown = ndimage.zoom(image, zoom, order=1, grid_mode=True, mode="nearest")
    return np.asarray(grown)


def inner_borders(labels: NDArray[Any], width: int) -> NDArray[np.bool_]:
    """Pixels of a label within `width` of another label or the background."""
    edge = np.zeros(labels.shape, dtype=bool)
    for axis in (0, 1):
        along, border = np.moveaxis(labels, axis, 0), np.moveaxis(edge, axis, 0)
        for step in range(1, width + 1):
            differs = along[step:] != along[:-step]
            border[:-step] |= differs
            border[step:] |= differs
    return edge & (labels > 0)


def tile(panels: list[Picture], columns: int, gap: int = 4) -> Picture:
    """Panels in rows of `columns`, with white gaps."""
    height, width = (max(p.shape[a] for p in panels) for a in (0, 1))
    rows = math.ceil(len(panels) / columns)
    columns = min(columns, len(panels))
    picture = np.full(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, dtype=np.uint8
    )
    for k, panel in enumerate(panels):
        y, x = (k // columns) * (height + gap), (k % columns) * (width + gap)
        picture[y : y + panel.shape[0], x : x + panel.shape[1]] = panel
    return picture
