"""How large the cells of a movie are, as the movie itself shows, and what that says of candidates.

The score of regions compares candidates with those around; specks, tails and pieces of cells that
are many in a movie pass it. What is far smaller than the cells that are surest is seldom one. Where
debris is as sure and as frequent, cells are what most of the pixels belong to: few large ones cover
more than many specks beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.regions.regions import Array, Index, Mask

_LEAST_SPREAD = 0.2
_TENTH = 1.28
"""Standard deviations from the mean of a normal distribution to its first tenth."""
_FREE = 2.5
_SLOPE = 3.0 / 0.35
_FREE_ABOVE = 1.5
_SLOPE_ABOVE = 0.5
_MOST = 12.0
_NONE = 2.0
"""Doubt from which a candidate is none where debris lies beside the cells."""
_SPECK = 1 / 3
"""Share of the middle size of its frame below which a sure candidate looks like debris: of those of
HeLa and PSC 3 % are, of HL60 none, of U373, where debris lies beside the cells, 49 %."""
_MANY, _ALL = 0.2, 0.8
"""Shares of them between which they are taken for debris: fewer may be small cells, and more are
the cells, beside something large."""
_CELL = 0.5
"""Share of the middle size of the movie from which candidates are cells then."""


@dataclass(frozen=True)
class CellSize:
    """Usual size of the cells of a movie.

    Parameters
    ----------
    centre
        Median of the log of the area (in 3D of the volume), in pixels.
    spread
        Standard deviation towards small cells.
    above
        The same towards large ones.
    debris
        Whether much smaller things, as sure as cells, lie beside them.
    """

    centre: float
    spread: float
    above: float = np.inf
    debris: bool = False

    def doubt(self, area: Array) -> Array:
        """What an unusual size takes off the log-odds of candidates, shape (R,).

        Nothing within 2.5 standard deviations; below that 3 for each further factor of 1.4.
        Above 1.5 half for each further standard deviation: two cells drawn as one.
        """
        log = np.log(area)
        below = _SLOPE * (self.centre - _FREE * self.spread - log)
        above = _SLOPE_ABOVE * ((log - self.centre) / self.above - _FREE_ABOVE)
        return np.clip(np.maximum(below, above), 0.0, _MOST)

    def none(self, area: Index) -> Mask:
        """Which candidates are no cells whatever the frames around say, shape (R,).

        Debris lies still, and is so well explained in time that no doubt about single frames
        outweighs that. Where there is none, what is small may be a cell that is just born.
        """
        return np.asarray(self.debris & (self.doubt(area.astype(np.float64)) > _NONE))


def usual_size(areas: Sequence[Array], scores: Sequence[Array]) -> CellSize | None:
    """Size of the surer half of the cells that were chosen in some frames; None without cells.

    Parameters
    ----------
    areas, scores
        Pixels and log-odds of the cells of every frame.
    """
    if not any(len(a) for a in areas):
        return None
    least = np.median(np.concatenate(scores))
    sure = [a[score >= least] for a, score in zip(areas, scores, strict=True)]
    area = np.concatenate(sure)
    # Beside larger ones in the same frame: cells that become smaller with time are no debris.
    specks = np.concatenate([a < _SPECK * _middle(a) for a in sure])
    debris = _MANY < specks.mean() < _ALL
    if debris:
        area = area[area >= _CELL * _middle(area)]
    log = np.log(area)
    centre = float(np.median(log))
    low, high = (float(q) for q in np.quantile(log, [0.1, 0.9]))
    below, above = ((d / _TENTH) for d in (centre - low, high - centre))
    if debris:  # some of it is left among the small ones
        below = min(below, above)
    return CellSize(centre, max(_LEAST_SPREAD, below), max(_LEAST_SPREAD, above), bool(debris))


def _middle(area: Array) -> float:
    """The size up to which candidates have half of all pixels."""
    ordered = np.sort(area)
    share = np.cumsum(ordered)
    return float(ordered[np.searchsorted(share, share[-1] / 2)]) if len(ordered) else 0.0
