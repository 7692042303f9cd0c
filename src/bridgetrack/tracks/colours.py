"""Colours of tracks and their cells, the same in pictures, files and the window."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.table import cell_features, cells_by_track, sights, titles, track_table
from bridgetrack.tracks.tracks import Tracks

_GOLDEN = 0.618033988749895
_APART = 31
"""Factor of the frame of a first cell, which is added to its label."""

UNKNOWN = (0.55, 0.55, 0.55)
"""Colour for missing values."""

# Viridis without its darkest end, which is lost on a dark ground.
_VIRIDIS = ("4a58a8", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725")
_WHEEL = [colorsys.hsv_to_rgb(k / 24 % 1.0, 0.75, 1.0) for k in range(25)]
PALETTES: dict[str, Array] = {
    "names": np.asarray(_WHEEL),
    "certainty": np.array([[0.84, 0.37, 0.0], [0.94, 0.89, 0.26], [0.34, 0.71, 0.91]]),
    "numbers": np.array([[int(c[k : k + 2], 16) / 255 for k in (0, 2, 4)] for c in _VIRIDIS]),
}
"""Colours at equal distances from shade 0 to shade 1, shape (k, 3) each."""

_OF_TRACKS = ("duration", "mean_speed", "mean_area", "growth", "divisions", "displacement")


@dataclass(frozen=True)
class Colouring:
    """A shade for every cell of every track."""

    by: str  # what the colours represent, see `colourings`
    words: str  # the same in words, with its unit
    palette: str  # which of `PALETTES`
    # track_id, frame: the sights in the order of `cells_by_track`, shape (n,)
    track_id: Index
    frame: Index
    shades: Array  # from 0 to 1, NaN where there is no value, shape (n,)
    # low, high: values of the shades 0 and 1; NaN if the colours are categories
    low: float
    high: float
    along: bool  # whether the value changes along a track

    @property
    def colours(self) -> Array:
        """Red, green and blue of every sight, shape (n, 3)."""
        return paint(self.shades, self.palette)

    def at(self, track_id: Index, frame: Index) -> Index:
        """Rows of the sights of some tracks in some frames."""
        wide = int(self.frame.max(initial=0)) + 1
        return np.searchsorted(self.track_id * wide + self.frame, track_id * wide + frame)


def paint(shades: Array, palette: str) -> Array:
    """Red, green and blue of shades from 0 to 1, grey where they are NaN, shape (n, 3)."""
    stops = PALETTES[palette]
    at = np.linspace(0, 1, len(stops))
    found = np.column_stack([np.interp(shades, at, stops[:, k]) for k in range(3)])
    found[np.isnan(shades)] = UNKNOWN
    return found


def colourings(tracks: Tracks) -> dict[str, str]:
    """The quantities by which tracks can be coloured, with their words."""
    known = {name: name for name in ("lineage", "certainty", "track", "generation")}
    numbers = (*cell_features(tracks), *_OF_TRACKS)
    return known | {name: title_of(name, tracks.geometry) for name in numbers}


def title_of(name: str, geometry: Geometry) -> str:
    """Name of a measure of cells or tracks with its unit, for axes and legends."""
    return titles(geometry).get(name, name).replace("_", " ")


def colouring(tracks: Tracks, by: str = "lineage") -> Colouring:
    """Colour tracks by one of `colourings`; raises an `InputError` if it is none of them."""
    known = colourings(tracks)
    if by not in known:
        raise InputError(f"tracks cannot be coloured by {by!r}; choose from {', '.join(known)}")
    along = by in cell_features(tracks)
    seen = cells_by_track(tracks) if along else sights(tracks)
    track_id = seen["track_id"].to_numpy(dtype=np.int64)
    palette, low, high = "names", np.nan, np.nan
    if by in ("lineage", "track"):
        # By the first cell: numbers of lineages change if another one is added or removed.
        name = "lineage_id" if by == "lineage" else "track_id"
        first = tracks.nodes.sort_values(["frame", "label"]).drop_duplicates(name)
        marks = first["label"] + _APART * first["frame"]
        marks = marks.set_axis(first[name]).reindex(seen[name])
        shades = np.asarray(marks * _GOLDEN % 1.0)  # distinct for consecutive numbers
    else:
        palette = "certainty" if by == "certainty" else "numbers"
        values = seen[by] if along else _of_tracks(tracks, by).reindex(track_id)
        numbers = np.asarray(values, dtype=np.float64)
        low, high = _range(numbers, by)
        shades = np.clip((numbers - low) / (high - low), 0, 1)
    frame = seen["frame"].to_numpy(dtype=np.int64)
    return Colouring(by, known[by], palette, track_id, frame, shades, low, high, along)


def _of_tracks(tracks: Tracks, name: str) -> pd.Series[Any]:
    return track_table(tracks).set_index("track_id")[titles(tracks.geometry).get(name, name)]


def _range(values: Array, by: str) -> tuple[float, float]:
    """Values at both ends of the palette, which a few extremes must not stretch."""
    known = values[np.isfinite(values)]
    if by == "certainty":
        return 0.5, 1.0
    if not len(known):
        return 0.0, 1.0
    whole = by in ("divisions", "generation")
    low, high = (0.0, known.max()) if whole else np.percentile(known, [2, 98])
    return float(low), float(high if high > low else low + 1)
