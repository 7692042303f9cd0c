"""How large the cells of a movie are, by the candidates of several sizes.

Candidates depend on the size of cells, which is estimated from the foreground, split into cells.
Where cells lie side by side they do not come apart, and where their texture tells them apart from
the background, they fall into pieces. Candidates of other sizes show that: at the right one more of
the picture is surely cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.mask_candidates import (
    MaskReader,
    best_start,
)
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.describe import Described, described
from bridgetrack.regions.score import KINDS, RegionScore, starting_score
from bridgetrack.segmentation.builtin import complete_settings
from bridgetrack.segmentation.readings import SettingsEstimate, estimate_settings
from bridgetrack.segmentation.settings import SegmentationSettings

_STEP = 1.4
_UP, _DOWN = 1, 6
"""Steps at most. Estimates are too large, rather than too small, where cells lie side by side."""
_LEAST = 5.0
"""Pixels; smaller cells have no shape."""
_BETTER = 1.25
"""How many times as much another size must show. Up to 1.2 on HeLa, PSC and simulated nuclei, where
other sizes find as many cells; five times where long dark ones fall into pieces, and more where
bright rods side by side are taken for one cell."""
_ACROSS, _LEAST_SIDE, _LARGEST_SIDE = 15, 300, 700
"""Cells side by side, and pixels, along y and x that are looked at in the middle of frames."""
_WIDTH, _PIXELS = 0, 1


def fitted_settings(
    movie: Movie, settings: SegmentationSettings | None = None, *, channel: int | str = 0
) -> Steps[SettingsEstimate]:
    """Decide for a whole movie what settings leave open, its size of cells by their candidates.

    Parameters
    ----------
    movie, settings, channel
        See `estimate_settings`, which decides all but the size; one that is given is kept.
    """
    yield Progress("Looking at the movie", 0.0)
    settings = settings or SegmentationSettings()
    estimate = estimate_settings(movie, settings, channel=channel)
    if settings.diameter is not None:
        return estimate
    # Frames are looked at in the middle, whose edge is not that of the frame.
    known = replace(settings, foreground=estimate.settings.foreground, clear_border=False)
    size = float(estimate.settings.diameter or 20.0)
    starts = tuple(starting_score(kind) for kind in KINDS)
    sight = _Sight(_middle(movie, size), movie.channel_number(channel), known, size, starts)
    late, *early = _pairs(movie.n_frames)
    shown = {0: (yield from sight.explained(0, late))}
    for side, most in ((1, _UP), (-1, _DOWN)):
        # The weight that favours the estimate: several cells taken for one have more pixels than
        # these, and pieces of cells have more width.
        weight = _WIDTH if side > 0 else _PIXELS
        for step in range(side, side * (most + 1), side):
            if sight.diameter(step) < _LEAST:
                break
            shown[step] = yield from sight.explained(step, late)
            past = [shown[k][weight] for k in (step, step - side, step - 2 * side) if k in shown]
            if abs(step) > 1 and past[0] < past[1] < past[2]:
                break
    best = _best(shown)
    for pair in early if best else ():
        for step in (0, best):
            more = yield from sight.explained(step, pair)
            shown[step] = (shown[step][0] + more[0], shown[step][1] + more[1])
        best = _best({step: shown[step] for step in (0, best)})
    if not best:
        return estimate
    first, *others = estimate.readings
    first = replace(first, diameter=sight.diameter(best))
    found = replace(sight.settings_at(best), clear_border=settings.clear_border)
    return SettingsEstimate(found, (first, *others))


def _best(shown: dict[int, tuple[float, float]]) -> int:
    """The step that shows clearly more than the estimate; 0 where none does."""
    better = []
    for side, weight in ((1, _WIDTH), (-1, _PIXELS)):
        step = max((k for k in shown if k * side >= 0), key=lambda k: shown[k][weight])
        if shown[step][weight] > _BETTER * max(shown[0][weight], 0.0):
            better.append(step)
    return max(better, key=lambda k: shown[k][_WIDTH] * shown[k][_PIXELS], default=0)


@dataclass(frozen=True)
class _Sight:
    """Some frames of a movie, looked at with several sizes."""

    movie: Movie
    channel: int
    known: SegmentationSettings  # all but the size
    size: float
    starts: tuple[RegionScore, ...]

    def diameter(self, step: int) -> float:
        return self.size * _STEP**step

    def settings_at(self, step: int) -> SegmentationSettings:
        return complete_settings([], replace(self.known, diameter=self.diameter(step)))

    def explained(self, step: int, frames: list[int]) -> Steps[tuple[float, float]]:
        """How much of width, and of pixels, is a cell by the log-odds of the best score."""
        reader = MaskReader(self.movie, self.channel, self.settings_at(step))
        taken: list[Described] = []
        for one in described(reader.frames(frames)):
            yield Progress("Looking at the movie", 0.0)
            taken.append(one)
        _, cells, odds = best_start(taken, self.starts)
        area, sure = np.concatenate([found.area for found in cells]), np.concatenate(odds)
        return float((np.sqrt(area) * sure).sum()), float((area * sure).sum())


def _pairs(n_frames: int) -> list[list[int]]:
    """Two frames each that follow each other, at two thirds of the movie and at a third."""
    first = {min(k * n_frames // 3, max(0, n_frames - 2)) for k in (1, 2)}
    return [[t for t in (f, f + 1) if t < n_frames] for f in sorted(first, reverse=True)]


def _middle(movie: Movie, size: float) -> Movie:
    """The movie, of large frames the middle."""
    shape = movie.geometry.shape or ()
    side = int(min(max(_ACROSS * size, _LEAST_SIDE), _LARGEST_SIDE))
    low = [max(0, (n - side) // 2) for n in shape[-2:]]
    middle: Any = tuple(slice(a, a + min(side, n)) for a, n in zip(low, shape[-2:], strict=True))
    inside = (*shape[:-2], *(min(side, n) for n in shape[-2:]))
    geometry = replace(movie.geometry, shape=inside)
    return replace(movie, array=movie.array[(..., *middle)], geometry=geometry)
