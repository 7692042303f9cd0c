"""What cells are called, by the numbers of their tracks, and what may happen to them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef, by_label, short_words
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Geometry
from bridgetrack.session.cells import CellFinder, CellNames, choice_words, proposals
from bridgetrack.session.session import Session
from bridgetrack.tracks.table import certainties
from session_fixtures import FRAMES


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
    assert session.names(CellRef(0, 99, (0.0, 0.0))) == "cell 99 (no track)", (
        "not as if it were track 99"
    )
    assert CellNames(None)(CellRef(0, 9, (0.0, 0.0))) == by_label(CellRef(0, 9, (0.0, 0.0)))
    before = session.names
    assert session.names is before
    session.tracker.track()
    assert session.names is not before, "tracks may have other numbers now"


def test_a_division_in_which_the_mothers_track_goes_on_names_the_frames():
    mother, daughter, asked = (CellRef(t, k, (0.0, 0.0)) for t, k in ((7, 1), (8, 2), (8, 3)))
    event = EventRef(Event.DIVIDE, (mother,), (daughter, asked))
    move = EventRef(Event.APPEAR, (), (asked,))
    question = Suggestion(move, ("history", (8, 3)), "", False, (event,), (0.6, 0.2))
    words = choice_words(event, question, lambda cell: "#5" if cell is asked else "#54")
    assert words == "is a sister of #54 in frame 8"


def test_a_gap_is_told_by_what_follows_it():
    gap = EventRef(Event.SKIP, (CellRef(7, 1, (0.0, 0.0)),), (CellRef(9, 46, (0.0, 0.0)),))
    assert short_words(gap, False) == "reappears as cell 46 after some frames"
    assert short_words(gap, True) == "was cell 1 some frames before"
    assert short_words(gap, False, lambda _: "#1") == "reappears after some frames"


def test_proposals_rank_the_chosen_event_first(session):
    tracking = session.tracking
    n = 0
    for row in range(len(session.scene.detections)):
        found = proposals(tracking, row)
        if not found:
            assert session.scene.detections.frame[row] == FRAMES - 1
            continue
        assert found[0].chosen
        assert not any(p.chosen for p in found[1:])
        assert [p.cost for p in found[1:]] == sorted(p.cost for p in found[1:])
        assert 0 < sum(p.confidence for p in found) <= 1 + 1e-9
        n += 1
    assert n > 100


def test_certainty_is_the_same_number_everywhere(session):
    tracking = session.tracking
    events = tracking.tracks.events
    known = certainties(tracking.tracks).to_numpy()
    doubtful = events[np.isfinite(events["margin_at_least"])].nsmallest(5, "margin_at_least")
    for event in doubtful[doubtful["sources"].map(len) > 0].itertuples():
        row = event.sources[0]
        best = proposals(tracking, row)[0]
        assert best.confidence == pytest.approx(1 / (1 + np.exp(-event.margin_at_least)))
        node = tracking.tracks.nodes.index[tracking.tracks.nodes["id"] == row]
        assert len(node) == 0 or known[node[0]] <= best.confidence + 1e-9
    session.questions.prepare()
    asked = next(s for s in session.questions.active.queue if s.slot[0] == "fate")
    row = tracking.scene.detections.row_of(*asked.slot[1])
    best = proposals(session.tracking, row)[0]
    assert best.event.key == asked.event.key
    assert asked.beliefs[0] == pytest.approx(best.confidence) and sum(asked.beliefs) <= 1 + 1e-9


def test_points_are_found_within_their_discs_however_large_a_pixel_is():
    table = pd.DataFrame(
        [(0, 1, 10.0, 10.0, 78.5), (0, 2, 30.0, 30.0, 78.5)],
        columns=["frame", "label", "y", "x", "area"],
    )
    for side in (1.0, 0.25, 4.0):
        cells = Detections(table, Geometry(1, (50, 50), (side, side), "micrometer"))
        finder = CellFinder(None, cells)
        assert [finder.row_at(0, (y, 30.0)) for y in (26.0, 34.0, 24.0, 10.0)] == [1, 1, -1, -1]
