"""Length scales of cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections


def equivalent_diameter(detections: Detections) -> NDArray[np.float64]:
    """Diameter of the disc or ball with a cell's area, in the movie's unit, shape (n,)."""
    geometry = detections.geometry
    area = detections.table["area"].to_numpy(dtype=np.float64) * float(np.prod(geometry.scale))
    if geometry.ndim == 2:
        return np.asarray(2.0 * np.sqrt(area / np.pi))
    return np.asarray(np.cbrt(6.0 * area / np.pi))


def cell_diameter(detections: Detections) -> float:
    """Median equivalent diameter of the movie, in its unit; positive.

    Where there are no masks, the areas of a table may be unknown (all the same); then half the
    median distance between neighbours stands in.
    """
    diameter = float(np.median(equivalent_diameter(detections))) if len(detections) else 1.0
    return max(diameter, 1e-6)
