"""Pictures of tracks: image, outlines and tails, coloured by lineage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from skimage.segmentation import find_boundaries

from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import staged, writing
from bridgetrack.tracks.colours import UNKNOWN, family_shades, paint
from bridgetrack.tracks.tracks import Tracks

Picture = NDArray[np.uint8]
"""Red, green, blue, shape (height, width, 3)."""

_DPI = 100


def draw_overlay(
    image_frame: NDArray[Any] | None,
    label_frame: NDArray[Any] | None,
    tracks: Tracks,
    frame: int,
    path: Path | str | None = None,
    *,
    tail: int = 10,
    zoom: int | None = None,
) -> Picture:
    """Draw one frame with outlines of its cells and the recent past of the tracks.

    Stacks are shown as maximum projections. Outlines and tails have the colour of their lineage,
    cells without a track are grey, a ring marks where a cell divided.

    Parameters
    ----------
    image_frame
        Grey values, shape ([Z,] Y, X); None for black.
    label_frame
        Labels that ``tracks.nodes`` names, shape ([Z,] Y, X); None for no outlines.
    tracks
        Positions in pixels.
    frame
        Which frame the pictures show.
    path
        Where to write a PNG; None writes nothing.
    tail
        How many frames a tail reaches back.
    zoom
        Screen pixels per pixel; None chooses it so that small movies fill about 900 pixels.

    Returns
    -------
    NDArray
        Red, green, blue, uint8, shape (zoom * Y, zoom * X, 3).

    Raises
    ------
    InputError
        Where there is neither image nor labels, or their shapes differ.
    OutputError
        Where the file cannot be written.
    """
    grey = None if image_frame is None else _flat(image_frame)
    labels = None if label_frame is None else _topmost(label_frame)
    shape = _common_shape(grey, labels, tracks, frame)
    zoom = zoom or max(1, round(900 / max(shape)))
    canvas = np.repeat(_enlarged(_stretched(grey, shape), zoom)[:, :, None], 3, axis=2)
    if labels is not None:
        _paint_outlines(canvas, _enlarged(labels, zoom), tracks, frame, min(zoom, 4))
    picture = _add_tails(canvas, tracks, frame, tail=tail, zoom=zoom)
    if path is not None:
        _write_png(picture, Path(path))
    return picture


def _colours(lineages: Any) -> NDArray[np.float64]:
    """Red, green and blue of lineages, shape (n, 3)."""
    return paint(family_shades(np.asarray(lineages, dtype=np.int64)), "names")


def _common_shape(
    image: NDArray[Any] | None, labels: NDArray[Any] | None, tracks: Tracks, frame: int
) -> tuple[int, ...]:
    shapes = {a.shape for a in (image, labels) if a is not None}
    if not shapes and tracks.geometry.shape is not None:
        shapes = {tracks.geometry.shape[-2:]}
    if len(shapes) != 1:
        raise InputError(
            f"frame {frame}: the image and the labels have the shapes {sorted(shapes)}; "
            "an overlay needs one of them, or both with the same shape"
        )
    return shapes.pop()


def _paint_outlines(
    canvas: NDArray[np.float64], labels: NDArray[Any], tracks: Tracks, frame: int, width: int
) -> None:
    """Colour the inner border pixels of every label."""
    edge = find_boundaries(labels)
    if width > 1:
        edge = binary_dilation(edge, iterations=width - 1)
    edge &= labels > 0
    nodes = tracks.nodes[tracks.nodes["frame"] == frame]
    known = nodes["label"].to_numpy(dtype=np.int64)
    names, inverse = np.unique(labels[edge], return_inverse=True)
    colours = np.tile(UNKNOWN, (len(names), 1))
    by_label = dict(zip(known.tolist(), nodes["lineage_id"].tolist(), strict=True))
    tracked = np.isin(names, known)
    colours[tracked] = _colours([by_label[n] for n in names[tracked].tolist()])
    canvas[edge] = colours[inverse]


def _add_tails(
    canvas: NDArray[np.float64], tracks: Tracks, frame: int, *, tail: int, zoom: int
) -> Picture:
    """Lines of the recent past over the picture, fading with age."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    height, width = canvas.shape[:2]
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    agg = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow(canvas, interpolation="nearest", aspect="auto", vmin=0, vmax=1)
    segments, colours, rings = _segments(tracks, frame, tail)
    # Pixel centres lie on whole numbers in both pictures.
    place = (segments[:, :, ::-1] + 0.5) * zoom - 0.5
    rings = (rings[:, ::-1] + 0.5) * zoom - 0.5
    shade = np.column_stack([np.zeros((len(colours), 3)), 0.7 * colours[:, 3]])
    lines = list(place)
    axes.add_collection(LineCollection(lines, colors=shade, linewidths=3.2, capstyle="round"))
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.6, capstyle="round"))
    axes.scatter(
        rings[:, 0], rings[:, 1], s=28, facecolors="none", edgecolors="white", linewidths=1.0
    )
    axes.text(8, 8, f"frame {frame}", color="white", fontsize=10, va="top")
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    agg.draw()
    return np.ascontiguousarray(np.asarray(agg.buffer_rgba())[:, :, :3])


def _segments(
    tracks: Tracks, frame: int, tail: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Lines (n, 2, 2) from earlier to later as (y, x), colours (n, 4), divisions (m, 2)."""
    nodes = tracks.nodes.set_index("id")
    edges = tracks.edges
    later = nodes["frame"].reindex(edges["target"]).to_numpy()
    recent = (later <= frame) & (later > frame - tail)
    edges, later = edges[recent], later[recent]
    position = nodes[["y", "x"]]
    start = position.reindex(edges["source"]).to_numpy(dtype=np.float64)
    stop = position.reindex(edges["target"]).to_numpy(dtype=np.float64)
    lineages = nodes["lineage_id"].reindex(edges["target"]).to_numpy()
    opacity = 1 - 0.75 * (frame - later) / max(tail, 1)
    colours = np.column_stack([_colours(lineages), opacity])
    divided = (edges["event"] == "divide").to_numpy()
    return np.stack([start, stop], axis=1), colours, np.unique(start[divided], axis=0)


def _write_png(picture: Picture, path: Path) -> None:
    """Write a picture, whole or not at all."""
    from matplotlib.image import imsave

    if not path.parent.is_dir():
        raise OutputError(f"cannot write the picture {path}: there is no such folder")
    with staged(path, "the picture") as spare, writing(path, "the picture"):
        imsave(spare, picture, format="png", metadata={"Software": "bridgetrack"})


def _stretched(image: NDArray[Any] | None, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Grey values from 0 to 0.75 between two percentiles, with dim cells brightened."""
    if image is None or not np.isfinite(image).any():
        return np.zeros(shape)
    low, high = np.nanpercentile(image, [1, 99.8])
    share = (np.nan_to_num(image.astype(np.float64), nan=low) - low) / max(high - low, 1e-12)
    return np.asarray(0.75 * np.clip(share, 0, 1) ** 0.7)


def _flat(image: NDArray[Any]) -> NDArray[Any]:
    """Maximum projection of a stack; a flat image is returned as it is."""
    return np.asarray(image.max(axis=0)) if image.ndim == 3 else image


def _topmost(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels seen from the first plane, so that each pixel shows the first cell met."""
    if labels.ndim == 2:
        return labels
    first = (labels > 0).argmax(axis=0)
    return np.asarray(np.take_along_axis(labels, first[None], axis=0)[0])


def _enlarged(image: NDArray[Any], zoom: int) -> NDArray[Any]:
    return np.repeat(np.repeat(image, zoom, axis=0), zoom, axis=1)
