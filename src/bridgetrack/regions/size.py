"""How large the cells of a movie are, as the movie itself shows, and what that says of candidates.

The score of regions compares candidates with those around; specks, tails and pieces of cells that
are many in a movie pass it. What is far smaller than the cells that are surest is seldom one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.regions.regions import Array

_LEAST_SPREAD = 0.2
_TENTH = 1.28
"""Standard deviations from the mean of a normal distribution to its first tenth."""
_FREE = 2.5
_SLOPE = 3.0 / 0.35
_MOST = 12.0


@dataclass(frozen=True)
class CellSize:
    """Usual size of the cells of a movie.

    Parameters
    ----------
    centre
        Median of the log of the area (in 3D of the volume), in pixels.
    spread
        Standard deviation towards small cells.
    """

    centre: float
    spread: float

    def doubt(self, area: Array) -> Array:
        """What smallness takes off the log-odds of candidates, shape (R,).

        Nothing within 2.5 standard deviations; below that 3 for each further factor of 1.4.
        """
        below = self.centre - _FREE * self.spread - np.log(area)
        return np.clip(_SLOPE * below, 0.0, _MOST)


def usual_size(areas: Sequence[Array], scores: Sequence[Array]) -> CellSize | None:
    """Size of the surer half of the cells that were chosen in some frames; None without cells.

    Parameters
    ----------
    areas, scores
        Pixels and log-odds of the cells of every frame.
    """
    area, score = np.concatenate([[], *areas]), np.concatenate([[], *scores])
    if not len(area):
        return None
    log = np.log(area[score >= np.median(score)])
    centre = float(np.median(log))
    return CellSize(centre, max(_LEAST_SPREAD, (centre - float(np.quantile(log, 0.1))) / _TENTH))
