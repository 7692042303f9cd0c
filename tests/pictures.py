"""Small pictures of known cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi


def blobs(
    shape: tuple[int, ...],
    centres: list[tuple[float, ...]],
    radius: float,
    scale: tuple[float, ...] | None = None,
) -> NDArray[np.int32]:
    """Labels of discs or balls; `radius` in pixels along the last axis."""
    scale = scale or (1.0,) * len(shape)
    grid = np.indices(shape).reshape(len(shape), -1).T * np.asarray(scale)
    points = np.asarray(centres) * np.asarray(scale)
    distance = np.linalg.norm(grid[:, None] - points[None], axis=2)
    nearest = distance.argmin(axis=1)
    labels = np.where(distance.min(axis=1) <= radius * scale[-1], nearest + 1, 0)
    return labels.reshape(shape).astype(np.int32)


def photograph(
    labels: NDArray[np.int32],
    contrast: float = 100.0,
    background: float = 50.0,
    noise: float = 2.0,
    seed: int = 1,
) -> NDArray[np.float32]:
    """The picture of the labels by a slightly blurred and noisy camera."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(0.5, 1.0, int(labels.max()) + 1) * contrast
    level[0] = 0
    sharp = level[labels].astype(np.float32) + background
    blurred = ndi.gaussian_filter(sharp, 1.0)
    return (blurred + rng.normal(0, noise, labels.shape)).astype(np.float32)


def found_share(truth: NDArray[np.integer], found: NDArray[np.integer]) -> float:
    """Share of true cells that overlap one found cell by an IoU above one half."""
    n = int(found.max()) + 1
    pairs = np.bincount(
        truth.ravel().astype(np.int64) * n + found.ravel(), minlength=(int(truth.max()) + 1) * n
    ).reshape(-1, n)
    true_size, found_size = pairs.sum(axis=1), pairs.sum(axis=0)
    iou = pairs / np.maximum(true_size[:, None] + found_size[None] - pairs, 1)
    there = true_size[1:] > 0
    return float(np.mean(iou[1:, 1:].max(axis=1, initial=0)[there] > 0.5))
