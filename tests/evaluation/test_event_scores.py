"""Events found, against the events that the truth settles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bridgetrack.evaluation.truth import share_found
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import Tracks


def found(*events: tuple[str, tuple[int, ...], tuple[int, ...]]) -> Tracks:
    """Tracks of which only the events matter."""
    table = pd.DataFrame(events, columns=["event", "sources", "targets"])
    none = pd.DataFrame()
    return Tracks(none, none, table, none, Geometry(3, None, (1.0, 1.0)))


TRUTH = Events(
    np.array([Event.MOVE, Event.MOVE, Event.DIVIDE, Event.FALSE], dtype=np.int8),
    np.array([[0, -1], [1, -1], [2, -1], [7, -1]]),
    np.array([[3, -1], [4, -1], [5, 6], [-1, -1]]),
)


def test_the_share_of_true_events_that_are_found() -> None:
    tracks = found(
        ("move", (0,), (3,)),
        ("move", (1,), (5,)),
        ("divide", (2,), (6, 5)),
        ("disappear", (7,), ()),
    )
    assert share_found(tracks, TRUTH) == pytest.approx(0.5)
    assert share_found(found(("split", (2,), (5, 6))), TRUTH) == 0, "a split is no division"
    nothing = np.zeros((0, 2), dtype=np.int64)
    empty = Events(np.zeros(0, dtype=np.int8), nothing, nothing)
    assert share_found(tracks, empty) is None
