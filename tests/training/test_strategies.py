"""The strategies of Table 1.4 on simulated movies, from end to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridgetrack.errors import InputError, ModelError
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model, load_model, save_model
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from bridgetrack.training.fit import ALONE, ASKING, DOUBTFUL, TRANSFER, Tie, Trial, preferred
from bridgetrack.training.keep import KeepReason
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training, TrainingProgress
from bridgetrack.training.sources import STRATEGIES, as_start, check_strategy, lacking
from bridgetrack.training.train import strategy_steps, train_steps
from bridgetrack.training.validation import HeldOut
from training.training_cases import (
    bad_prior,
    blind_prior,
    confirmed,
    plain_scene,
    some_true,
    true_columns,
)


def earlier_movie(seed: int = 2, count: int = 80) -> Scene:
    """Another simulated movie, annotated."""
    return confirmed(plain_scene(seed), some_true(count, seed, divisions=8))


def this_movie(count: int = 20, divisions: int = 2) -> Scene:
    """The movie of interest with a few annotations."""
    return confirmed(plain_scene(), some_true(count, divisions=divisions))


def right(model: Model) -> float:
    """Share of the true events of the movie of interest that a model finds by itself."""
    chosen = run(track_scene(plain_scene(), model)).solution.chosen
    return float(chosen[true_columns()].mean())


@pytest.fixture(scope="module")
def transferred() -> Training:
    return run(strategy_steps("transfer", this_movie(), [earlier_movie()], bad_prior()))


def test_earlier_movies_help(transferred: Training) -> None:
    before = right(bad_prior())
    assert before < 0.6
    assert transferred.kept == "trained"
    assert right(transferred.model) > before + 0.3
    assert transferred.chosen_by == "cross-validation"
    assert transferred.estimate is not None
    assert transferred.n_annotations == 20
    assert transferred.transfer is not None
    assert transferred.transfer.tie in TRANSFER
    assert [t.tie for t in transferred.transfer.trials] == list(TRANSFER)


def test_the_model_file_says_where_it_comes_from(transferred: Training, tmp_path: Any) -> None:
    found = load_model(save_model(transferred.model, tmp_path / "m.json"))
    assert found.provenance["strategy"] == "transfer"
    assert len(found.provenance["sources"]) == 1
    assert "80 annotations" in found.provenance["sources"][0]
    assert found.provenance["annotations"] == 20
    assert transferred.origin == ("transfer", *found.provenance["sources"])


USER = TrainingOptions(strength=0.05, folds=2)
L1 = TrainingOptions(regularizer="l1")
QUICK = TrainingOptions(folds=2)


def test_every_movie_has_weights_of_its_own() -> None:
    given: dict[str, Any] = {"options": USER, "prior": bad_prior()}
    found = {
        tie: run(strategy_steps("transfer", this_movie(), [earlier_movie()], tie=tie, **given))
        for tie in (0.05, 5.0)
    }
    union = run(strategy_steps("union", this_movie(), [earlier_movie()], **given))
    apart = {}
    for tie, training in found.items():
        assert training.transfer is not None and training.chosen_by == "user"
        assert training.strength == pytest.approx(0.05)
        weights = training.result.weights
        apart[tie] = float(np.linalg.norm(weights[0] - weights[1]))
    assert 0 < apart[5.0] < apart[0.05]
    assert union.transfer is not None
    np.testing.assert_array_equal(*union.result.weights)


def test_without_annotations_the_earlier_movies_are_taken_over() -> None:
    for strategy in ("source", "union", "transfer"):
        training = run(strategy_steps(strategy, plain_scene(), [earlier_movie()], bad_prior()))
        assert training.kept == "trained"
        assert training.decision.reason == KeepReason.NOT_ANNOTATED
        assert training.n_annotations == 0
        assert right(training.model) > right(bad_prior()) + 0.3


def test_a_few_annotations_check_the_earlier_movies() -> None:
    training = run(strategy_steps("transfer", this_movie(5, 1), [earlier_movie()], bad_prior()))
    assert training.chosen_by == "default"
    assert training.kept == "trained"
    assert training.decision.reason == KeepReason.BETTER
    assert "what the earlier movies say is" in training.reason
    assert training.validation is not None


def misleading(seed: int = 2) -> Scene:
    """An earlier movie in which somebody called moves appearances, wherever they could."""
    scene = plain_scene(seed)
    h = scene.hypotheses
    true = true_columns(seed)
    moves = true[h.event[true] == Event.MOVE][:60]
    appear = np.flatnonzero(h.event == Event.APPEAR)
    wrong = [c for c in appear if h.targets[c, 0] in set(h.targets[moves, 0].tolist())]
    return confirmed(scene, np.array(wrong))


@pytest.mark.parametrize("count", [5, pytest.param(40, marks=pytest.mark.thorough)])
def test_misleading_movies_do_no_harm(count: int) -> None:
    training = run(strategy_steps("transfer", this_movie(count), [misleading()], None, QUICK))
    assert right(training.model) >= right(untrained_model()) - 1e-9
    assert training.transfer is not None
    assert training.kept == ("prior" if count == 5 else "trained")
    if count == 40:
        assert training.transfer.tie in ALONE
        assert [t.tie for t in training.transfer.trials] == list(DOUBTFUL)
    union = run(strategy_steps("union", this_movie(count), [misleading()]))
    assert union.kept == "prior"
    assert union.decision.reason == KeepReason.WORSE


def test_all_source_is_checked_on_the_target() -> None:
    good = run(strategy_steps("source", this_movie(), [earlier_movie()], bad_prior()))
    assert good.kept == "trained" and good.validation is not None
    assert right(good.model) > right(bad_prior()) + 0.3
    bad = run(strategy_steps("source", this_movie(), [misleading()]))
    assert bad.kept == "prior"
    np.testing.assert_array_equal(bad.model.weights, untrained_model().weights)


def test_target_is_plain_training() -> None:
    plain = run(train_steps(this_movie(), bad_prior(), USER))
    target = run(strategy_steps("target", this_movie(), (), bad_prior(), USER))
    np.testing.assert_array_equal(plain.model.weights, target.model.weights)


def test_delta_with_the_same_features_is_prior() -> None:
    source = replace(bad_prior(), name="source", provenance={"image": False})
    prior = run(strategy_steps("prior", this_movie(), [source], options=USER))
    delta = run(strategy_steps("delta", this_movie(), [source], options=USER))
    np.testing.assert_array_equal(prior.model.weights, delta.model.weights)
    assert prior.kept == delta.kept == "trained"
    assert delta.model.provenance["strategy"] == "delta"
    assert delta.model.provenance["sources"] == ["source"]
    assert delta.notes == prior.notes
    assert any("training without this source may be better" in note.words for note in delta.notes)
    good = run(strategy_steps("prior", this_movie(), [untrained_model()], options=USER))
    assert not any("without this source" in note.words for note in good.notes)


def test_delta_takes_a_source_that_lacks_features() -> None:
    whole = blind_prior()
    keep = [k for k, key in enumerate(whole.keys) if not key.endswith("distance_squared")]
    source = Model(
        tuple(whole.keys[k] for k in keep),
        whole.weights[keep],
        tuple(whole.units[k] for k in keep),
        name="smaller",
    )
    with pytest.raises(ModelError, match="distance_squared"):
        run(strategy_steps("prior", this_movie(), [source]))
    delta = run(strategy_steps("delta", this_movie(), [source], options=USER))
    assert delta.model.keys == whole.keys
    assert any(
        "distance_squared" in str(note) and "new to the source" in str(note) for note in delta.notes
    )


def test_a_source_without_an_image_says_nothing_of_intensities() -> None:
    features = plain_scene().matrix.features
    image = {f.key for f in features.features if f.needs == "image"}
    assert image
    other = Model(features.keys, np.full(len(features), 9.0), ("1",) * len(features), name="blind")
    blind = replace(other, provenance={"image": False})
    assert set(lacking(blind, features, image=True)) == image
    assert lacking(blind, features, image=False) == ()
    assert lacking(other, features, image=True) == ()
    start = as_start(blind, features, True, untrained_model())
    shipped = dict(zip(untrained_model().keys, untrained_model().weights, strict=True))
    for key, weight in zip(start.keys, start.weights, strict=True):
        assert weight == (shipped[key] if key in image else 9.0)


def test_a_foreign_source_is_refused() -> None:
    features = plain_scene().matrix.features
    keys = (*features.keys, "move.magic")
    foreign = Model(keys, np.zeros(len(keys)), ("1",) * len(keys), name="other")
    with pytest.raises(ModelError, match=r"move\.magic"):
        run(strategy_steps("delta", this_movie(), [foreign]))


def test_progress_carries_models_to_keep() -> None:
    steps = strategy_steps("transfer", this_movie(), [earlier_movie()], options=USER, tie=1.0)
    said = [(s.stage, s.model) for s in steps if isinstance(s, TrainingProgress)]
    learned = [(stage, model) for stage, model in said if model is not None]
    assert learned and all(model.keys == bad_prior().keys for _, model in learned)
    # nothing is kept before something is learned, and then from the first stage on
    assert said[0][1] is None
    assert learned[0][0] == ASKING


@pytest.mark.parametrize(
    ("strategy", "sources", "more", "words"),
    [
        ("best", [], {}, "no strategy 'best'"),
        ("target", [untrained_model()], {}, "uses no source"),
        ("transfer", [], {}, "give project files"),
        ("union", [untrained_model()], {}, "not the model 'untrained'"),
        ("delta", [], {}, "exactly one model"),
        ("prior", [untrained_model()] * 2, {}, "exactly one model"),
        ("prior", [untrained_model()], {"prior": untrained_model()}, "leave the other out"),
        ("delta", [untrained_model()], {"tie": 1.0}, "has none"),
    ],
)
def test_wrong_combinations(
    strategy: Any, sources: list[Any], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        check_strategy(strategy, sources, **more)


def test_more_wrong_use() -> None:
    movie = earlier_movie()
    with pytest.raises(InputError, match="they go with transfer or union"):
        check_strategy("delta", [movie])
    with pytest.raises(InputError, match="rho must be positive"):
        check_strategy("transfer", [movie], tie=-1.0)
    with pytest.raises(InputError, match="needs the regularizer l2"):
        run(strategy_steps("union", this_movie(), [movie], None, L1))
    with pytest.raises(InputError, match="nothing to learn from"):
        run(strategy_steps("transfer", this_movie(), [plain_scene(2)]))
    with pytest.raises(InputError, match="there is no movie"):
        run(strategy_steps("transfer", [], [movie]))
    assert set(STRATEGIES) == {"target", "source", "union", "transfer", "delta", "prior"}


def test_among_ties_that_are_alike_the_fewest_wrong_decide_and_then_the_order() -> None:
    rng = np.random.default_rng(0)
    base, noise = rng.random(50), rng.normal(size=50)
    ties = [Tie(1.0, t) for t in (100.0, 10.0, 1.0)]

    def chosen(*shifts: Any, wrong: tuple[int, ...] = (3, 3, 3)) -> int:
        trials = [
            Trial(tie, HeldOut((np.arange(50) < n).astype(float), base + shift))
            for tie, n, shift in zip(ties, wrong, shifts, strict=True)
        ]
        return ties.index(preferred(trials, np.arange(50)).tie)

    assert chosen(0.0, 0.0, 0.0) == 0
    assert chosen(0.02 + noise, 0.5 * noise, 0.0) == 0
    assert chosen(0.02 + noise, 0.5 * noise, 0.0, wrong=(4, 2, 3)) == 1
    assert chosen(1.0, 1.0, 0.0) == 2
    assert chosen(1.0, 1.0, 0.0, wrong=(0, 0, 3)) == 2
