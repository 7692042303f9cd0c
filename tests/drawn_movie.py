"""A small movie of bright nuclei drawn by hand, two of which touch."""

from __future__ import annotations

import numpy as np

SIZE = 96
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
