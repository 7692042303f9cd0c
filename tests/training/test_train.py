"""Training from end to end: from annotations to a model that tracks."""

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.annotation import RANDOM, Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.fit import errors_of
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import WORSE, train_steps
from bridgetrack.training.training_set import build_training_set
from golden.test_golden import poor
from golden.test_golden import scene as flat_scene
from training.training_cases import (
    bad_prior,
    confirmed,
    plain_scene,
    right,
    says,
    some_true,
    with_annotations,
)


@pytest.fixture(scope="module")
def followed():
    """A training and what it told meanwhile."""
    told = []
    scene = confirmed(plain_scene(), some_true(30))
    return run(train_steps(scene, bad_prior()), told.append), told


@pytest.fixture(scope="module")
def trained(followed):
    """The training."""
    return followed[0]


def test_progress(followed):
    told = followed[1]
    assert all(0 <= step.done <= 1 for step in told)
    assert list(dict.fromkeys(step.stage for step in told)) == [
        "Collecting annotations",
        "Learning",
        "Choosing how far to go",
        "Comparing with the starting model",
        "Testing on held-out answers",
    ]


def test_a_bad_start_is_improved(trained):
    before = right(bad_prior())
    assert before < 0.6
    whole = replace(trained.model, weights=trained.result.w)
    assert right(whole) > before + 0.3
    assert before < right(trained.model), "below 300 answers the model goes half of the way"
    assert trained.lambda_ == default_lambda(30)
    assert trained.n_annotations == 30
    assert trained.estimate is not None
    assert trained.estimate.n_annotations == 30
    assert trained.estimate.parts < 30, "chosen answers side by side count as one"
    unseen = 30 - trained.estimate.right
    data = build_training_set(confirmed(plain_scene(), some_true(30)))
    start = errors_of(TrackingModel(data), bad_prior().weights).sum()
    assert unseen < start
    assert trained.words == (
        f"errors on 30 held-out answers: trained model {round(unseen, 1):g}, starting model "
        f"{round(start, 1):g}"
    )


def test_a_model_says_where_it_comes_from(trained):
    model = trained.model
    assert (model.name, model.loss, model.regularizer) == ("trained", "bridge", "l2")
    assert model.strength == trained.lambda_
    assert model.provenance["annotations"] == 30
    assert model.provenance["prior"] == "bad"
    assert model.estimate["accuracy"] == pytest.approx(trained.estimate.accuracy)
    lengths = {len(model.history[name]) for name in ("objective", "gap", "bounds")}
    assert lengths == {len(trained.result.steps)}
    assert model.history["objective"][-1] < model.history["objective"][0]
    assert trained.result.gap <= 1e-3
    assert set(model.events) == set(Event)


def test_the_step_is_longer_the_more_the_start_is_contradicted(trained):
    scene = confirmed(plain_scene(), some_true(30))
    short = run(train_steps(scene, untrained_model(), judge=False))
    assert 0.4 <= short.step <= 0.6 and 0.8 <= trained.step <= 1.0
    for model, found in ((untrained_model(), short), (bad_prior(), trained)):
        assert found.step == found.model.provenance["step"]
        start = model.aligned(scene.matrix.features)
        expected = start + found.step * (found.result.w - start)
        np.testing.assert_allclose(found.model.aligned(scene.matrix.features), expected)
        assert right(found.model) >= right(model)


def test_answers_that_agree_move_nothing():
    """Margins of the start are so large that no annotation moves it."""
    scene = confirmed(plain_scene(), some_true(30))
    certain = replace(untrained_model(), weights=100 * untrained_model().weights, name="certain")
    found = run(train_steps(scene, certain, judge=False))
    np.testing.assert_allclose(found.model.weights, certain.weights)


def test_a_model_that_is_worse_than_its_start_is_told(monkeypatch):
    plain, rows = plain_scene(), some_true(10)
    wrong = with_annotations(plain, says(plain, rows, Kind.REJECT))
    how = {"strategy": "source", "sources": [wrong]}
    found = run(train_steps(confirmed(plain, rows), untrained_model(), **how))
    assert WORSE in map(str, found.notes)
    shares = iter((0.201, 0.2, 0.2))  # of 10 answers: in words no difference
    changed = "bridgetrack.training.train.errors_of"
    monkeypatch.setattr(changed, lambda *_: np.full(10, next(shares)))
    found = run(train_steps(confirmed(plain, rows), untrained_model(), **how))
    assert "trained model 2, starting model 2" in found.words
    assert found.errors == (2, 2) and WORSE not in map(str, found.notes)


def test_closing_in_the_middle():
    scene = confirmed(plain_scene(), some_true(12))
    for wanted in ("Testing on held-out answers", "Learning"):
        steps = train_steps(scene, bad_prior())
        while next(steps).stage != wanted:
            pass
        steps.close()
        with pytest.raises(StopIteration):
            next(steps)


def test_accuracy_of_answers_about_events_drawn_at_random():
    scene = confirmed(plain_scene(), some_true(15), source=RANDOM)
    more = run(train_steps(scene, bad_prior(), TrainingOptions(lambda_=0.3)))
    assert more.estimate is not None
    assert more.estimate.random
    assert len(build_training_set(scene).samples) < more.estimate.parts == 15


def test_one_component_is_fitted_to_the_end():
    """Its one slack makes minimisers leap to and fro, and the start contradicts most answers."""
    count = 0
    for seed in (2, 3):
        steps = train_steps(flat_scene(6, seed), poor(), TrainingOptions(learner="n-slack"))
        found = run(steps).result
        assert found.converged
        count += found.n_inferences
    assert count < 3000
