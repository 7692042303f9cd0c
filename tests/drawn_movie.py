"""Small movies drawn by hand: bright nuclei, two of which touch, and rods side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.annotations.history import AnswerChange
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.movie.geometry import Geometry
from bridgetrack.regions.mend import MaskAnswer, MendKind
from bridgetrack.segmentation.settings import SegmentationSettings

SIZE = 96
GEOMETRY = Geometry(4, (SIZE, SIZE), (1.0, 1.0))
NUCLEI = SegmentationSettings(foreground="bright", diameter=14.0, depth=0.05)
"""What suits the nuclei that are drawn, so that their size need not be looked for."""
PLACES = ((20.0, 20.0), (20.0, 33.0), (60.0, 24.0), (64.0, 70.0), (30.0, 74.0))


def drawn(n_frames: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bright nuclei on dark noise, two of which touch; images and true labels."""
    rng = np.random.default_rng(seed)
    yy, xx = np.indices((SIZE, SIZE))
    images = rng.normal(100, 4, (n_frames, SIZE, SIZE))
    labels = np.zeros((n_frames, SIZE, SIZE), dtype=np.int32)
    for t in range(n_frames):
        for k, (y, x) in enumerate(PLACES):
            r2 = ((yy - y - t) / 8.0) ** 2 + ((xx - x - 0.5 * t) / 7.0) ** 2
            images[t] += 120 * np.exp(-(r2**2))
            labels[t][(r2 < 0.8) & (labels[t] == 0)] = k + 1
    return images, labels


def ringed() -> NDArray[np.float32]:
    """Nine bright cells with dark rings, which may as well be many small dark ones; two frames."""
    rng, side = np.random.default_rng(0), 32
    yy, xx = np.indices((3 * side, 3 * side)) % side - side / 2
    images = []
    for t in range(2):
        away = np.hypot(yy - t, xx)
        image = 100.0 + 60 * (away < 6) - 80 * ((away >= 6) & (away < 9))
        images.append(ndi.gaussian_filter(image, 1) + rng.normal(0, 3, image.shape))
    return np.stack(images).astype(np.float32)


def textured() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, true labels, and labels without one cell, as bright as the background but rough."""
    images, truth = drawn()
    rng, rough = np.random.default_rng(1), truth == 4
    for image, there in zip(images, rough, strict=True):
        around = ndi.binary_dilation(there, iterations=6)
        image[around] = rng.normal(100, 4, around.sum())
        image[there] += rng.normal(0, 25, there.sum())
    return images, truth, np.where(rough, 0, truth)


def squares() -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Crowded squares without blur or noise, which look like no cells; five frames and masks."""
    labels = np.zeros((5, 60, 60), dtype=np.int32)
    for t in range(5):
        for k, (y, x) in enumerate([(2, 2), (2, 29), (29, 2), (29, 29)]):
            labels[t, y + 2 * t : y + 2 * t + 24, x : x + 24] = k + 1
    return np.where(labels > 0, 100, 0).astype(np.float32), labels


def answered(path: Path, one: bool, frame: int = 1) -> Path:
    """A file of answers about masks: whether the two nuclei that touch are one cell there."""
    true = drawn()[1]
    parts = tuple(np.flatnonzero(true[frame] == k) for k in (1, 2))
    both, second = (np.sort(np.concatenate(parts)),), parts[1]
    change = second, np.ones_like(second), np.full_like(second, 2)
    said = MaskAnswer.of(frame, MendKind.CUT, parts, both, change)
    if one:
        said = MaskAnswer.of(frame, MendKind.KEEP, both, parts)
    AutosavingStore(path, GEOMETRY).edit(
        AnswerChange(masks_added=MaskAnswers(GEOMETRY).next_for([said]))
    )
    return path


def added(answers: MaskAnswers, *said: MaskAnswer) -> MaskAnswers:
    """The answers with some more."""
    return answers.edit(add=answers.next_for(said))


def colony(bright: bool = False) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Rods side by side, dark with a bright halo around them or bright, and masks; four frames."""
    rng, size = np.random.default_rng(4), (230, 250)
    grid = np.stack(np.indices(size), axis=-1) - np.array(size) / 2
    labels = np.zeros((4, *size), dtype=np.int64)
    for t in range(4):
        turn = 0.4 + 0.03 * t
        along = grid @ np.array([np.sin(turn), np.cos(turn)])
        across = grid @ np.array([np.cos(turn), -np.sin(turn)])
        for k in range(18):
            row, column = divmod(k, 3)
            middle = 58 * (column - 1) + 18 * (row % 2) - 9, (13.5 + 2 * bright) * (row - 2.5)
            if bright and k % 5 == 3:
                continue  # ragged: as a whole it looks like no cell
            beyond = np.abs(along - middle[0]) - 22
            labels[t][np.hypot(np.maximum(beyond, 0), across - middle[1]) < 6] = k + 1
    inside = (labels > 0).astype(float)
    near, far = (ndi.gaussian_filter(inside, (0, s, s)) for s in (5.0, 24.0))
    grain = ndi.gaussian_filter(rng.normal(0, 8, inside.shape), (0, 3.5, 3.5))
    light = 1 + 1.2 * near + 0.5 * far - inside * (1.8 + 0.15 * grain)
    light = ndi.gaussian_filter(light, (0, 1.5, 1.5))
    if bright:
        near = ndi.gaussian_filter(inside * (1 + 0.15 * grain), (0, 1.0, 1.0))
        light = 0.05 + near
    images = 100 + 1200 * np.maximum(light, 0) + rng.normal(0, 60, light.shape)
    return images.clip(0, 65535).astype(np.uint16), labels
