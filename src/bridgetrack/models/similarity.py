"""How similar two movies are, in numbers and in words, and which kept model suits a movie.

For every feature that is known in both movies the means are compared in units of the common
spread, and the spreads by their ratio; both are symmetric. A kind of event counts by
`_IMPORTANCE`, where both movies have enough of it. How often each kind happens per cell is
compared by the ratio: many splits, merges and false cells tell a segmentation with errors from
a clean one, which asks for other weights though the cells behave alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.entry import ModelEntry
from bridgetrack.models.statistics import FeatureStatistics

Array = NDArray[np.float64]
Index = NDArray[np.int64]


_TIMES = {
    "move.raw_distance": "your cells move {times} as far per frame, in cell diameters",
    "move.distance": "your cells are {times} as far from where their motion lets expect them",
    "move.size_change": "your cells change their size {times} as much from frame to frame",
    "move.shape_change": "your cells change their shape {times} as much from frame to frame",
    "move.rotation": "your cells turn {times} as much from frame to frame",
    "move.level_change": "your cells change their brightness {times} as much from frame to frame",
    "divide.separation": "your daughter cells lie {times} as far apart, in cell diameters",
    "divide.middle": "your daughter cells lie {times} as far off their mother's place",
    "divide.size_asymmetry": "your daughter cells differ {times} as much in size",
    "divide.mother_elongation": "your dividing cells are {times} as elongated",
    "divide.brightness_asymmetry": "your daughter cells differ {times} as much in brightness",
}
_SIDES = {
    "move.overlap": "your cells overlap {more} with themselves from frame to frame",
    "move.covered": "your cells overlap {more} with themselves from frame to frame",
    "move.growth": "your cells grow {more} from frame to frame",
    "move.rank_forward": "your cells have {many} neighbours to be mistaken for",
    "move.rank_backward": "your cells have {many} neighbours to be mistaken for",
    "move.mutual": "your cells are {more} often each other's nearest from frame to frame",
    "divide.angle": "your daughter cells lie {less} on opposite sides of their mother",
    "divide.growth": "your cells gain {more} area when they divide",
    "divide.daughter_size": "your daughter cells are {larger} for your cells",
    "divide.mother_size": "your dividing cells are {larger} for your cells",
    "divide.mother_roundness": "your dividing cells are {more} round",
    "divide.mother_brightness": "your dividing cells are {brighter} than the others",
    "divide.daughter_brightness": "your daughter cells are {brighter} than the others",
    "divide.brightness_gain": "your cells gain {more} brightness when they divide",
    "divide.orphans": "your daughter cells are {more} often without a cell before them",
    "appear.border": "your cells appear {nearer} the edge",
    "disappear.border": "your cells disappear {nearer} the edge",
    "appear.size": "cells that appear in your movie are {larger}",
    "disappear.size": "cells that disappear in your movie are {larger}",
    "appear.brightness": "cells that appear in your movie are {brighter}",
    "disappear.brightness": "cells that disappear in your movie are {brighter}",
}
_WORDS = (
    ("more", "more", "less"),
    ("less", "less", "more"),
    ("many", "more", "fewer"),
    ("larger", "larger", "smaller"),
    ("brighter", "brighter", "dimmer"),
    ("nearer", "nearer to", "farther from"),
)
"""Place in a sentence, word where the user's movie has more, word where it has less."""
_RATE_WORDS = {
    Event.MOVE: "your cells go on without an event {times} as often",
    Event.DIVIDE: "your cells divide {times} as often",
    Event.SPLIT: "your segmentation splits cells {times} as often",
    Event.MERGE: "your segmentation merges cells {times} as often",
    Event.APPEAR: "your cells appear {times} as often",
    Event.DISAPPEAR: "your cells disappear {times} as often",
    Event.SKIP: "your segmentation misses cells for some frames {times} as often",
    Event.FALSE: "your segmentation has {times} as many false cells",
}
_NAMED = ((0.5, "half"), (1 / 3, "a third"), (0.25, "a quarter"), (2.0, "twice"))


def words_of(key: str, yours: float, theirs: float) -> str:
    """A difference of a feature's mean as a sentence without its end; empty where none is known."""
    if key in _TIMES and min(yours, theirs) > 1e-6:
        return _TIMES[key].format(times=times(yours / theirs))
    if key in _SIDES:
        more = yours > theirs
        return _SIDES[key].format(**{place: a if more else b for place, a, b in _WORDS})
    return ""


def rate_words(event: Event, ratio: float) -> str:
    """How much more often an event happens, as a sentence without its end."""
    return _RATE_WORDS[event].format(times=times(ratio))


def times(ratio: float) -> str:
    """A ratio for ``... as far``."""
    for value, name in _NAMED:
        if abs(ratio / value - 1) < 0.1:
            return name
    if ratio >= 10:
        return "more than ten times"
    if ratio < 0.1:
        return "less than a tenth"
    return f"{ratio:.1f} times"


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
    """A property in which two movies differ."""

    key: str  # feature, or the event whose frequency differs
    # yours, theirs: its middle value (or frequency per cell) in the two movies
    yours: float
    theirs: float
    size: float  # how much it adds to the distance
    words: str  # as a sentence without its end


@dataclass(frozen=True)
class Similarity:
    """How similar a movie is to those of a model."""

    distance: float  # 0 where they are alike, infinite where they cannot be compared
    level: Level  # the same as words
    differences: tuple[Difference, ...]  # what differs, the largest difference first

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


SAME = 0.02
"""Distance up to which a model has learned from the very movie; of others it is far larger."""


@dataclass(frozen=True)
class Ranked:
    """A model of the library and how similar its movies are to the user's."""

    entry: ModelEntry
    similarity: Similarity

    @property
    def same_movie(self) -> bool:
        """Whether the model has learned from this very movie, as far as one can tell."""
        return self.similarity.level != "unknown" and self.similarity.distance <= SAME


def rank(entries: Iterable[ModelEntry], yours: FeatureStatistics | None) -> tuple[Ranked, ...]:
    """Models by how similar their movies are to the user's, the most similar first.

    Damaged ones come last, and those that nobody knows anything about before them.

    Parameters
    ----------
    entries
        Models of the library.
    yours
        Statistics of the user's movie; None where they are not known yet.
    """
    ranked = [Ranked(entry, _similarity(entry, yours)) for entry in entries]
    ranked.sort(key=_rank)
    return tuple(ranked)


def _rank(one: Ranked) -> tuple[bool, float, str]:
    """Sound ones first, then the nearest; of those as near but for rounding, by name."""
    return one.entry.damaged, round(one.similarity.distance, 5), one.entry.name.casefold()


def most_suitable(ranked: Iterable[Ranked]) -> Ranked | None:
    """The model to start from; None for the shipped one.

    On 41 movies the most similar model was as often worse than the shipped one as better, but a
    very similar one never much worse (``docs/model_library.md``): so only such a one is preferred.
    """
    for each in ranked:
        if not each.entry.damaged and each.similarity.level == "very similar":
            return each
    return None


def _similarity(entry: ModelEntry, yours: FeatureStatistics | None) -> Similarity:
    theirs = None if entry.card is None else entry.card.statistics
    return UNKNOWN if yours is None or theirs is None else compare(yours, theirs)
