"""Which events are listed to be looked at first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bridgetrack.session.results import doubtful_words, least_certain
from bridgetrack.tracks.tracks import margin_column


def test_events_of_one_margin_are_not_listed_by_frame(session) -> None:
    tracks = session.tracking.tracks
    margin = margin_column(tracks.events)
    tied = replace(tracks, events=tracks.events.assign(**{margin: 0.0}))
    found = least_certain(tied, 10)
    assert not found["frame"].is_monotonic_increasing
    assert (np.diff(found["score"]) >= 0).all() and found["score"].min() == tied.events[
        "score"
    ].min()
    words = doubtful_words(tied, len(found))
    assert words == f"{len(tied.events)} events less than 90 % certain, 10 of them here."
    assert doubtful_words(replace(tied, events=tied.events.assign(**{margin: 5.0})), 10) == (
        "0 events less than 90 % certain."
    )
