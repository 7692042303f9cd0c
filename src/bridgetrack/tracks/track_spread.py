"""How far each track hangs on doubtful events: the same track in solutions around the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bridgetrack.tracks.table import track_titles
from bridgetrack.tracks.tracks import Tracks

_REACH = (0.025, 0.975)
"""Quantiles between which 95 % of the samples lie."""


def track_spread(tracks: Tracks, samples: Sequence[Tracks]) -> pd.DataFrame:
    """How often every track comes out the same, and how long it lasts otherwise.

    Parameters
    ----------
    tracks
        The best solution.
    samples
        Others of the same cells, see `pipeline.samples.sampled_tracks`.

    Returns
    -------
    pandas.DataFrame
        One row per track, by ``track_id``: ``same_in_samples`` (share of the samples that have a
        track of exactly the same cells); ``shortest`` and ``longest`` with the unit of durations
        in brackets (between them lie 95 % of the durations of the track that has most of its
        cells in a sample). Empty without samples.
    """
    own = tracks.nodes.set_index("id")["track_id"]
    ids, size = np.unique(own.to_numpy(), return_counts=True)
    unit = track_titles(tracks.geometry)["duration"].removeprefix("duration")
    same = np.zeros(len(ids))
    lasts = np.full((len(samples), len(ids)), np.nan)
    for k, sample in enumerate(samples):
        there = sample.nodes.groupby("track_id")["frame"].agg(["size", np.ptp])
        both = pd.DataFrame({"own": own, "there": sample.nodes.set_index("id")["track_id"]})
        shared = both.dropna().value_counts().reset_index(name="shared")
        most = shared.drop_duplicates("own").set_index("own")
        at = np.searchsorted(ids, most.index.to_numpy())
        other = there.loc[most["there"]]
        whole = (most["shared"].to_numpy() == size[at]) & (other["size"].to_numpy() == size[at])
        same[at] += whole
        lasts[k, at] = other["ptp"].to_numpy() * (tracks.geometry.frame_interval or 1.0)
    low, high = np.full((2, len(ids)), np.nan)
    known = ~np.isnan(lasts).all(axis=0)
    if known.any():
        low[known], high[known] = np.nanquantile(lasts[:, known], _REACH, axis=0)
    columns = {
        "same_in_samples": same / max(len(samples), 1),
        f"shortest{unit}": low,
        f"longest{unit}": high,
    }
    table = pd.DataFrame(columns, index=pd.Index(ids, name="track_id")).reset_index()
    return table if len(samples) else table.head(0)
