"""Kinds of events that a movie does not have: said, kept, refused where answers name them."""

from __future__ import annotations

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import Event, EventKinds
from bridgetrack.pipeline.project import load_project, run_project
from bridgetrack.progress import run
from bridgetrack.session.project import saving


def test_what_can_happen_is_kept_in_the_project(session, said, tmp_path):
    before = session.tracking
    session.set_kinds(EventKinds.without(["merges", "gaps"]))
    absent = {Event.MERGE, Event.SKIP}
    assert absent & set(before.scene.hypotheses.event.tolist())
    assert not absent & set(session.tracking.scene.hypotheses.event.tolist())
    rows = before.scene.hypotheses.of(Event.MERGE)[:1]
    (merge,) = event_refs(before.scene.detections, before.scene.hypotheses.take(rows))
    session.note(Kind.CONFIRM, merge, "click")
    assert not len(session.annotations)
    assert said[-1][0] == "error"
    assert "without merges" in said[-1][1]
    file = tmp_path / "kept.json"
    run(saving(session, file))
    project = load_project(file)
    assert project.without == ("gaps", "merges")
    again = run(run_project(project))
    assert not absent & set(again.scene.hypotheses.event.tolist())
    session.set_kinds(EventKinds())
    session.note(Kind.CONFIRM, merge, "click")
    assert len(session.annotations) == 1
    session.set_kinds(EventKinds.without(["merges"]))
    assert session.kinds == EventKinds(), "an answer names a merge"
    assert "said to be without merges" in said[-1][1]
