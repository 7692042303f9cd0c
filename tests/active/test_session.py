"""A session: questions, answers, undo, updates in the background, stop and resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from active.active_cases import annotator, session, true_rows
from bridgetrack.active.session import UPDATE_EVERY, ActiveSession, learn_answers
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import cell_refs, event_refs
from bridgetrack.annotations.annotation import RANDOM, SUGGESTED, EventRef, Kind
from bridgetrack.annotations.files import save_annotations
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import untrained_model
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.training.train import train_steps
from simulated_annotator import answer_by, simulate_session, true_accuracy
from training.training_cases import blind_prior, confirmed, plain_scene, some_true


def following(one: ActiveSession) -> Suggestion:
    suggestion = one.next()
    assert suggestion is not None
    return suggestion


def test_there_is_no_question_before_the_first_update() -> None:
    fresh = ActiveSession(plain_scene())
    assert fresh.next() is None
    assert fresh.wants_update
    assert fresh.last is None
    fresh.adopt(run(fresh.update()))
    assert fresh.next() is not None
    assert not fresh.wants_update
    assert fresh.last is not None
    whole = run(track_scene(plain_scene()))
    assert (fresh.last.solution.chosen == whole.solution.chosen).all()


def test_answers_are_recorded_as_annotations() -> None:
    one = session(random_share=0.5)
    known = annotator()
    for k in range(6):
        suggestion = following(one)
        assert suggestion.random == (k % 2 == 1)
        noted = one.answer(suggestion, known.truth(suggestion.slot), seconds=2.0)
        assert noted.source == (RANDOM if suggestion.random else SUGGESTED)
        assert noted.id in one.annotations
        assert noted.seconds == 2.0
        assert suggestion.slot not in {s.slot for s in one.open}
    assert len(one.counted) == 6
    assert f"Events less than 90 % certain: at most {one.last.doubtful}. " in one.report
    assert one.report.endswith("It is too early to stop; keep answering.")
    assert one.wants_update
    one.adopt(run(one.update()))
    assert not one.wants_update
    assert len(one.scene.constraints) == 6


def test_a_proposal_that_was_wrong_is_known_as_such() -> None:
    one = session()
    first = following(one)
    assert one.answer(first, first.alternatives[0]).right is False
    assert one.answer(following(one)).right is True
    noted = one.answer(following(one), kind=Kind.REJECT)
    assert noted.kind == Kind.REJECT
    assert noted.right is False
    undecided = one.answer(following(one), kind=Kind.CANNOT_TELL)
    assert undecided.kind == Kind.CANNOT_TELL
    assert undecided.right is None
    assert len(one.counted) == 4


def test_an_event_of_other_cells_is_no_answer() -> None:
    one = session()
    first = following(one)
    other = next(s for s in one.open if first.slot not in s.event.slots)
    with pytest.raises(InputError, match="the question is what"):
        one.answer(first, other.event)
    assert not len(one.annotations)
    assert following(one) == first


def test_answers_given_during_an_update_stay_answered() -> None:
    one = session()
    one.answer(following(one))
    steps = one.update()
    meanwhile = following(one)
    one.answer(meanwhile)
    one.adopt(run(steps))
    assert meanwhile.slot not in {s.slot for s in one.open}
    assert len(one.scene.constraints) == 1
    assert len(one.annotations) == 2


def test_a_random_question_that_is_owed_comes_first():
    one = session(random_share=0.2)
    chosen, at_random = ([s for s in one.queue if s.random == drawn] for drawn in (False, True))
    for asked in at_random:
        one.postpone(asked)
    for k, asked in enumerate(chosen[:5]):
        assert following(one) is (asked if k < 4 else at_random[0]), "one of five"
        one.answer(asked)


def test_it_learns_and_says_how_far_it_came() -> None:
    one = session(blind_prior(), random_share=0.4)
    before = true_accuracy(one, true_rows())
    assert one.estimate() is None
    assert one.report == ""
    run(simulate_session(one, annotator(), 30))
    assert true_accuracy(one, true_rows()) > before
    estimate = one.estimate()
    assert estimate is not None
    assert estimate.n_annotations >= 12
    assert estimate.low <= true_accuracy(one, true_rows()) <= estimate.high
    assert one.report.startswith("30 questions answered. Every event is at least 90 % certain. At")
    assert estimate.words[1:] in one.report and " doubtful events were wrong; " in one.report
    numbers = list(one.curve)
    assert numbers == sorted(numbers) and numbers[-1] == 30
    assert one.curve[30] == estimate
    assert all(known.says_something for known in one.curve.values())


def test_an_update_is_wanted_after_enough_answers_or_where_few_questions_are_left() -> None:
    one = session()
    wanted = []
    for _ in range(UPDATE_EVERY):
        wanted.append(one.wants_update)
        one.answer(following(one))
    assert wanted == [False] * UPDATE_EVERY
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
    one.adopt(run(one.update()))
    assert len(one.scene.hypotheses) > len(h)
    assert len(one.scene.constraints) == 1
    one.answer(following(one))
    one.adopt(run(one.update()))
    assert len(one.scene.constraints) == 2


def test_a_session_goes_on_from_the_answers(tmp_path: Path) -> None:
    one = session(random_share=0.4)
    run(simulate_session(one, annotator(), 12))
    save_annotations(one.annotations, tmp_path / "answers.json")
    kept = AutosavingStore(tmp_path / "answers.json", one.annotations.geometry)
    again = ActiveSession(plain_scene(), answers=kept, options=one.options)
    assert len(again.counted) == 12
    again.adopt(run(again.update()))
    mine, theirs = again.estimate(), one.estimate()
    assert mine is not None
    assert theirs is not None
    assert mine.n_annotations == theirs.n_annotations
    assert (mine.accuracy, mine.low) == pytest.approx((theirs.accuracy, theirs.low), abs=1e-3)
    answer_by(again, annotator(), following(again))
    assert len(again.counted) == 13


def test_an_answer_that_was_taken_back_tells_nothing() -> None:
    one = session(random_share=1.0)
    one.answer(following(one))
    one.answer(following(one), following(one).alternatives[0])
    one.adopt(run(one.update()))
    estimate = one.estimate()
    assert estimate is not None
    assert estimate.n_annotations == 2
    assert 0 < estimate.accuracy < 1
    one.answers.undo()
    estimate = one.estimate()
    assert estimate is not None
    assert (estimate.n_annotations, estimate.accuracy) == (1, 1.0)
    one.answers.undo()
    assert one.estimate() is None


def test_a_question_passed_on_comes_last() -> None:
    one = session(random_share=0.0)
    first, second, *_ = one.queue
    one.postpone(first)
    assert one.next() is second and one.queue[-1] is first


def test_questions_whose_answers_are_taken_back_come_first_and_none_is_lost() -> None:
    one = session(random_share=0.0)
    first, second = one.queue[:2]
    one.answer(first)
    one.answer(second, kind=Kind.REJECT)
    one.adopt(run(one.update()))
    for back in (second, first):
        one.answers.undo()
        assert one.reopened() is back is one.next()
    assert one.reopened() is None, "once"
    one.answer(first)
    assert one.next() is second


def test_a_session_learns_what_training_learns() -> None:
    scene, prior = confirmed(plain_scene(), some_true(9)), untrained_model()
    training = run(train_steps(scene, prior))
    learned = run(learn_answers(scene, prior, None))
    features = scene.matrix.features
    start = prior.aligned(features)
    trained = training.model.aligned(features)
    assert np.linalg.norm(trained - start) > 0.05
    assert np.linalg.norm(learned.weights - trained) < 0.1 * np.linalg.norm(trained - start)
