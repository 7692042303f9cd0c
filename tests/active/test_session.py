"""A session: questions, answers, undo, updates in the background, stop and resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from active.active_cases import annotator, session, true_rows
from bridgetrack.active.session import SOURCE, ActiveSession
from bridgetrack.active.session_file import (
    load_session,
    save_session,
    session_to_json,
)
from bridgetrack.active.simulated_annotator import answer_by, simulate_session, true_accuracy
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import RANDOM, EventRef, Kind
from bridgetrack.annotations.files import save_annotations
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import InputError, OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from training.training_cases import blind_prior, plain_scene


def following(one: ActiveSession) -> Suggestion:
    suggestion = one.next()
    assert suggestion is not None
    return suggestion


def test_there_is_no_question_before_the_first_update() -> None:
    fresh = ActiveSession(plain_scene())
    assert fresh.next() is None
    assert fresh.wants_update
    assert fresh.tracking_solution is None
    assert fresh.adopt(run(fresh.update()))
    assert fresh.next() is not None
    assert not fresh.wants_update
    assert fresh.tracking_solution is not None
    whole = run(track_scene(plain_scene()))
    assert (fresh.tracking_solution.chosen == whole.solution.chosen).all()


def test_answers_are_recorded_as_annotations() -> None:
    one = session(random_share=0.5)
    known = annotator()
    for k in range(6):
        suggestion = following(one)
        assert suggestion.random == (k % 2 == 1)
        noted = one.answer(suggestion, known.truth(suggestion.slot), seconds=2.0)
        assert noted.source == (RANDOM if suggestion.random else SOURCE)
        assert noted.id in one.annotations
        assert suggestion.slot not in {s.slot for s in one.queue}
    assert (one.effort.clicks, one.effort.seconds) == (6, 12.0)
    assert one.wants_update
    assert one.adopt(run(one.update()))
    assert not one.wants_update
    assert len(one.scene.constraints) == 6


def test_a_proposal_that_was_wrong_is_known_as_such() -> None:
    one = session()
    first = following(one)
    one.answer(first, first.alternatives[0])
    assert one.records[-1].right is False
    second = following(one)
    one.answer(second)
    assert one.records[-1].right is True
    third = following(one)
    noted = one.reject(third)
    assert noted.kind == Kind.REJECT
    assert one.records[-1].right is False
    fourth = following(one)
    assert one.cannot_tell(fourth).kind == Kind.CANNOT_TELL
    assert one.records[-1].right is None
    assert one.effort.clicks == 4


def test_an_event_of_other_cells_is_no_answer() -> None:
    one = session()
    first = following(one)
    other = next(s for s in one.queue if first.slot not in s.event.slots)
    with pytest.raises(InputError, match="says nothing of what"):
        one.answer(first, other.event)
    assert not one.records
    assert not len(one.annotations)
    assert following(one) == first


def test_answers_given_during_an_update_stay_answered() -> None:
    one = session()
    one.answer(following(one))
    steps = one.update()
    meanwhile = following(one)
    one.answer(meanwhile)
    assert one.adopt(run(steps))
    assert meanwhile.slot not in {s.slot for s in one.queue}
    assert len(one.scene.constraints) == 1
    assert len(one.annotations) == 2


def test_a_result_that_is_out_of_date_is_refused() -> None:
    one = session()
    old = run(one.update())
    one.answer(following(one))
    new = run(one.update())
    assert one.adopt(new)
    scene = one.scene
    assert not one.adopt(old)
    assert one.scene is scene


def test_the_model_learns() -> None:
    one = session(blind_prior())
    before = true_accuracy(one, true_rows())
    run(simulate_session(one, annotator(), 30))
    assert true_accuracy(one, true_rows()) > before


def test_progress_and_verdict() -> None:
    one = session(random_share=0.4)
    assert one.estimate() is None
    assert "too early" in one.verdict().words
    run(simulate_session(one, annotator(), 40))
    estimate = one.estimate()
    assert estimate is not None
    assert estimate.n_annotations >= 12
    assert estimate.low <= true_accuracy(one, true_rows()) <= estimate.high
    assert one.judged.unseen
    assert set(one.judged.seen) >= set(one.judged.unseen)
    assert one.points[-1].clicks == 40
    assert one.points[-1].accuracy == estimate.accuracy
    clicks = [p.clicks for p in one.points]
    assert clicks == sorted(clicks)
    assert one.verdict().words


def test_an_update_is_wanted_after_enough_answers_or_where_few_questions_are_left() -> None:
    one = session()
    wanted = []
    for _ in range(one.options.update_every):
        wanted.append(one.wants_update)
        one.answer(following(one))
    assert wanted == [False] * one.options.update_every
    assert one.wants_update
    few = session()
    few.queue = few.queue[:1]
    assert not few.wants_update
    few.answer(following(few))
    assert few.wants_update


def test_an_event_that_was_not_proposed_is_learned_from() -> None:
    one = session()
    h, detections = one.scene.hypotheses, one.scene.detections
    known = {e.key for e in event_refs(detections, h)}
    suggestion = next(s for s in one.queue if s.kind == Event.MOVE)
    (source,) = suggestion.event.sources
    later = detections.rows(source.frame + 1)
    targets = cell_refs(detections, np.arange(later.start, later.stop))
    moves = [EventRef(Event.MOVE, (source,), (target,)) for target in targets]
    unheard_of = next(m for m in moves if m.key not in known)
    one.answer(suggestion, unheard_of)
    assert one.adopt(run(one.update()))
    assert len(one.scene.hypotheses) > len(h)
    assert len(one.scene.constraints) == 1
    one.answer(following(one))
    assert one.adopt(run(one.update()))
    assert len(one.scene.constraints) == 2


def test_stop_and_resume(tmp_path: Path) -> None:
    one = session(random_share=0.4)
    run(simulate_session(one, annotator(), 12))
    path = save_session(one, tmp_path / "session.json")
    again = load_session(path, plain_scene(), one.answers)
    assert session_to_json(again) == session_to_json(one)
    assert again.effort == one.effort
    assert again.adopt(run(again.update()))
    mine, theirs = again.estimate(), one.estimate()
    assert mine is not None
    assert theirs is not None
    assert mine.n_annotations == theirs.n_annotations
    assert (mine.accuracy, mine.low) == pytest.approx((theirs.accuracy, theirs.low), abs=1e-3)
    answer_by(again, annotator(), following(again))
    assert again.effort.clicks == 13


def test_a_saved_record_never_speaks_of_a_later_answer(tmp_path: Path) -> None:
    one = session()
    asked = following(one)
    gone = one.answer(asked, seconds=5.0)
    one.answers.undo()
    later = one.answers.answer(Kind.CONFIRM, asked.alternatives[0], "click")[0]
    assert later.id != gone.id
    assert one.effort.clicks == 0
    save_session(one, tmp_path / "session.json")
    save_annotations(one.answers.history, tmp_path / "answers.json")
    kept = AutosavingStore(tmp_path / "answers.json", one.annotations.geometry)
    again = load_session(tmp_path / "session.json", plain_scene(), kept)
    assert again.effort.clicks == 0 and [r.id for r in again.records] == [gone.id]
    kept.undo()
    third, _ = kept.answer(Kind.CONFIRM, asked.event, "click")
    assert third.id not in (gone.id, later.id)
    assert again.effort.clicks == 0
    fresh = load_session(tmp_path / "session.json", plain_scene())
    fresh.forget_unknown()
    assert fresh.records == (), "other annotations know nothing of the record"


def damaged(content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(content)), **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something"},
        {"records": [{"id": "a"}]},
        {"seen": {"a": -1}},
    ],
)
def test_damaged_sessions_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    one = session()
    one.answer(following(one))
    content = damaged(session_to_json(one), **changes)
    path = tmp_path / "here.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"here\.json: .*{next(iter(changes))}"):
        load_session(path, plain_scene())


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.json"):
        load_session(tmp_path / "missing.json", plain_scene())
    (tmp_path / "bad.json").write_text('{"format": NaN}')
    with pytest.raises(InputError, match=r"bad\.json"):
        load_session(tmp_path / "bad.json", plain_scene())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").touch()
    with pytest.raises(OutputError):
        save_session(session(), tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_sessions_of_earlier_versions_go_on_opening(tmp_path: Path) -> None:
    one = session()
    noted = one.answer(following(one))
    earlier = {"suggest": {"measure": "margin", "rarity": 0.5}, "learn": {"hold_sure": True}}
    content = {**session_to_json(one), "options": earlier, "skipped": [["fate", 1, 2]]}
    (tmp_path / "session.json").write_text(json.dumps(content))
    again = load_session(tmp_path / "session.json", plain_scene(), one.answers)
    assert [record.id for record in again.counted] == [noted.id]


def test_a_question_passed_on_comes_last() -> None:
    one = session(random_share=0.0)
    first, second = one.queue[:2]
    one.queue = (first, second)
    assert one.postpone(first) and one.queue == (second, first)
    one.drop(second)
    assert not one.postpone(first), "there is no other"
    assert one.queue == (first,)


def test_a_question_asked_again_comes_first_and_loses_none() -> None:
    one = session(random_share=0.0)
    first, second, third = one.queue[:3]
    one.queue = (third, second)
    one.put_first(second, first)
    assert one.queue == (second, first, third)
    one.put_first(third, second)
    assert one.queue == (third, second, first), "none is there twice"
