"""Kinds of events: what a movie does not have, and several of which none is clear."""

from __future__ import annotations

import numpy as np

from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import EventRef, Kind
from bridgetrack.hypotheses.events import Event, EventKinds
from bridgetrack.pipeline.inputs import RunInputs
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.report import unclear_kinds, unclear_remarks
from bridgetrack.progress import run
from bridgetrack.session.session import Session
from doubtful_kind import as_if


def test_what_can_happen_is_kept_in_the_project(session, said, tmp_path):
    before = session.tracking
    session.settings.set_kinds(EventKinds.without(["merges", "gaps"]))
    absent = {Event.MERGE, Event.SKIP}
    assert absent & set(before.scene.hypotheses.event.tolist())
    assert not absent & set(session.tracking.scene.hypotheses.event.tolist())
    rows = before.scene.hypotheses.of(Event.MERGE)[:1]
    (merge,) = event_refs(before.scene.detections, before.scene.hypotheses.take(rows))
    session.edits.note(Kind.CONFIRM, merge, "click")
    assert not len(session.annotations)
    assert said[-1][0] == "error"
    assert "excluded merges" in said[-1][1]
    path = session.save(tmp_path / "copy")
    assert load_project(path).settings.without == ["gaps", "merges"]
    again = run(RunInputs.of_project(path).open().tracked())
    assert not absent & set(again.scene.hypotheses.event.tolist())
    session.settings.set_kinds(EventKinds())
    session.edits.note(Kind.CONFIRM, merge, "click")
    assert len(session.annotations) == 1
    session.settings.set_kinds(EventKinds.without(["merges"]))
    assert session.kinds == EventKinds(), "an answer names a merge"
    told = said[-1][1]
    assert told.startswith(f"an answer says: {session.names(merge.sources[0])} in frame")
    assert told.endswith("in this movie; delete that answer, or do not exclude merges")


def test_several_of_which_none_is_clear_are_noticed(session):
    tracking = session.tracking
    assert unclear_kinds(tracking) == {}, "true masks of cells that are clear"
    doubtful = as_if(tracking, [0.0, 0.9, 0.2])
    assert unclear_kinds(doubtful) == {Event.MERGE: 3}
    (words,) = unclear_remarks(doubtful)
    assert words.startswith("3 merges were found, all of them uncertain")
    assert words.endswith("--without merges")
    assert unclear_kinds(as_if(tracking, [0.0, 1.0, 0.2])) == {}, "one is clear"
    assert unclear_kinds(as_if(tracking, [0.0, np.inf, 0.2])) == {}, "nothing else is possible"
    assert unclear_kinds(as_if(tracking, [0.0, 0.2])) == {}, "one or two may be doubtful"
    assert unclear_kinds(as_if(tracking, [0.0] * 5, Event.APPEAR)) == {}, "happens in any movie"
    # What an answer confirms is clear.
    events = tracking.scene.hypotheses
    (merge,) = event_refs(session.scene.detections, events.take(events.of(Event.MERGE)[-1:]))
    session.edits.note(Kind.CONFIRM, merge, "click")
    tracking = session.tracking
    assert (tracking.scene.hypotheses.event[tracking.solution.chosen] == Event.MERGE).sum() == 1
    assert unclear_kinds(as_if(tracking, [0.0, 0.9, 0.2])) == {}


def test_answers_that_cannot_all_hold_are_named_as_the_window_names_cells():
    labels = np.zeros((2, 40, 40), dtype=np.uint16)
    labels[0, 10:18, 16:24] = 7
    labels[1, 10:18, 10:18], labels[1, 10:18, 22:30] = 8, 9
    session, heard = Session(labels), []
    session.message.connect(lambda *said: heard.append(said))
    session.settings.set_kinds(EventKinds.without(["divisions", "splits"]))
    refs = cell_refs(session.scene.detections, np.array([1, 2]))
    names = [session.names(ref) for ref in refs]
    for ref in refs:  # both come from the one cell before
        session.edits.note(Kind.REJECT, EventRef(Event.FALSE, (ref,)), "click")
        session.edits.note(Kind.REJECT, EventRef(Event.APPEAR, (), (ref,)), "click")
    [words] = [told for level, told in heard if level == "error"]
    assert "these cannot all be true" in words and "cell 8" not in words and "(a" not in words
    assert all(f"not: {name} in frame 1 appears" in words for name in names)
