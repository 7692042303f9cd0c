"""Algorithm 1.2 on a small movie."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.experiments.algorithm import (
    ActiveResult,
    AlgorithmOptions,
    Round,
    active_perceptron,
    max_margin,
)
from bridgetrack.experiments.patches import build_pool, local_patches
from bridgetrack.experiments.uncertainty import MEASURES, Patches, uncertainties
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet
from training.training_cases import bad_prior, confirmed, plain_scene, true_columns


def pool() -> TrainingSet:
    """The movie in patches with all its labels."""
    scene = confirmed(plain_scene(), true_columns())
    return build_pool(scene, local_patches(scene, 6.0))


def poor_weights() -> np.ndarray:
    """Weights that miss most moves."""
    return bad_prior().aligned(plain_scene().matrix.features)


def walk(steps: Generator[Round, None, ActiveResult]) -> tuple[list[Round], ActiveResult]:
    """All rounds and the result."""
    rounds = []
    while True:
        try:
            rounds.append(next(steps))
        except StopIteration as stop:
            return rounds, stop.value


def mistakes(data: TrainingSet, w: np.ndarray) -> float:
    """Contradicted labels of the whole pool."""
    return float(np.sum(1 - TrackingModel(data).satisfied(w)))


@pytest.mark.parametrize("measure", MEASURES)
def test_it_labels_one_patch_a_round_and_learns(measure: str) -> None:
    data, w = pool(), poor_weights()
    options = AlgorithmOptions(measure=measure, stop=False, most=8)  # type: ignore[arg-type]
    rounds, result = walk(active_perceptron(data, w, options))
    assert [r.labelled for r in rounds] == list(range(1, 9))
    assert len(set(result.labelled)) == 8
    assert result.labelled == tuple(r.patch for r in rounds)
    assert any(r.mistakes for r in rounds)
    assert mistakes(data, result.w) < 0.5 * mistakes(data, w)
    assert np.array_equal(w, poor_weights())


def test_the_first_patch_is_the_most_uncertain() -> None:
    data, w = pool(), poor_weights()
    q = uncertainties(
        Patches.of(data, np.arange(len(data.samples))), w, "best_second", np.random.default_rng(0)
    )
    first = next(active_perceptron(data, w))
    assert first.patch == int(np.argmax(q))


def test_one_step_is_line_10() -> None:
    data, w = pool(), poor_weights()
    first = next(active_perceptron(data, w))
    model = TrackingModel(data)
    sample = data.samples[first.patch]
    predicted = model.inference(sample.x, w)
    wanted = model.compatible_inference(sample.x, sample.y_star, w)
    np.testing.assert_allclose(first.w, w + wanted.feature - predicted.feature)


def test_all_patches_are_labelled_without_a_stopping_rule() -> None:
    data = pool()
    rounds, result = walk(
        active_perceptron(data, poor_weights(), AlgorithmOptions(measure="random", stop=False))
    )
    assert len(rounds) == len(data.samples)
    assert rounds[-1].average == 0
    assert not result.settled


def test_it_stops_when_uncertainty_has_settled() -> None:
    data = pool()
    options = AlgorithmOptions(measure="best_second", window=3, threshold=0.05)
    rounds, result = walk(active_perceptron(data, poor_weights(), options))
    assert result.settled
    assert len(rounds) < len(data.samples)
    assert rounds[-1].eta <= 0.05 < min(r.eta for r in rounds[:-1])
    assert all(r.eta == np.inf for r in rounds[:3])


def test_combined_learning_is_regularised_and_good() -> None:
    data, w = pool(), poor_weights()
    _, result = walk(active_perceptron(data, w, AlgorithmOptions(stop=False, most=8)))
    finished, state = max_margin(data, result.labelled, w, 0.01)
    assert state is not None
    assert mistakes(data, finished) < 0.3 * mistakes(data, w)
    near, _ = max_margin(data, result.labelled, w, 1e4)
    assert np.linalg.norm(near - w) < 0.1 * np.linalg.norm(finished - w)


def test_max_margin_on_the_way() -> None:
    data, w = pool(), poor_weights()
    options = AlgorithmOptions(stop=False, most=6, retrain_every=3, strength=0.1)
    rounds, _ = walk(active_perceptron(data, w, options))
    expected, _ = max_margin(data, [r.patch for r in rounds[:3]], w, 0.1)
    np.testing.assert_allclose(rounds[2].w, expected, atol=0.05 * np.abs(expected).max())


def test_options_are_checked() -> None:
    for wrong in ({"window": 0}, {"most": 0}, {"retrain_every": 0}):
        with pytest.raises(InputError):
            AlgorithmOptions(**wrong)
