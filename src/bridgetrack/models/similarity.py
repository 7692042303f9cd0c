"""How similar two movies are, by the features of their likely events, in numbers and in words.

For every feature that is known in both movies the means are compared in units of the common
spread, and the spreads by their ratio; both are symmetric. A kind of event counts by
`_IMPORTANCE`, where both movies have enough of it. How often each kind happens per cell is
compared by the ratio: many splits, merges and false cells tell a segmentation with errors from
a clean one, which asks for other weights though the cells behave alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.similarity_words import rate_words, words_of
from bridgetrack.models.statistics import FeatureStatistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Level = Literal["very similar", "similar", "different", "unknown"]

VERY_SIMILAR, SIMILAR = 0.2, 0.4
"""Largest distances that are called so; from the distances between recordings of one kind and of
different kinds, see docs/model_library.md."""

_ENOUGH = 10
_FLOOR = 0.05
_MOST = 3.0
_SPREADS = 0.5
_RATES = 2.0
_RARE = 0.002
"""Events per cell that make no difference yet."""
_IMPORTANCE = {Event.MOVE: 2.0, Event.DIVIDE: 1.0, Event.APPEAR: 0.5, Event.DISAPPEAR: 0.5}


@dataclass(frozen=True)
class Difference:
    """A property in which two movies differ.

    Parameters
    ----------
    key
        Feature, or the event whose frequency differs.
    yours, theirs
        Its middle value (or frequency per cell) in the two movies.
    size
        How much it adds to the distance.
    words
        As a sentence without its end.
    """

    key: str
    yours: float
    theirs: float
    size: float
    words: str


@dataclass(frozen=True)
class Similarity:
    """How similar a movie is to those of a model.

    Parameters
    ----------
    distance
        0 where they are alike, infinite where they cannot be compared.
    level
        The same as words.
    differences
        What differs, the largest difference first.
    """

    distance: float
    level: Level
    differences: tuple[Difference, ...]

    @property
    def words(self) -> str:
        """As a sentence without its end, for lists."""
        if self.level == "unknown":
            return "not known how similar: too few events of the same kind to compare"
        if not self.differences or self.level == "very similar":
            return f"{self.level} to your movie"
        return f"{self.level}: {self.differences[0].words}"


UNKNOWN = Similarity(float("inf"), "unknown", ())
"""Where there is nothing to compare."""


def compare(yours: FeatureStatistics, theirs: FeatureStatistics) -> Similarity:
    """Compare a movie with the movie or movies of a model.

    Parameters
    ----------
    yours, theirs
        Statistics; the distance is the same when they change places.
    """
    mine = {key: k for k, key in enumerate(yours.keys)}
    pairs = [(mine[key], k) for k, key in enumerate(theirs.keys) if key in mine]
    a, b = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    keys = [yours.keys[k] for k in a]
    enough = (yours.count[a] >= _ENOUGH) & (theirs.count[b] >= _ENOUGH)
    enough &= np.asarray([not key.endswith(".bias") for key in keys], dtype=bool)
    sizes = _sizes(yours, theirs, a, b)
    total, weight = 0.0, 0.0
    for event, importance in _IMPORTANCE.items():
        of = enough & np.asarray([key.startswith(f"{event.key}.") for key in keys], dtype=bool)
        if of.any():
            total += importance * float(sizes[of].mean())
            weight += importance
    if not weight:
        return UNKNOWN
    rates = [_rate(yours, theirs, event) for event in Event]
    total += _RATES * float(np.mean([rate.size for rate in rates]))
    weight += _RATES
    found = [
        _difference(keys[k], yours, theirs, int(a[k]), int(b[k]), float(sizes[k]))
        for k in np.flatnonzero(enough)
    ]
    found += [rate for rate in rates if rate.words]
    found.sort(key=lambda d: (not d.words, -d.size, d.key))
    distance = total / weight
    return Similarity(distance, _level(distance), tuple(found))


def _sizes(yours: FeatureStatistics, theirs: FeatureStatistics, a: Index, b: Index) -> Array:
    """Difference of every shared feature, at most `_MOST`, shape (shared,)."""
    one, two = yours.deviation[a] + _FLOOR, theirs.deviation[b] + _FLOOR
    common = np.sqrt((one**2 + two**2) / 2)
    apart = np.abs(yours.mean[a] - theirs.mean[b]) / common
    return np.asarray(np.minimum(apart + _SPREADS * np.abs(np.log(one / two)), _MOST))


def _level(distance: float) -> Level:
    if distance <= VERY_SIMILAR:
        return "very similar"
    return "similar" if distance <= SIMILAR else "different"


def _difference(
    key: str, yours: FeatureStatistics, theirs: FeatureStatistics, a: int, b: int, size: float
) -> Difference:
    one, two = float(yours.mean[a]), float(theirs.mean[b])
    return Difference(key, one, two, size, words_of(key, one, two))


def _rate(yours: FeatureStatistics, theirs: FeatureStatistics, event: Event) -> Difference:
    """The difference in how often an event happens; without words where both hardly have it."""
    one, two = yours.rate(event), theirs.rate(event)
    ratio = (one + _RARE) / (two + _RARE)
    size = min(abs(float(np.log(ratio))), _MOST)
    counts = [s.events.get(event.key, 0) for s in (yours, theirs)]
    told = max(counts) >= _ENOUGH and size > 0
    return Difference(event.key, one, two, size, rate_words(event, ratio) if told else "")
