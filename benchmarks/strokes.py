"""Strokes as a person would paint them, drawn from a truth: for benchmarks of taught pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tifffile
from numpy.typing import NDArray
from scipy import ndimage as ndi

from common import DATA

Array = NDArray[np.integer]


def true_masks(folder: str, sequence: str = "01") -> Callable[[int], Array]:
    """Whole-cell masks of a movie by the number of the frame."""
    place = DATA / folder / f"{sequence}_GT"
    found = [sorted((place / name).glob("man_track*.tif")) for name in ("FULL", "TRA", ".")]
    files: list[Path] = next(f for f in found if f)
    return lambda t: np.asarray(tifffile.imread(files[t]))


def classes_of(masks: Array) -> Array:
    """True classes of all pixels: 1 background, 2 cell, 3 edge between cells."""
    none = int(masks.max()) + 1
    size = (1,) * (masks.ndim - 2) + (3, 3)
    highest = ndi.maximum_filter(masks, size)
    lowest = ndi.minimum_filter(np.where(masks > 0, masks, none), size)
    found = np.where(masks > 0, 2, 1)
    return np.where((highest > 0) & (lowest < none) & (highest != lowest), 3, found)


def draw_strokes(
    masks: Callable[[int], Array],
    frames: Sequence[int],
    shape: tuple[int, ...],
    count: int = 20,
    seed: int = 0,
) -> dict[int, NDArray[np.uint8]]:
    """Strokes about as long as a cell, in turn of every class, each on one of some frames.

    Parameters
    ----------
    masks
        True masks of a frame.
    frames
        Frames to paint on.
    shape
        Of a frame.
    count
        How many strokes.
    seed
        Of what is random.

    Returns
    -------
    dict[int, NDArray[np.uint8]]
        Painted frames by their number.
    """
    rng = np.random.default_rng(seed)
    drawn = {t: np.zeros(shape, np.uint8) for t in frames}
    for k in range(count):
        frame = frames[(k // 3) % len(frames)]
        truth = masks(frame)
        classes, wanted = classes_of(truth), k % 3 + 1
        places = np.argwhere(classes == wanted)
        if len(places):
            _draw(drawn[frame], truth, classes, places, wanted, rng)
    return {t: marks for t, marks in drawn.items() if marks.any()}


def _draw(
    marks: NDArray[np.uint8],
    truth: Array,
    classes: Array,
    places: Array,
    wanted: int,
    rng: np.random.Generator,
) -> None:
    sizes = np.bincount(truth.ravel())[1:]
    ndim = truth.ndim
    unit = np.pi / (4 if ndim == 2 else 6)
    diameter = float((np.median(sizes[sizes > 0]) / unit) ** (1 / ndim))
    first = places[rng.integers(len(places))]
    step = np.zeros(ndim)
    step[-2:] = rng.normal(0, 1, 2)
    last = first + step / np.linalg.norm(step) * diameter * (2 if wanted == 1 else 0.7)
    line = np.linspace(first, last, 4 * int(diameter) + 2).round().astype(int)
    line = line[((line >= 0) & (line < truth.shape)).all(axis=1)]
    brush = np.zeros(truth.shape, bool)
    brush[tuple(line.T)] = True
    cross = ndi.generate_binary_structure(2, 1)[(None,) * (ndim - 2)]
    width = max(1, int((0.35 if wanted == 3 else 0.08) * diameter))
    brush = ndi.binary_dilation(brush, cross, iterations=width) & (classes == wanted)
    pieces = ndi.label(brush, np.ones((3,) * ndim))[0]
    start = tuple(first)
    marks[pieces == pieces[start] if pieces[start] else brush] = wanted
