"""Many movies tracked with one model: what came of each, and which of them to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

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
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def row_of(
    name: str,
    tracking: Tracking,
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
        seconds=seconds,
        warnings=warnings,
    )


def ordered(rows: Sequence[BatchRow]) -> tuple[BatchRow, ...]:
    """The rows, least certain first and failed ones last."""
    return tuple(sorted(rows, key=lambda r: (bool(r.problem), _first(r.certainty), r.name)))


def _first(certainty: float) -> float:
    return -1.0 if np.isnan(certainty) else certainty


def table_of(rows: Sequence[BatchRow]) -> pd.DataFrame:
    """The rows as a table; numbers of movies without a result are empty."""
    return pd.DataFrame([_cells(row) for row in rows])


def _cells(row: BatchRow) -> dict[str, Any]:
    counts = row.counts or {}
    named = ("frames", "cells", "tracks", "lineages", "divide")
    found = {("divisions" if k == "divide" else k): counts.get(k) for k in named}
    return {
        "movie": row.name,
        **{key: pd.NA if value is None else value for key, value in found.items()},
        "certainty": round(row.certainty, 4),
        "doubtful": round(row.doubtful, 4),
        "seconds": round(row.seconds, 1),
        "problem": row.problem,
        "warnings": "; ".join(row.warnings),
    }
