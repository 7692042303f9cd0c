"""Choose settings for a movie: several readings are tried on some frames, the most stable one wins.

Cells may be brighter than the background, darker, or more structured; each reading has a size of
cells of its own. A wrong reading finds different things in every frame, or a few blurred ones; the
right one finds many cells again in the next frame. The look of single frames counts a little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.metrics import contingency_table

from bridgetrack.movie.movie import Movie
from bridgetrack.segmentation.builtin import (
    FrameView,
    complete_settings,
    estimate_diameter,
    estimate_foreground,
    one_sided,
    segment_builtin,
)
from bridgetrack.segmentation.cells import Labels
from bridgetrack.segmentation.settings import Foreground, SegmentationSettings

_SAMPLED_FRAMES = 5
_PAIRS = 3
_LARGEST = 1000
_FOREGROUNDS: tuple[Foreground, ...] = ("bright", "dark", "texture")
_LIKELY = 1.3
"""How many times better a reading must be than the one that single frames suggest."""
_AGAIN = 0.35
"""Share of cells that must be found again for that to say anything."""
_CLEAR = 1.5
"""A reading is clear where it is so many times better than the next."""
_EVEN = 1.8
"""Sizes in single frames that differ by a larger factor are reported."""


@dataclass(frozen=True)
class Reading:
    """One way to see a movie, and how well that works."""

    foreground: Foreground  # what a cell looks like, see `SegmentationSettings`
    diameter: float  # of a typical cell, in pixels along x
    cells: float = 0.0  # cells in a frame, on average
    # share of them that are found again in the next frame, with an IoU above one half
    again: float = 0.0
    spread: float = 1.0  # the largest by the smallest diameter estimated in a frame
    likely: bool = False  # whether single frames suggest it, see `estimate_foreground`

    @property
    def words(self) -> str:
        """E.g. ``"bright and 11 pixels wide"``."""
        looks = "structured" if self.foreground == "texture" else self.foreground
        return f"{looks} and {self.diameter:.0f} pixels wide"

    @property
    def worth(self) -> float:
        """Cells found again, weighed by how regularly they are; readings are compared by it."""
        return self.cells * self.again**2 * (_LIKELY if self.likely else 1.0)


@dataclass(frozen=True)
class SettingsEstimate:
    """Settings chosen for a movie, and how certain the choice is."""

    settings: SegmentationSettings  # none is missing
    # readings tried, best first; a single untried one if there was nothing to choose
    readings: tuple[Reading, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to look at the result, as sentences without a full stop."""
        best, *others = self.readings
        found = []
        if others and others[0].worth * _CLEAR > best.worth:
            found.append(
                f"cells are taken as {best.words}, but {others[0].words} fits nearly as well; "
                "check the result, and if it is wrong give look and size (--foreground, --diameter)"
            )
        if best.cells and best.again < _AGAIN:
            found.append(
                f"only {100 * best.again:.0f} % of a frame's cells are found again in the next "
                "one: the built-in method may not suit these images, unless cells move by more "
                "than half of their width; check the result, and use masks from another program, "
                "such as Cellpose, if it is wrong"
            )
        if best.spread > _EVEN:
            found.append(
                f"the size of cells differs from frame to frame by a factor of {best.spread:.1f}, "
                f"by a first estimate; {best.diameter:.0f} pixels are assumed; if that is wrong, "
                "give the size (--diameter)"
            )
        return tuple(found)


def estimate_settings(
    movie: Movie, settings: SegmentationSettings | None = None, *, channel: int | str = 0
) -> SettingsEstimate:
    """Choose missing settings for a whole movie, from some of its frames.

    Parameters
    ----------
    movie
        The movie.
    settings
        Those that are given.
    channel
        Number or name of the channel that shows the cells.
    """
    settings = settings or SegmentationSettings()
    number = movie.channel_number(channel)
    times = np.unique(np.linspace(0, movie.n_frames - 1, _SAMPLED_FRAMES).round().astype(int))
    frames = [movie.channel_frame(int(t), number) for t in times]
    kinds = _FOREGROUNDS
    if settings.foreground != "auto":
        kinds = (settings.foreground,)
    elif (side := one_sided(frames)) is not None:
        kinds = (side,)
    elif movie.n_frames < 2:
        kinds = (complete_settings(frames, settings).foreground,)
    readings = [r for kind in kinds if (r := _reading(frames, kind, settings)) is not None]
    if len(readings) > 1:
        likely = estimate_foreground(frames)
        readings = [replace(r, likely=r.foreground == likely) for r in readings]
        pairs = _pairs(movie, number)
        readings = _ranked([_tried(r, pairs, settings, movie.geometry.scale) for r in readings])
    best = readings[0] if readings else Reading(kinds[0], settings.diameter or 20.0)
    settings = replace(settings, foreground=best.foreground, diameter=best.diameter)
    return SettingsEstimate(complete_settings(frames, settings), tuple(readings) or (best,))


def _reading(
    frames: list[NDArray[Any]], kind: Foreground, settings: SegmentationSettings
) -> Reading | None:
    """A reading with the size of its cells; None where it shows none."""
    if settings.diameter is not None:
        return Reading(kind, settings.diameter)
    known = [d for frame in frames if (d := estimate_diameter(frame, kind)) is not None]
    if not known:
        return None
    return Reading(kind, float(np.median(known)), spread=max(known) / min(known))


def _ranked(readings: list[Reading]) -> list[Reading]:
    """Best first; if frames are too far apart to find cells again, the `likely` ones first."""
    ranked = sorted(readings, key=lambda r: -r.worth)
    if ranked[0].again < _AGAIN:
        ranked.sort(key=lambda r: not r.likely)
    return ranked


def _pairs(movie: Movie, channel: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Some frames with their successors; of large ones the middle."""
    last = movie.n_frames - 2
    times = np.unique(np.linspace(0, last, 2 * _PAIRS + 1).round().astype(int)[1::2])
    middle: Any = tuple(
        slice(max(0, (n - _LARGEST) // 2), max(0, (n - _LARGEST) // 2) + _LARGEST)
        for n in (movie.geometry.shape or ())[-2:]
    )
    return [
        (
            movie.channel_frame(int(t), channel)[..., *middle],
            movie.channel_frame(int(t) + 1, channel)[..., *middle],
        )
        for t in times
    ]


def _tried(
    reading: Reading,
    pairs: list[tuple[NDArray[Any], NDArray[Any]]],
    settings: SegmentationSettings,
    scale: tuple[float, ...],
) -> Reading:
    """A reading with the numbers of cells that it finds, and finds again."""
    chosen = replace(settings, foreground=reading.foreground, diameter=reading.diameter)
    found = []
    for pair in pairs:
        first, second = (segment_builtin(FrameView(frame, chosen, scale)) for frame in pair)
        found.append(((int(first.max()) + int(second.max())) / 2, _again(first, second)))
    cells, again = (float(np.mean(values)) for values in zip(*found, strict=True))
    return replace(reading, cells=cells, again=again / max(cells, 1e-9))


def _again(first: Labels, second: Labels) -> int:
    """Cells of a frame that one cell of the next frame covers by an IoU above one half."""
    pairs = contingency_table(first, second).tocoo()
    here, there = pairs.row, pairs.col
    union = np.bincount(first.ravel())[here] + np.bincount(second.ravel())[there] - pairs.data
    return int(np.count_nonzero((here > 0) & (there > 0) & (2 * pairs.data > union)))
