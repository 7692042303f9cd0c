"""What the model thinks happens to a cell."""

from __future__ import annotations

import numpy as np

from bridgetrack.session.proposals import proposals


def test_proposals_rank_the_chosen_event_first(session):
    tracking = session.tracking
    n = 0
    for row in range(len(session.scene.detections)):
        found = proposals(tracking, row)
        if not found:
            assert session.scene.detections.frame[row] == 7
            continue
        assert found[0].chosen
        assert not any(p.chosen for p in found[1:])
        assert [p.cost for p in found[1:]] == sorted(p.cost for p in found[1:])
        assert 0 < sum(p.confidence for p in found) <= 1 + 1e-9
        n += 1
    assert n > 100


def test_histories_are_proposed_too(session):
    row = int(np.flatnonzero(session.scene.detections.frame == 3)[0])
    found = proposals(session.tracking, row, history=True)
    assert found[0].chosen
    cell = session.scene.detections.frame[row], session.scene.detections.label[row]
    assert all(cell in [c.cell for c in p.event.targets] for p in found if p.event.targets)
    first = int(np.flatnonzero(session.scene.detections.frame == 0)[0])
    assert proposals(session.tracking, first, history=True) == []
