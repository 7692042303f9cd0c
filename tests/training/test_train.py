"""Training from end to end: from annotations to a model that tracks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.annotations.annotation import RANDOM
from bridgetrack.annotations.store import load_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.importing.ctc import read_ctc
from bridgetrack.learning import LearningOptions
from bridgetrack.models.model import Model, load_model, save_model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import prepare, propose
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.sample import sample_folder
from bridgetrack.training.components import build_training_set
from bridgetrack.training.keep import KeepReason
from bridgetrack.training.options import STEPS, TrainingOptions, default_strength
from bridgetrack.training.outcome import Training, TrainingProgress
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.validation import judge
from training.training_cases import (
    bad_prior,
    blind_prior,
    confirmed,
    plain_scene,
    some_true,
    true_columns,
)

QUICK = TrainingOptions(strength=0.1)


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
    assert trained.kept == "trained"
    assert right(trained.model) > before + 0.3
    assert (trained.chosen_by, trained.strength) == ("default", default_strength(30))
    assert trained.n_annotations == 30
    assert trained.validation is not None
    assert len(trained.validation.held_out) == len(trained.validation.strengths)
    best = trained.validation.held_out[trained.validation.best]
    assert best.error < trained.validation.prior.error
    kept = trained.decision.held_out
    assert kept is not None
    assert kept.error < trained.validation.prior.error
    assert f"{100 * kept.error:.1f} %" in trained.reason
    assert trained.estimate is not None
    assert trained.estimate.n_annotations == 30
    assert trained.estimate.parts < 30, "chosen answers side by side count as one"


def test_changes_are_counted(trained: Training) -> None:
    assert set(trained.changes) == set(trained.exchanged) == {e.key for e in Event}
    for kind, (before, after) in trained.changes.items():
        gained, lost = trained.exchanged[kind]
        assert after - before == gained - lost
    assert trained.exchanged["move"][0] > 50


def test_a_model_says_where_it_comes_from(trained: Training) -> None:
    model = trained.model
    assert (model.name, model.loss, model.regularizer) == ("trained", "bridge", "l2")
    assert model.strength == trained.strength
    assert model.provenance["annotations"] == 30
    assert model.provenance["prior"] == "bad"
    assert model.estimate["accuracy"] == pytest.approx(trained.estimate.accuracy)
    lengths = {len(model.history[name]) for name in ("objective", "gap", "bounds")}
    assert lengths == {len(trained.result.history.gap)}
    assert model.history["objective"][-1] < model.history["objective"][0]
    assert trained.result.gap <= 1e-3
    assert set(model.events) == set(Event)


def test_a_saved_model_tracks_in_the_same_way(trained: Training, tmp_path: Path) -> None:
    loaded = load_model(save_model(trained.model, tmp_path / "m.json"))
    np.testing.assert_array_equal(loaded.weights, trained.model.weights)
    one, two = (run(track_scene(plain_scene(), m)) for m in (trained.model, loaded))
    np.testing.assert_array_equal(one.solution.chosen, two.solution.chosen)
    assert one.tracks.edges.equals(two.tracks.edges)


def test_training_twice_gives_the_same_weights() -> None:
    scene = confirmed(plain_scene(), some_true(9))
    one, two = (run(train_steps(scene, bad_prior(), QUICK)) for _ in range(2))
    np.testing.assert_array_equal(one.model.weights, two.model.weights)
    assert one.reason == two.reason


def test_a_good_start_is_not_spoilt() -> None:
    scene = confirmed(plain_scene(), some_true(30))
    found = run(train_steps(scene))
    assert (found.decision.reason, found.step) == (KeepReason.HALFWAY, 0.5)
    start = untrained_model().aligned(scene.matrix.features)
    halfway = (start + found.result.w) / 2
    np.testing.assert_allclose(found.model.aligned(scene.matrix.features), halfway)
    assert found.model.estimate["annotations"] == 30
    assert right(found.model) >= right(untrained_model())


def test_what_few_answers_teach_is_gone_halfway() -> None:
    scene = plain_scene()
    found = run(train_steps(confirmed(scene, some_true(6)), bad_prior()))
    assert (found.decision.reason, found.step) == (KeepReason.UNCHECKED, 0.5)
    assert found.model.provenance["step"] == 0.5
    start, features = bad_prior(), scene.matrix.features
    halfway = (start.aligned(features) + found.result.w) / 2
    np.testing.assert_allclose(found.model.aligned(features), halfway)
    assert right(found.model) > right(start)


def test_a_start_that_nothing_speaks_against_is_kept() -> None:
    """Its margins are so large that no annotation moves it."""
    scene = confirmed(plain_scene(), some_true(30))
    sure = replace(untrained_model(), weights=100 * untrained_model().weights, name="sure")
    found = run(train_steps(scene, sure))
    assert found.kept == "prior"
    assert found.decision.reason == KeepReason.AGREES
    np.testing.assert_array_equal(found.model.weights, sure.weights)
    assert found.model.name == "sure"


def test_lies_do_not_replace_a_good_start() -> None:
    """Annotations that no model can explain: the learned weights fail on those held out."""
    scene = plain_scene()
    rng = np.random.default_rng(0)
    wrong, used = [], np.zeros(len(scene.slots))
    moves = np.flatnonzero(scene.hypotheses.event == Event.MOVE)
    for c in rng.permutation(np.setdiff1d(moves, true_columns())):
        slots = scene.problem.incidence[int(c)].indices
        if not used[slots].any() and len(wrong) < 6:
            used[slots] = 1
            wrong.append(int(c))
    good = [c for c in some_true(40).tolist() if not used[scene.problem.incidence[c].indices].any()]
    found = run(train_steps(confirmed(scene, np.array([*wrong, *good]))))
    assert found.validation is not None
    held = found.validation.held_out[found.validation.best]
    assert 0 < (held.wrong - found.validation.prior.wrong).mean() < 0.1
    assert found.step <= 0.5
    assert right(found.model) >= right(untrained_model())


def test_progress_and_the_best_model_so_far() -> None:
    scene = confirmed(plain_scene(), some_true(20))
    data = build_training_set([scene])
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
        "Testing on answers set aside",
        "Learning",
        "Comparing with the starting model",
    ]
    assert (np.diff(objectives) <= 1e-6).all()
    last = models[-1]
    assert last is not None
    model = TrackingModel(data)
    assert judge(model, last.weights).risk < judge(model, bad_prior().weights).risk


def test_closing_in_the_middle() -> None:
    scene = confirmed(plain_scene(), some_true(12))
    for wanted in ("Testing on answers set aside", "Learning"):
        steps = train_steps(scene, bad_prior())
        while next(steps).stage != wanted:
            pass
        steps.close()
        with pytest.raises(StopIteration):
            next(steps)


def test_a_training_is_checked_once_there_is_enough() -> None:
    few = run(train_steps(confirmed(plain_scene(), some_true(5)), bad_prior()))
    assert (few.chosen_by, few.strength) == ("default", default_strength(few.n_annotations))
    assert few.estimate is None
    assert few.decision.reason == KeepReason.UNCHECKED
    scene = confirmed(plain_scene(), some_true(15), source=RANDOM)
    more = run(train_steps(scene, bad_prior()))
    assert few.validation is None
    assert more.validation is not None
    assert more.estimate is not None
    assert len(build_training_set([scene]).samples) < more.estimate.parts == 15


def test_it_is_told_that_models_which_choose_were_not_fitted_to_the_end() -> None:
    scene = confirmed(plain_scene(), some_true(15))
    found = run(train_steps(scene, bad_prior()))
    assert found.choice.unfinished == 0
    assert not any("wanted precision" in note.words for note in found.notes)
    hasty = TrainingOptions(optimiser=LearningOptions(max_inferences=4))
    found = run(train_steps(scene, bad_prior(), hasty))
    assert found.choice.unfinished == 5
    (note,) = [note.words for note in found.notes if "wanted precision" in note.words]
    assert note.startswith("5 models that")


def test_with_enough_annotations_lambda_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgetrack.training.fit.ENOUGH_TO_CHOOSE", 15)
    found = run(train_steps(confirmed(plain_scene(), some_true(15)), bad_prior()))
    assert found.chosen_by == "cross-validation"
    assert found.validation is not None
    assert len(found.validation.strengths) > 1
    assert found.strength == found.validation.strengths[found.validation.best]
    usual = default_strength(found.n_annotations)
    assert min(abs(found.strength / usual - step) for step in STEPS) < 1e-9


def test_a_chosen_lambda_is_used() -> None:
    scene = confirmed(plain_scene(), some_true(15))
    weights = {}
    for strength in (0.05, 50.0):
        options = TrainingOptions(strength=strength)
        found = run(train_steps(scene, bad_prior(), options))
        assert (found.strength, found.chosen_by) == (strength, "user")
        assert found.validation is not None
        weights[strength] = found.result.w
    near, far = (np.linalg.norm(weights[s] - bad_prior().weights) for s in (50.0, 0.05))
    assert near < far


@pytest.mark.parametrize("count", [5, 15])
def test_who_gives_lambda_gets_the_weights_that_come_of_it(count: int) -> None:
    scene, features = confirmed(plain_scene(), some_true(count)), plain_scene().matrix.features
    found = run(train_steps(scene, bad_prior(), TrainingOptions(strength=0.3)))
    np.testing.assert_allclose(found.model.aligned(features), found.result.w)
    assert found.step == 1
    reason = KeepReason.UNCHECKED if count == 5 else KeepReason.AS_GIVEN
    assert found.decision.reason == reason


@pytest.mark.parametrize(
    "options",
    [TrainingOptions(loss=name, strength=0.1) for name in ("hinge", "ramp", "max-delta")]
    + [
        TrainingOptions(regularizer="l1", strength=0.1),
        TrainingOptions(treatment="literal", strength=0.1),
    ],
    ids=lambda o: f"{o.loss}-{o.regularizer}-{o.treatment}",
)
def test_other_losses_and_regularisers(options: TrainingOptions) -> None:
    scene = confirmed(plain_scene(), some_true(9))
    found = run(train_steps(scene, bad_prior(), options))
    assert np.isfinite(found.model.weights).all()
    assert found.result.objective <= found.result.objectives[0]
    assert found.kept == "trained"
    assert (found.model.loss, found.model.regularizer) == (options.loss, options.regularizer)


def test_two_movies() -> None:
    scenes = [
        confirmed(plain_scene(1), some_true(5)),
        confirmed(plain_scene(2), some_true(4, seed=2)),
    ]
    found = run(train_steps(scenes, bad_prior(), QUICK))
    assert found.n_annotations == 9
    assert found.kept == "trained"
    assert len(found.model.provenance["movies"]) == 2
    assert right(found.model) > right(bad_prior())


def test_the_sample_movie_learns_from_its_clicks() -> None:
    folder = sample_folder()
    labels = read_ctc(folder / "01_GT").labels
    answers = load_annotations(folder / "annotations.json")
    scene = run(prepare(labels, None, answers))
    found = run(train_steps(scene, blind_prior(), TrainingOptions(strength=0.03)))
    assert found.kept == "trained"
    assert found.n_annotations > 0.6 * len(answers)
    assert found.validation is not None
    assert found.validation.held_out[0].error < found.validation.prior.error
    assert found.estimate is not None
    assert found.estimate.accuracy > 0.9
    plain = propose(scene.evidence, labels)
    before, after = (
        run(track_scene(plain, m)).solution.chosen for m in (blind_prior(), found.model)
    )
    divide = plain.hypotheses.event == Event.DIVIDE
    assert after[divide].sum() > before[divide].sum() + 5
