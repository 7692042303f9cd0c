"""Which tracks people have verified: all that happens to them is confirmed by answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.hypotheses.events import Events
from bridgetrack.tracks.tracks import Tracks

Mask = NDArray[np.bool_]

VERIFIED = "verified"
"""Column of nodes and of the table of tracks; there only where some track is verified."""


def with_verified(tracks: Tracks, chosen: Events, confirmed: Mask) -> Tracks:
    """The tracks with the column ``verified`` in their nodes, where some are.

    Parameters
    ----------
    tracks
        The tracks that the events amount to.
    chosen
        The events that hold, E of them, with rows of detections.
    confirmed
        Which of them answers confirm, shape (E,).
    """
    nodes = tracks.nodes
    if not confirmed.any() or not len(nodes):
        return tracks
    n = int(nodes["id"].max()) + 1

    def named(events: Events) -> NDArray[np.int64]:
        cells = np.concatenate([events.sources, events.targets], axis=1).ravel()
        return np.bincount(cells[(cells >= 0) & (cells < n)], minlength=n)

    happened = named(chosen)
    sure = (named(chosen.take(confirmed)) == happened) & (happened > 0)
    mine = nodes.assign(sure=sure[nodes["id"].to_numpy(dtype=np.int64)])
    verified = mine.groupby("track_id")["sure"].transform("all").to_numpy(dtype=bool)
    if not verified.any():
        return tracks
    return replace(tracks, nodes=nodes.assign(**{VERIFIED: verified}))


def verified_tracks(tracks: Tracks) -> frozenset[int]:
    """Numbers of the verified tracks."""
    if VERIFIED not in tracks.nodes.columns:
        return frozenset()
    return frozenset(tracks.nodes.loc[tracks.nodes[VERIFIED], "track_id"].tolist())
