"""Training from end to end: from annotations to a model that tracks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.annotation import RANDOM
from bridgetrack.annotations.files import load_annotations
from bridgetrack.files import sample_folder
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.ctc import read_ctc
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import prepare, propose
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.training.fit import errors_of
from bridgetrack.training.options import TrainingOptions, default_lambda
from bridgetrack.training.outcome import Training, TrainingProgress, plain_model
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from training.training_cases import (
    bad_prior,
    blind_prior,
    confirmed,
    plain_scene,
    some_true,
    true_columns,
)

QUICK = TrainingOptions(lambda_=0.1)


def right(model: Model) -> float:
    """Share of the true events of the movie that a model finds, without annotations."""
    chosen = run(track_scene(plain_scene(), model)).solution.chosen
    return float(chosen[true_columns()].mean())


@pytest.fixture(scope="module")
def trained() -> Training:
    return run(train_steps(confirmed(plain_scene(), some_true(30)), bad_prior()))


def test_a_bad_start_is_improved(trained: Training) -> None:
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
    unseen = 30 - sum(share for *_, share in trained.estimate.per_event)
    data = build_training_set(confirmed(plain_scene(), some_true(30)))
    start = errors_of(TrackingModel(data), bad_prior().weights).sum()
    assert unseen < start
    assert trained.words == (
        f"of 30 held-out answers the trained model gets {round(unseen, 1):g} wrong, the starting "
        f"model {round(start, 1):g}"
    )


def test_a_model_says_where_it_comes_from(trained: Training) -> None:
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


def test_training_twice_gives_the_same_weights() -> None:
    scene = confirmed(plain_scene(), some_true(9))
    one, two = (run(train_steps(scene, bad_prior(), QUICK)) for _ in range(2))
    np.testing.assert_array_equal(one.model.weights, two.model.weights)
    assert one.words == two.words


@pytest.mark.parametrize(("prior", "least", "most"), [(None, 0.4, 0.6), (bad_prior, 0.8, 1.0)])
def test_the_step_is_longer_the_more_the_start_is_contradicted(
    prior: Callable[[], Model] | None, least: float, most: float
) -> None:
    scene = confirmed(plain_scene(), some_true(30))
    model = prior() if prior else untrained_model()
    found = run(train_steps(scene, model))
    assert least <= found.step <= most
    assert found.step == found.model.provenance["step"]
    start = model.aligned(scene.matrix.features)
    expected = start + found.step * (found.result.w - start)
    np.testing.assert_allclose(found.model.aligned(scene.matrix.features), expected)
    assert right(found.model) >= right(model)


def test_answers_that_agree_move_nothing() -> None:
    """Margins of the start are so large that no annotation moves it."""
    scene = confirmed(plain_scene(), some_true(30))
    certain = replace(untrained_model(), weights=100 * untrained_model().weights, name="certain")
    found = run(train_steps(scene, certain))
    np.testing.assert_allclose(found.model.weights, certain.weights)


def test_progress_and_the_best_model_so_far() -> None:
    scene = confirmed(plain_scene(), some_true(20))
    data = build_training_set(scene)
    steps = train_steps(scene, bad_prior(), TrainingOptions())
    stages, models, objectives = [], [], []
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            assert isinstance(stop.value, Training)
            break
        assert 0 <= step.done <= 1
        if not stages or stages[-1] != step.stage:
            stages.append(step.stage)
        if isinstance(step, TrainingProgress) and step.stage == "Learning":
            models.append(step.model)
            objectives.append(step.objective)
    assert stages == [
        "Collecting annotations",
        "Learning",
        "Choosing how far to go",
        "Comparing with the starting model",
        "Testing on held-out answers",
    ]
    assert (np.diff(objectives) <= 1e-6).all()
    last = models[-1]
    assert last is not None
    model = TrackingModel(data)
    assert errors_of(model, last.weights).mean() < errors_of(model, bad_prior().weights).mean()


def test_closing_in_the_middle() -> None:
    scene = confirmed(plain_scene(), some_true(12))
    for wanted in ("Testing on held-out answers", "Learning"):
        steps = train_steps(scene, bad_prior())
        while next(steps).stage != wanted:
            pass
        steps.close()
        with pytest.raises(StopIteration):
            next(steps)


def test_accuracy_is_estimated_once_there_is_enough() -> None:
    few = run(train_steps(confirmed(plain_scene(), some_true(5)), bad_prior()))
    assert few.estimate is None
    scene = confirmed(plain_scene(), some_true(15), source=RANDOM)
    more = run(train_steps(scene, bad_prior()))
    assert more.estimate is not None
    assert more.estimate.random
    assert len(build_training_set(scene).samples) < more.estimate.parts == 15


def test_the_sample_movie_learns_from_its_clicks() -> None:
    folder = sample_folder()
    labels = read_ctc(folder / "01_GT").labels
    answers = load_annotations(folder / "annotations.json")
    scene = run(prepare(labels, None, answers))
    found = run(train_steps(scene, blind_prior(), TrainingOptions(lambda_=0.03)))
    assert found.n_annotations > 0.6 * len(answers)
    assert found.estimate is not None
    assert found.estimate.accuracy > 0.9
    plain = propose(scene.evidence, labels)
    before, after = (
        run(track_scene(plain, model)).solution.chosen
        for model in (blind_prior(), plain_model(found.result.w, plain.matrix.features))
    )
    divide = plain.hypotheses.event == Event.DIVIDE
    assert after[divide].sum() > before[divide].sum() + 5
