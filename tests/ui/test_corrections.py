"""Links of the present tracks are corrected."""

from __future__ import annotations

from bridgetrack.hypotheses.events import Event
from bridgetrack.session.proposals import chosen_event
from bridgetrack.ui.picking import Mode


def test_swap_exchanges_successors(session, annotator, at, row):
    moving = [
        r
        for r in range(60)
        if chosen_event(session.tracking, r) is not None
        and chosen_event(session.tracking, r).event == Event.MOVE
        and session.scene.detections.frame[r] == 0
    ]
    one, two = moving[:2]
    goal = {r: chosen_event(session.tracking, r).targets[0].cell for r in (one, two)}
    annotator.set_mode(Mode.SWAP)
    annotator.click(*at(one))
    annotator.click(*at(two))
    assert chosen_event(session.tracking, one).targets[0].cell == goal[two]
    assert chosen_event(session.tracking, two).targets[0].cell == goal[one]
