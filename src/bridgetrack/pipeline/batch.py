"""Many movies tracked with one model: what came of each, and which of them to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bridgetrack.models.similarity import UNKNOWN, Similarity, compare
from bridgetrack.models.statistics import FeatureStatistics
from bridgetrack.pipeline.summary import count_events
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.tracks import EDGE_EVENTS, margin_column

DOUBTFUL = 0.9
"""Events that are less probable than this, against their best alternative, are doubtful."""


@dataclass(frozen=True)
class BatchRow:
    """What came of one movie.

    Parameters
    ----------
    name
        Of the movie, and of its folder among the results.
    problem
        Why there is no result; empty where there is one.
    counts
        What was found, see `count_events`.
    certainty
        Mean probability of the events that join cells, each against its best alternative; at least
        that, where margins are lower bounds.
    doubtful
        Share of them that are less probable than `DOUBTFUL`; at most that, where margins are lower
        bounds.
    statistics
        What its likely events look like.
    apart
        How much that differs from what it is compared with, see `compared`.
    seconds
        Time that it took.
    warnings
        What is probably wrong, as sentences without a full stop.
    """

    name: str
    problem: str = ""
    counts: dict[str, int] | None = None
    certainty: float = float("nan")
    doubtful: float = float("nan")
    statistics: FeatureStatistics | None = None
    apart: Similarity = UNKNOWN
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def row_of(
    name: str,
    tracking: Tracking,
    statistics: FeatureStatistics | None,
    seconds: float,
    warnings: tuple[str, ...] = (),
) -> BatchRow:
    """The row of a tracked movie."""
    events = tracking.tracks.events
    joining = events.loc[events["event"].isin(EDGE_EVENTS), margin_column(events)]
    margin = joining.to_numpy(dtype=np.float64)
    sure = expit(margin[~np.isnan(margin)])
    known = len(sure) > 0
    return BatchRow(
        name,
        counts=count_events(tracking.tracks),
        certainty=float(sure.mean()) if known else float("nan"),
        doubtful=float((sure < DOUBTFUL).mean()) if known else float("nan"),
        statistics=statistics,
        seconds=seconds,
        warnings=warnings,
    )


def compared(rows: Sequence[BatchRow], known: FeatureStatistics | None) -> tuple[BatchRow, ...]:
    """The rows, least certain first and failed ones last, with how much each movie differs.

    A movie is compared with what the model learned from where that is `known`. Else with the other
    movies: it differs as much as from the middle one of these, in order of distance.
    """
    made = [r if known is None or r.statistics is None else _beside(r, [known]) for r in rows]
    if known is None:
        them = [r for r in made if r.statistics is not None]
        others = {r.name: [o.statistics for o in them if o is not r] for r in them}
        made = [_beside(r, others.get(r.name, [])) for r in made]
    return tuple(sorted(made, key=lambda r: (bool(r.problem), _first(r.certainty), r.name)))


def _first(certainty: float) -> float:
    return -1.0 if np.isnan(certainty) else certainty


def _beside(row: BatchRow, others: Sequence[FeatureStatistics | None]) -> BatchRow:
    own = row.statistics
    found = [compare(own, o) for o in others if own is not None and o is not None]
    found = sorted((f for f in found if np.isfinite(f.distance)), key=lambda f: f.distance)
    return replace(row, apart=found[len(found) // 2]) if found else row


def most_different(rows: Sequence[BatchRow]) -> BatchRow | None:
    """The movie that differs most; None where fewer than two can be compared."""
    known = [r for r in rows if np.isfinite(r.apart.distance)]
    return max(known, key=lambda r: r.apart.distance) if len(known) > 1 else None


def table_of(rows: Sequence[BatchRow]) -> pd.DataFrame:
    """The rows as a table; numbers of movies without a result are empty."""
    return pd.DataFrame([_cells(row) for row in rows])


def _cells(row: BatchRow) -> dict[str, Any]:
    counts = row.counts or {}
    named = ("frames", "cells", "tracks", "lineages", "divide")
    found = {("divisions" if k == "divide" else k): counts.get(k) for k in named}
    apart = row.apart
    finite = bool(np.isfinite(apart.distance))
    return {
        "movie": row.name,
        **{key: pd.NA if value is None else value for key, value in found.items()},
        "certainty": round(row.certainty, 4),
        "doubtful": round(row.doubtful, 4),
        "distance": round(apart.distance, 3) if finite else float("nan"),
        "differs": apart.differences[0].words if finite and apart.differences else "",
        "seconds": round(row.seconds, 1),
        "problem": row.problem,
        "warnings": "; ".join(row.warnings),
    }
