"""Looking at the kept models, and comparing their movies with the one that is open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.models.library import Entry, Library
from bridgetrack.models.statistics import FeatureStatistics
from bridgetrack.models.untrained import untrained_model
from bridgetrack.pipeline.movie_statistics import statistics_of, statistics_steps
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.tracking import Tracking


@dataclass(frozen=True)
class Survey:
    """What was found.

    Parameters
    ----------
    entries
        The models of the library.
    statistics
        Of the open movie; None where they are not known.
    """

    entries: tuple[Entry, ...]
    statistics: FeatureStatistics | None


def survey_steps(
    library: Library, tracking: Tracking | None, known: FeatureStatistics | None
) -> Steps[Survey]:
    """Look at the models and, where there is something to compare with, at the movie.

    Parameters
    ----------
    library
        The models.
    tracking
        The movie; None where its cells are not known.
    known
        Its statistics, where they were computed before.
    """
    yield Progress("Looking at the kept models", 0.0)
    entries = library.entries()
    comparable = any(e.record is not None and e.record.statistics for e in entries)
    if known is None and tracking is not None and comparable:
        known = yield from look_at(tracking)
    return Survey(entries, known)


def look_at(tracking: Tracking) -> Steps[FeatureStatistics]:
    """Statistics of a movie, from its tracking where that is with the hand-set weights."""
    features = tracking.scene.matrix.features
    same = np.array_equal(tracking.model.aligned(features), untrained_model(features).weights)
    if same:
        return statistics_of(tracking.scene, tracking.solution.chosen)
    return (yield from statistics_steps(tracking.scene))
