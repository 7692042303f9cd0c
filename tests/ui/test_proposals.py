"""What the model thinks happens to a cell."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.session.cells import proposals
from bridgetrack.tracks.table import certainties
from session_fixtures import FRAMES


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
