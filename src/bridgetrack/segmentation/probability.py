"""Maps by other programs of how probably pixels belong to cells, and the cells in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.movie.movie import Movie, check_same_extent
from bridgetrack.movie.opening import open_movie
from bridgetrack.segmentation.cells import (
    SEPARATION,
    Labels,
    cell_landscape,
    clean_cells,
    foreground_mask,
    merge_shallow,
    split_cells,
)
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.signal import Image, Signal, gaussian, sampling_of

_NOISE = 0.25
"""With the usual sensitivity of 4, a cell is where its odds exceed 1."""
_SMOOTH = 0.03
_ROUNDING = 0.01
_DEPTH = 0.2
"""How deep a valley parts two cells, see `SegmentationSettings.depth`."""


def segment_probability(
    cell: Image,
    edge: Image | None,
    settings: SegmentationSettings,
    scale: tuple[float, ...] | None = None,
) -> Labels:
    """Cells of one frame by threshold and seeded watershed of the odds of being a cell.

    Edges between cells are a part of them: they are background for seeds only.

    Parameters
    ----------
    cell
        Probability that a pixel belongs to a cell, shape ([Z,] Y, X); not finite where unknown.
    edge
        Probability that it is an edge between cells; None where nobody says.
    settings
        What concerns brightness is not used; a larger sensitivity asks for higher odds.
    scale
        Pixel size per axis; only ratios matter.

    Returns
    -------
    NDArray[np.int32]
        Labels 1 to n, 0 for background.
    """
    diameter = settings.diameter or 20.0
    sampling = sampling_of(scale, cell.shape, diameter)
    settings = replace(settings, foreground="bright")
    invalid = ~np.isfinite(cell)
    smooth = gaussian(np.where(invalid, 0, cell), _SMOOTH * diameter, sampling)
    inside = Signal(_odds(smooth, 1 - smooth), _NOISE, invalid)
    whole, seeds = inside, np.ones(cell.shape, dtype=bool)
    if edge is not None:
        rim = gaussian(np.where(invalid, 0, edge), _SMOOTH * diameter, sampling)
        whole, seeds = replace(inside, values=_odds(smooth + rim, 1 - smooth - rim)), smooth > rim
    mask = foreground_mask(whole, settings, diameter, sampling)
    height = cell_landscape(inside, mask & seeds, diameter, sampling)
    labels = split_cells(mask, height, SEPARATION * diameter, sampling)
    depth = _DEPTH if settings.depth is None else settings.depth
    labels = merge_shallow(labels, height, depth)
    return clean_cells(labels, settings, diameter, sampling)


def _odds(probable: Image, otherwise: Image) -> Image:
    return np.asarray(probable / np.maximum(otherwise, 0.01), dtype=np.float32)


def open_probability(source: Any, image: Movie) -> Movie:
    """What another program says of the pixels of a movie: how probably each belongs to a cell.

    Parameters
    ----------
    source
        A movie of probabilities, or anything that `open_movie` takes. Of several channels that
        called ``cell`` counts, and one called ``edge``, of edges between cells. Whole numbers are
        shares of the largest that their type holds.
    image
        The movie that it is about.

    Raises
    ------
    InputError
        Where the extent differs, no channel is that of cells, or numbers are no probabilities.
    """
    found = open_movie(source)
    check_same_extent(image, found, "probabilities", "give those of this movie, with every frame")
    names = [name.lower() for name in found.channels]
    if len(names) > 1 and "cell" not in names:
        raise InputError(
            f"the probabilities ({found.source}) have the channels {', '.join(found.channels)}, "
            "none of which is called cell; export the one of cells alone"
        )
    if found.array.dtype.kind in "ui":
        most = np.float32(np.iinfo(found.array.dtype).max)
        found = replace(found, array=found.array.astype(np.float32) / most)
    seen = found.channel_frame(found.n_frames // 2, names.index("cell") if "cell" in names else 0)
    low, high = (float(f(seen, initial=0.0)) for f in (np.nanmin, np.nanmax))
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise InputError(
            f"the probabilities ({found.source}) go from {low:g} to {high:g} in their middle "
            "frame; they must lie between 0 and 1: is this the image, or another channel of it?"
        )
    return found


def cell_and_edge_of(probability: Movie, t: int) -> tuple[Image, Image | None]:
    """What `open_probability` gave says of frame `t`: probabilities of cells and of edges."""
    names = [name.lower() for name in probability.channels]
    cell = probability.channel_frame(t, names.index("cell") if "cell" in names else 0)
    edge = probability.channel_frame(t, names.index("edge")) if "edge" in names else None
    return cell, edge


def cell_alone(seen: tuple[Image, Image | None]) -> Image:
    """Probability of a cell, less that of an edge between cells; 0 where nobody knows."""
    cell, edge = seen
    return np.nan_to_num(cell if edge is None else cell - edge)
