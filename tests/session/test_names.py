"""Cells are called by the numbers of their tracks."""

from __future__ import annotations

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef, by_label
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.cells import CellNames, choice_words
from bridgetrack.session.session import Session


def test_cells_are_named_by_track_and_by_label_where_they_have_none():
    labels = np.zeros((3, 40, 40), dtype=np.uint16)
    for t in range(3):
        labels[t, 5:13, 5 + t : 13 + t], labels[t, 25:33, 20:28] = 9 - t, 2 + t
    session = Session(labels)
    nodes = session.tracking.tracks.nodes
    assert len(nodes) == 6
    for frame, label, track in nodes[["frame", "label", "track_id"]].to_numpy():
        assert session.names(CellRef(frame, label, (0.0, 0.0))) == f"#{track}"
    assert {session.names.track(CellRef(t, 9 - t, (0.0, 0.0))) for t in range(3)} == {2}
    assert session.names(CellRef(0, 99, (0.0, 0.0))) == "untracked 99", "not as if it were track 99"
    assert CellNames(None)(CellRef(0, 9, (0.0, 0.0))) == by_label(CellRef(0, 9, (0.0, 0.0)))
    before = session.names
    assert session.names is before
    session.tracker.track()
    assert session.names is not before, "tracks may have other numbers now"


def test_a_division_in_which_the_mothers_track_goes_on_names_the_frames():
    mother, daughter, asked = (CellRef(t, k, (0.0, 0.0)) for t, k in ((7, 1), (8, 2), (8, 3)))
    event = EventRef(Event.DIVIDE, (mother,), (daughter, asked))
    move = EventRef(Event.APPEAR, (), (asked,))
    question = Suggestion(move, (event,), (0.6, 0.2), ("history", (8, 3)), 0, 0.1, 0.9, "", False)
    words = choice_words(event, question, lambda cell: "#5" if cell is asked else "#54")
    assert words == "is a sister of #54 in frame 8"
