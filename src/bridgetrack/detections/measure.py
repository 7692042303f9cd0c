"""Measure every label of every frame, by sums over runs of pixels rather than object by object.

All measures are ratios of weighted counts (``numpy.bincount``), so a frame costs the same with
ten cells and with ten thousand. Runs are pixels of one label side by side along the last axis;
only intensities need the pixels themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from bridgetrack.arrays import Array, Index
from bridgetrack.detections.labels import Foreground, checked_labels, foreground, number_first
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.movie.movie import Movie
from bridgetrack.notes import plural
from bridgetrack.spread import THREADS, spread

Measured = tuple[pd.DataFrame, Index]
_FILLED = 0.5
_APART = 1.5


def measure_frames(
    labels: Movie, image: Movie | None = None, client: Any = None
) -> Iterator[tuple[int, pd.DataFrame]]:
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
    t, table
        The frame's number and its measurements (see `measure_frame`) with ``frame``, in order.

    Raises
    ------
    InputError
        Where labels are negative or not whole.
        Where the only label of the movie lies in places far apart: it stands for all cells.

    Warns
    -----
    BridgetrackWarning
        Where a label lies in places far apart, or seems to be the background; it is measured as
        one cell.
    """
    found = spread(_measured, (labels, image), range(labels.n_frames), client, THREADS)
    numbers, apart, background = set[int](), dict[int, Index](), dict[int, int]()
    size = int(np.prod(labels.geometry.shape or ()))
    for t, (table, scattered) in enumerate(found):
        numbers.update(table["label"].tolist())
        if len(scattered):
            apart[t] = scattered
        if len(table) > 1 and table["area"].sum() == size < 2 * table["area"].max():
            background[t] = int(table["label"][table["area"].argmax()])
        yield t, table.assign(frame=t)
    if len(numbers) == 1 and 2 * len(apart) > labels.n_frames:
        what = f"every cell has the number {numbers.pop()}, so this is a yes/no mask"
        raise InputError(f"{labels.source}: {what}; {number_first(labels)}")
    if apart and 2 * len(background) <= labels.n_frames:
        _warn_scattered(labels.source, apart)
    if 2 * len(background) > labels.n_frames:
        t, label = next(iter(background.items()))
        warnings.warn(
            f"{labels.source}: no pixel is 0, and label {label} covers most of frame {t}; it is "
            "measured as a cell; if it is the background, give its pixels the number 0",
            BridgetrackWarning,
            stacklevel=2,
        )


def _measured(movie: tuple[Movie, Movie | None], t: int) -> Measured:
    labels, image = movie
    pixels = None if image is None else image.frame(t)
    return _measure(checked_labels(labels, t), pixels, labels.geometry.scale)


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
    return _measure(labels, image, scale)[0]


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


def _measure(
    labels: NDArray[Any], image: NDArray[Any] | None, scale: tuple[float, ...]
) -> Measured:
    """The measurements of a frame, and the labels that lie in places far apart."""
    spacing = np.asarray(scale, dtype=np.float64)
    fg = foreground(labels)
    ndim = labels.ndim
    axes = ("z", "y", "x")[-ndim:]
    if not len(fg.labels):
        return pd.DataFrame({"label": np.zeros(0, dtype=np.int64)}), fg.labels
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
    columns["roundness"] = _roundness(area * float(np.prod(spacing)), outline, ndim)
    columns["touching"] = touching / np.maximum(outline, 1e-12)
    columns["border_distance"] = _border_distance(fg, labels.shape, spacing)
    if image is not None:
        pixels = fg.pixels()
        for channel, intensities in enumerate(image):
            columns |= _intensities(pixels, area, intensities, channel)
    suspects = _loose(area * float(np.prod(spacing)), cov)
    scattered = fg.labels[_in_places_apart(fg, suspects, spacing)]
    return pd.DataFrame(columns), scattered


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


def _roundness(area: Array, outline: Array, ndim: int) -> Array:
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


def _loose(volume: Array, covariance: Array) -> Index:
    """Cells that fill less than half of the ellipse with their second moments.

    A solid ellipse fills it, two discs a diameter apart fill half of it.
    """
    ndim = covariance.shape[1]
    unit = 4.0 * np.pi if ndim == 2 else 4.0 / 3.0 * np.pi * 5.0**1.5
    ellipse = unit * np.sqrt(np.maximum(np.linalg.det(covariance), 0.0))
    return np.flatnonzero(volume < _FILLED * ellipse)


def _in_places_apart(fg: Foreground, suspects: Index, scale: Array) -> Index:
    """Those of the suspects whose pieces lie more than 1.5 of their diameters apart."""
    if not len(suspects):
        return suspects
    owner, places = fg.pixels()
    chosen = np.flatnonzero(np.isin(owner, suspects))
    chosen = chosen[np.argsort(owner[chosen], kind="stable")]
    cuts = np.searchsorted(owner[chosen], suspects)[1:]
    coordinates = np.stack(np.unravel_index(places[chosen], fg.shape), axis=1)
    return suspects[[_apart(cell, scale) for cell in np.split(coordinates, cuts)]]


def _apart(coordinates: Index, scale: Array) -> bool:
    """Whether the largest piece of a cell lies far from another of its pieces."""
    n, ndim = coordinates.shape
    pairs = cKDTree(coordinates).query_pairs(np.sqrt(ndim) + 1e-6, output_type="ndarray")
    links = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    count, piece = connected_components(links, directed=False)
    if count < 2:
        return False
    size = np.bincount(piece)
    centre = np.stack([np.bincount(piece, c) / size for c in coordinates.T], axis=1) * scale
    distance = np.linalg.norm(centre - centre[np.argmax(size)], axis=1)
    volume = n * float(np.prod(scale))
    diameter = 2 * np.sqrt(volume / np.pi) if ndim == 2 else np.cbrt(6 * volume / np.pi)
    return bool(distance.max() > _APART * diameter)


def _warn_scattered(source: str, scattered: dict[int, Index]) -> None:
    """Warn of labels in places far apart, by frame; once, by the first of them."""
    t, labels = next(iter(scattered.items()))
    others = sum(map(len, scattered.values())) - 1
    more = f" (and {others} other labels in {plural(len(scattered), 'frame')})" if others else ""
    warnings.warn(
        f"{source}, frame {t}: label {labels[0]}{more} lies in places far apart and is measured as "
        "one cell; if these are different cells, give each its own number",
        BridgetrackWarning,
        stacklevel=3,
    )
