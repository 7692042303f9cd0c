"""Measure every label of every frame, by sums over runs of pixels rather than object by object.

All measures are ratios of weighted counts (``numpy.bincount``), so a frame costs the same with
ten cells and with ten thousand. Runs are pixels of one label side by side along the last axis;
only intensities need the pixels themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.labels import Foreground, foreground
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, warn
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.spread import THREADS, spread

_LOOKED_AT, _FEWEST = 3, 5
"""Frames used to estimate the distance of slices, and whole cells needed at least."""
_CLEAR = 1.5
"""Cells may differ from balls by this ratio; a smaller one says nothing about the slices."""


def measure_frames(
    labels: Movie, image: Movie | None = None, client: Any = None
) -> Iterator[pd.DataFrame]:
    """Measure a movie frame by frame, a few frames at a time in parallel.

    Parameters
    ----------
    labels
        Label movie, one channel.
    image
        Intensities with the same extent, or None (then there are no intensity columns).
    client
        A dask client, over whose cluster the frames are spread; this process where None.

    Yields
    ------
    table
        The measurements of a frame (see `measure_frame`) with ``frame``, in order.

    Raises
    ------
    InputError
        Where labels are negative or not whole.
    """
    found = spread(_measured, (labels, image), range(labels.n_frames), client, THREADS)
    for t, table in enumerate(found):
        yield table.assign(frame=t)


def _measured(movie: tuple[Movie, Movie | None], t: int) -> pd.DataFrame:
    labels, image = movie
    pixels = None if image is None else image.frame(t)
    return measure_frame(label_frame(labels, t), pixels, labels.geometry.scale)


def measure_frame(
    labels: NDArray[Any], image: NDArray[Any] | None, scale: tuple[float, ...]
) -> pd.DataFrame:
    """Measure the labels of one frame.

    Parameters
    ----------
    labels
        Label image, 0 is background, shape ([Z,] Y, X).
    image
        Intensities of all channels, shape (C, [Z,] Y, X), or None.
    scale
        Size of a pixel per axis.

    Returns
    -------
    pandas.DataFrame
        One row per label, ascending; the columns of `Detections.table` without ``frame``.
    """
    spacing = np.asarray(scale, dtype=np.float64)
    fg = foreground(labels)
    ndim = labels.ndim
    axes = ("z", "y", "x")[-ndim:]
    if not len(fg.labels):
        return pd.DataFrame({"label": np.zeros(0, dtype=np.int64)})
    area, centroid, cov = moments(fg, spacing)
    values, vectors = np.linalg.eigh(cov)
    factor = 4.0 if ndim == 2 else 2 * np.sqrt(5.0)
    outline, touching = _faces(fg, spacing)
    columns: dict[str, Any] = {"label": fg.labels}
    columns |= {axis: centroid[:, k] for k, axis in enumerate(axes)}
    columns["area"] = area
    columns["major"] = factor * np.sqrt(np.maximum(values[:, -1], 0))
    columns["minor"] = factor * np.sqrt(np.maximum(values[:, 0], 0))
    columns |= {f"axis_{axis}": vectors[:, k, -1] for k, axis in enumerate(axes)}
    columns["roundness"] = roundness(area * float(np.prod(spacing)), outline, ndim)
    columns["touching"] = touching / np.maximum(outline, 1e-12)
    columns["border_distance"] = _border_distance(fg, labels.shape, spacing)
    if image is not None:
        pixels = fg.pixels()
        for channel, intensities in enumerate(image):
            columns |= _intensities(pixels, area, intensities, channel)
    return pd.DataFrame(columns)


def assemble(
    tables: Sequence[pd.DataFrame], labels: Movie, image: Movie | None = None
) -> Detections:
    """Join the tables of all frames, in their order, into one.

    Raises
    ------
    InputError
        Where no frame has a single cell.
    """
    tables = [table for table in tables if len(table)]
    if not tables:
        raise InputError(
            f"{labels.source}: there is no cell in any of the {labels.n_frames} frames; "
            "check that this is the label movie (0 is background, every cell has a number)"
        )
    table = pd.concat(tables, ignore_index=True)
    first = ["frame", "label"]
    table = table[first + [c for c in table.columns if c not in first]]
    return Detections(
        table.astype({"frame": np.int64, "label": np.int64}),
        labels.geometry,
        () if image is None else image.channels,
    )


def assemble_anew(
    old: Detections, anew: Mapping[int, pd.DataFrame], labels: Movie, image: Movie | None = None
) -> Detections:
    """A table in which some frames were measured anew; the others are taken over in one piece.

    Raises
    ------
    InputError
        Where no frame has a single cell.
    """
    parts, last = [], 0
    for t, table in sorted(anew.items()):
        rows = old.rows(t)
        parts += [old.table.iloc[last : rows.start], table.assign(frame=t)]
        last = rows.stop
    parts.append(old.table.iloc[last:])
    return assemble(parts, labels, image)


def moments(fg: Foreground, scale: Array) -> tuple[Array, Array, Array]:
    """Pixel counts (n,), centroids in pixels (n, ndim), covariances in scaled units."""
    area, centroid = fg.area(), fg.centroid()
    ndim = len(fg.shape)
    cov = np.empty((len(area), ndim, ndim))
    centred = [(c - centroid[fg.owner, k]) * scale[k] for k, c in enumerate(fg.middle)]
    for a in range(ndim):
        weighted = centred[a] * fg.length
        for b in range(a, ndim):
            cov[:, a, b] = cov[:, b, a] = fg.total(weighted * centred[b]) / area
        cov[:, a, a] += scale[a] ** 2 / 12.0
    # The pixels of a run around its middle.
    own = fg.length * (fg.length**2 - 1.0) / 12.0
    cov[:, -1, -1] += scale[-1] ** 2 * fg.total(own) / area
    return area, centroid, cov


def _faces(fg: Foreground, scale: Array) -> tuple[Array, Array]:
    """Outline of every label, and the part of it that touches other labels, in units^(ndim-1)."""
    n = len(fg.labels)
    outline, touching = np.zeros(n), np.zeros(n)
    volume, area = float(np.prod(scale)), fg.area()
    for axis, size in enumerate(fg.shape[:-1]):
        # Every pixel has two faces; those between pixels of one label are none of its outline.
        step = int(np.prod(fg.shape[axis + 1 :]))
        runs = np.flatnonzero(fg.index[axis] < size - 1)
        run, own, pixels = fg.met_by(fg.start[runs] + step, fg.stop[runs] + step)
        here, there = fg.owner[runs[run]], fg.owner[own]
        same = here == there
        inner = np.bincount(here[same], pixels[same], minlength=n)
        outline += volume / scale[axis] * 2 * (area - inner)
        for side in (here, there):
            touches = np.bincount(side[~same], pixels[~same], minlength=n)
            touching += volume / scale[axis] * touches
    face = volume / scale[-1]
    outline += face * 2 * np.bincount(fg.owner, minlength=n)
    beside = np.flatnonzero((fg.start[1:] == fg.stop[:-1]) & (fg.index[-1][1:] > 0))
    for neighbours in (beside, beside + 1):
        touching += face * np.bincount(fg.owner[neighbours], minlength=n)
    return outline, touching


def roundness(area: Array, outline: Array, ndim: int) -> Array:
    """Isoperimetric ratio, 1 for a disc or a ball.

    Pixel faces overestimate a smooth outline by 4/pi in 2D and 3/2 in 3D on average over
    directions (Cauchy-Crofton), which is divided out.
    """
    if ndim == 2:
        smooth = outline * np.pi / 4
        ratio = 4 * np.pi * area / np.maximum(smooth, 1e-12) ** 2
    else:
        smooth = outline * 2 / 3
        ratio = np.pi ** (1 / 3) * (6 * area) ** (2 / 3) / np.maximum(smooth, 1e-12)
    return np.clip(ratio, 0.0, 1.0)


def _border_distance(fg: Foreground, shape: tuple[int, ...], scale: Array) -> Array:
    """Distance in y and x from the nearest pixel of a label to the edge of the frame."""
    best = np.full(len(fg.labels), np.inf)
    for axis in range(len(shape) - 2, len(shape)):
        first = fg.index[axis].astype(np.float64)
        last = first + fg.length - 1 if axis == len(shape) - 1 else first
        room = np.minimum(first, shape[axis] - 1 - last) * scale[axis]
        np.minimum.at(best, fg.owner, room)
    return best


def _intensities(
    pixels: tuple[Index, Index], area: Array, image: NDArray[Any], channel: int
) -> dict[str, Array]:
    """Mean, standard deviation and sum above the background of one channel.

    Values that are not numbers are left out; a cell that has no others counts as background.
    """
    owner, places = pixels

    def total(weights: Array) -> Array:
        return np.bincount(owner, weights, minlength=len(area)).astype(np.float64)

    values = image.reshape(-1)[places].astype(np.float64)
    finite = np.isfinite(values)
    values = np.where(finite, values, 0.0)
    known = total(finite.astype(np.float64))
    count = np.maximum(known, 1.0)
    background = _background(image)
    mean = np.where(known > 0, total(values) / count, background)
    spread = np.where(finite, values - mean[owner], 0.0)
    std = np.sqrt(total(spread**2) / count)
    return {
        f"mean_{channel}": mean - background,
        f"std_{channel}": std,
        f"sum_{channel}": (mean - background) * area,
    }


def _background(image: NDArray[Any]) -> float:
    """A low quantile of the frame, from at most a quarter of a million pixels."""
    flat = image.reshape(-1)
    sample = flat[:: max(1, flat.size // 250_000)].astype(np.float64)
    sample = sample[np.isfinite(sample)]
    return float(np.quantile(sample, 0.05)) if sample.size else 0.0


def with_slice_distance(labels: Movie) -> Movie:
    """The movie with a slice distance estimated from its cells, if its scale is unknown.

    Cells are assumed to extend as far along z as in the plane, on the median.

    Warns
    -----
    BridgetrackWarning
        Where they are taken to be farther apart than its pixels.
    """
    geometry = labels.geometry
    if geometry.ndim == 2 or geometry.unit != "pixel" or set(geometry.scale) != {1.0}:
        return labels
    ratio = float(f"{_ratio(labels):.2g}")
    if ratio < _CLEAR:
        return labels
    warn(
        f"{labels.source}: the scale is unknown; slices are taken to be {ratio:g} pixels apart, as "
        "cells extend over so few of them; give the scale of z, y and x if this is wrong"
    )
    return replace(labels, geometry=replace(geometry, scale=(ratio, 1.0, 1.0)))


def _ratio(labels: Movie) -> float:
    """Spread of the pixels of a cell across over that along z, in pixels; 1 where cells are few."""
    found = []
    for t in np.unique(np.linspace(0, labels.n_frames - 1, _LOOKED_AT).astype(int)).tolist():
        cells = foreground(label_frame(labels, t))
        z, last = cells.index[0], cells.shape[0] - 1
        cut = np.unique(cells.owner[(z == 0) | (z == last)])
        whole = np.setdiff1d(np.arange(len(cells.labels)), cut)
        _, _, spread = moments(cells, np.ones(3))
        along, across = spread[whole, 0, 0], (spread[whole, 1, 1] + spread[whole, 2, 2]) / 2
        found.append(np.sqrt(across / along))
    every = np.concatenate(found)
    return float(np.median(every)) if len(every) >= _FEWEST else 1.0
