"""Kinds of which several events are found and none is clear: noticed, and told with the cure."""

from __future__ import annotations

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.summary import unclear_kinds, unclear_remarks
from doubtful_kind import as_if


def test_several_of_which_none_is_clear_are_noticed(session):
    tracking = session.tracking
    assert unclear_kinds(tracking) == {}, "true masks of cells that are clear"
    doubtful = as_if(tracking, [0.0, 0.9, 0.2])
    assert unclear_kinds(doubtful) == {Event.MERGE: 3}
    (words,) = unclear_remarks(doubtful)
    assert words.startswith("3 merges were found, and none of them is clear")
    assert words.endswith("--without merges")


def test_one_that_is_clear_or_confirmed_vouches_for_the_kind(session):
    tracking = session.tracking
    assert unclear_kinds(as_if(tracking, [0.0, 1.0, 0.2])) == {}
    assert unclear_kinds(as_if(tracking, [0.0, np.inf, 0.2])) == {}, "nothing else is possible"
    assert unclear_kinds(as_if(tracking, [0.0, 0.2])) == {}, "one or two may be doubtful"
    assert unclear_kinds(as_if(tracking, [0.0] * 5, Event.APPEAR)) == {}, "happens in any movie"


def test_what_an_answer_confirms_is_clear(session):
    events = session.tracking.scene.hypotheses
    (merge,) = event_refs(session.scene.detections, events.take(events.of(Event.MERGE)[-1:]))
    session.note(Kind.CONFIRM, merge, "click")
    tracking = session.tracking
    assert (tracking.scene.hypotheses.event[tracking.solution.chosen] == Event.MERGE).sum() == 1
    assert unclear_kinds(as_if(tracking, [0.0, 0.9, 0.2])) == {}
