"""Which model of the library suits a movie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bridgetrack.models.library import Entry
from bridgetrack.models.similarity import UNKNOWN, Similarity, compare
from bridgetrack.models.statistics import FeatureStatistics

SAME = 0.02
"""Distance up to which a model has learned from the very movie; of others it is far larger."""


@dataclass(frozen=True)
class Ranked:
    """A model of the library and how similar its movies are to the user's."""

    entry: Entry
    similarity: Similarity

    @property
    def same_movie(self) -> bool:
        """Whether the model has learned from this very movie, as far as one can tell."""
        return self.similarity.level != "unknown" and self.similarity.distance <= SAME


def rank(entries: Iterable[Entry], yours: FeatureStatistics | None) -> tuple[Ranked, ...]:
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
    ranked.sort(key=lambda r: (r.entry.damaged, r.similarity.distance, r.entry.name.casefold()))
    return tuple(ranked)


def most_suitable(ranked: Iterable[Ranked]) -> Ranked | None:
    """The model to start from; None for the shipped one.

    On 41 movies the most similar model was as often worse than the shipped one as better, but a
    very similar one never much worse (``docs/model_library.md``): so only such a one is preferred.
    """
    for each in ranked:
        if not each.entry.damaged and each.similarity.level == "very similar":
            return each
    return None


def _similarity(entry: Entry, yours: FeatureStatistics | None) -> Similarity:
    theirs = None if entry.record is None else entry.record.statistics
    return UNKNOWN if yours is None or theirs is None else compare(yours, theirs)
