"""What an update learns from, and by which models answers are judged; without training anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bridgetrack.active import update
from bridgetrack.active.update import judge_unseen, learn_answers
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training.fit import Learned, Objective
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from training.training_cases import bad_prior, confirmed, plain_scene, some_true

GOOD, BAD = untrained_model().weights, bad_prior().weights


def answered() -> tuple[Scene, Objective]:
    """A movie with fifteen answers, and what is learned from: each frame pair is a sample."""
    scene = confirmed(plain_scene(), some_true(15))
    return scene, Objective(
        TrackingModel(build_training_set(scene, largest=1)), (), BAD, None, 0.02
    )


def errors(objective: Objective, w: np.ndarray) -> np.ndarray:
    assert objective.target is not None
    return np.clip(1 - objective.target.satisfied(w), 0, 1)


def test_answers_are_judged_by_models_that_left_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other answers are never left out, and the models take the same step as the session's."""
    scene, objective = answered()
    assert objective.target is not None
    of, given = objective.target.data.annotation_sample, list[np.ndarray]()

    def stub(seen: Objective, *_: Any, rows: np.ndarray) -> Any:
        yield from ()
        given.append(rows)
        return SimpleNamespace(w=2 * GOOD - BAD)

    monkeypatch.setattr(Objective, "fit", stub)
    ids = scene.constraints.ids[:9]
    found = run(judge_unseen(scene, Learned(BAD, 0.5, None, objective), ids))
    every = np.arange(len(objective.target.data.samples))
    left_out = np.concatenate([np.setdiff1d(every, rows) for rows in given])
    np.testing.assert_array_equal(np.sort(left_out), np.unique(of[:9]))
    unseen, seen = errors(objective, GOOD), errors(objective, BAD)
    assert found.unseen == {i: unseen[k] for k, i in enumerate(ids)}
    assert found.seen == {i: seen[k] for k, i in enumerate(ids)}


def test_a_session_learns_what_training_learns() -> None:
    scene, prior = confirmed(plain_scene(), some_true(9)), untrained_model()
    training = run(train_steps(scene, prior))
    learned = run(learn_answers(scene, prior, None))
    features = scene.matrix.features
    start = prior.aligned(features)
    trained = training.model.aligned(features)
    assert np.linalg.norm(trained - start) > 0.05
    assert np.linalg.norm(learned.weights - trained) < 0.1 * np.linalg.norm(trained - start)


def test_nothing_is_judged_where_nothing_can_be_left_out() -> None:
    scene, objective = answered()
    for learned, ids in (
        (Learned(GOOD, 0.5, None, None), scene.constraints.ids),
        (Learned(GOOD, 0.5, None, objective), []),
        (Learned(GOOD, 0.5, None, objective), ["unknown"]),
    ):
        assert run(judge_unseen(scene, learned, ids)) == update.Judged()
    one = confirmed(plain_scene(), some_true(15)[:1])
    single = Objective(TrackingModel(build_training_set(one, largest=1)), (), BAD, None, 0.02)
    learned = Learned(GOOD, 0.5, None, single)
    assert run(judge_unseen(one, learned, one.constraints.ids)) == update.Judged()
