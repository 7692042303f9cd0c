"""The controllers without Qt: proposals, answers, corrections."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.store import load_annotations
from bridgetrack.errors import OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.progress import run
from bridgetrack.pipeline.scene import annotate
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.jobs import InlineRunner
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.proposals import chosen_event, proposals
from bridgetrack.ui.session import Session


@pytest.fixture
def annotator(session):
    return Annotator(session)


@pytest.fixture
def at(session):
    """Frame and position in pixels of a row."""

    def place(row):
        table = session.scene.detections.table
        return int(table["frame"][row]), (float(table["y"][row]), float(table["x"][row]))

    return place


def ready(session, annotator):
    """The annotator was made after the movie was opened; tell it."""
    session.scene_changed.emit()
    return next(
        r
        for r in range(len(session.scene.detections))
        if len(proposals(session.tracking, r)) > 2
        and proposals(session.tracking, r)[0].event.event == Event.MOVE
    )


def test_opening_measures_and_tracks(session):
    assert session.tracking is not None
    assert session.tracking.solution.gap == pytest.approx(0, abs=1e-6)


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
    assert all(row in _rows(session, p.event.targets) for p in found if p.event.targets)
    first = int(np.flatnonzero(session.scene.detections.frame == 0)[0])
    assert proposals(session.tracking, first, history=True) == []


def _rows(session, cells):
    return [session.scene.detections.row_of(*c.cell) for c in cells]


def test_a_click_in_review_accepts_the_proposal(session, annotator, at):
    row = ready(session, annotator)
    expected = chosen_event(session.tracking, row)
    assert len(session.annotations) == 0
    annotator.click(*at(row))
    (answer,) = session.annotations
    assert answer.kind == Kind.CONFIRM
    assert answer.events[0].key == expected.key
    assert load_annotations(session.answers.path) == session.annotations


def test_accepting_twice_is_one_answer(session, annotator, at):
    row = ready(session, annotator)
    annotator.click(*at(row))
    annotator.accept()
    assert len(session.annotations) == 1


def test_rejecting_changes_the_proposal_and_undo_brings_it_back(session, annotator, at):
    row = ready(session, annotator)
    before = chosen_event(session.tracking, row)
    annotator.hover(*at(row))
    annotator.reject()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    after = chosen_event(session.tracking, row)
    assert after.key != before.key
    assert annotator.proposals[0].event.key == after.key
    annotator.undo()
    assert chosen_event(session.tracking, row).key == before.key
    annotator.redo()
    assert chosen_event(session.tracking, row).key == after.key


def test_an_alternative_by_number_holds_at_once(session, annotator, at):
    row = ready(session, annotator)
    annotator.hover(*at(row))
    wanted = annotator.proposals[1].event
    annotator.choose(2)
    assert chosen_event(session.tracking, row).key == wanted.key


def test_a_contradicting_answer_replaces_the_earlier_in_one_step(session, annotator, at, said):
    row = ready(session, annotator)
    annotator.click(*at(row))
    other = annotator.proposals[1].event
    annotator.choose(2)
    assert [a.events[0].key for a in session.annotations] == [other.key]
    assert any("replaces" in words for _, words in said)
    annotator.undo()
    assert len(session.annotations) == 1
    assert [a.events[0].key for a in session.annotations] != [other.key]


def test_correcting_equals_a_full_solve(session, annotator, at):
    ready(session, annotator)
    for row in range(5, 60, 6):
        annotator.hover(*at(row))
        annotator.choose(2)
    full = run(track_scene(annotate(session.scene, session.annotations), session.model))
    assert session.tracking.solution.value == pytest.approx(full.solution.value, abs=1e-6)


def test_connecting_by_two_clicks(session, annotator, at):
    row = ready(session, annotator)
    target = _rows(session, chosen_event(session.tracking, row).targets)[0]
    shown = []
    annotator.show.connect(lambda frame, _: shown.append(frame))
    annotator.set_mode(Mode.MOVE)
    annotator.click(*at(row))
    assert shown == [at(row)[0] + 1]
    assert len(session.annotations) == 0
    annotator.click(*at(target))
    (answer,) = session.annotations
    assert answer.events[0].event == Event.MOVE
    assert answer.source == "click"
    assert shown[-1] == at(row)[0]


def test_a_click_on_nothing_says_so(session, annotator, at, said):
    row = ready(session, annotator)
    annotator.set_mode(Mode.MOVE)
    annotator.click(*at(row))
    annotator.click(1, (-5.0, -5.0))
    assert "no cell here" in said[-1][1]
    assert len(session.annotations) == 0


def test_break_rejects_the_link(session, annotator, at):
    row = ready(session, annotator)
    before = chosen_event(session.tracking, row)
    annotator.hover(*at(row))
    annotator.break_link()
    assert chosen_event(session.tracking, row).key != before.key
    assert [a.source for a in session.annotations] == ["correction"]


def test_swap_exchanges_successors(session, annotator, at):
    ready(session, annotator)
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


def test_delete_removes_the_answers_about_a_cell(session, annotator, at):
    row = ready(session, annotator)
    annotator.click(*at(row))
    assert len(session.annotations) == 1
    annotator.delete_here()
    assert len(session.annotations) == 0


def test_answers_are_resumed(session, annotator, at, source):
    row = ready(session, annotator)
    annotator.click(*at(row))
    again = Session(InlineRunner())
    again.open(source, session.answers.path)
    assert again.answers.resumed == 1
    assert again.annotations == session.annotations
    kept = again.answers.start_afresh()
    assert len(again.annotations) == 0
    assert len(load_annotations(kept)) == 1
    assert again.answers.undo()
    assert again.annotations == session.annotations


def test_a_failing_disk_is_told_and_loses_nothing(session, annotator, at, said, monkeypatch):
    row = ready(session, annotator)

    def fail(*_):
        raise OutputError("the disk is full")

    monkeypatch.setattr("bridgetrack.annotations.store.AutosavingStore.edit", fail)
    annotator.click(*at(row))
    assert ("error", "the disk is full") in said
    assert len(session.annotations) == 0


def test_layers_that_do_not_fit_are_explained(source, tmp_path):
    from dataclasses import replace

    from bridgetrack.movie import open_movie

    heard = []
    session = Session(InlineRunner())
    session.message.connect(lambda level, words: heard.append((level, words)))
    wrong = open_movie(np.zeros((3, 10, 10)), axes="TYX")
    assert not session.open(replace(source, image=wrong), tmp_path / "a.json")
    assert heard[-1][0] == "error"
    assert "must be the same" in heard[-1][1]
    assert session.source is None


def test_a_change_of_the_model_can_be_taken_back(session):
    from dataclasses import replace

    first = session.model
    assert not session.has_earlier_model
    other = replace(first, weights=first.weights * 2.0)
    session.set_model(other)
    assert session.tracking.model is other
    assert session.has_earlier_model
    session.earlier_model()
    assert session.model is first
    assert session.tracking.model is first
    assert not session.has_earlier_model
