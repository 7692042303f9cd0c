"""The learners agree on tracking."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, LearningOptions, fit
from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from golden.test_golden import poor, scene
from training.training_cases import confirmed, middle_set, plain_scene, true_columns

CERTIFIED = ["n-slack", "frank-wolfe"]


@pytest.mark.parametrize("learner", CERTIFIED)
def test_learners_agree_on_a_movie(learner: str) -> None:
    """One surrogate, towards a prior, with samples that count differently."""
    data = build_training_set(confirmed(plain_scene(), true_columns()))
    rng = np.random.default_rng(0)
    data = replace(data, importance=rng.uniform(0.5, 2.0, len(data.samples)))
    prior = untrained_model().aligned(plain_scene().matrix.features) + rng.normal(
        size=data.phi.shape[1], scale=0.5
    )
    n = float(data.n_annotations)
    precision = 1e-4

    def trained(name: str, gap: float) -> tuple[float, float]:
        options = LearningOptions(learner=name, precision=gap, adaptive=False, max_inferences=3000)
        one = LearningOptions(**{**vars(options), "max_cccp_iterations": 1})
        model = TrackingModel(data)
        found = fit(model, data.samples, L2(1.0, prior), n_annotations=n, options=one)
        assert found.gap <= gap
        return found.objectives[-1], found.lower_bound

    value, lower = trained(learner, precision)
    wanted, below = trained("1-slack", 1e-5)
    assert below - 1e-9 <= value <= wanted + precision
    assert lower <= wanted + 1e-9


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1000))
def test_weighted_samples_and_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = middle_set(rng)
    model, w = TrackingModel(data), rng.normal(size=data.phi.shape[1])
    blocks = model.blocks(data.samples)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(len(data.samples)))
    whole = model.loss_augmented_inference(data.samples, w)
    for rows in blocks:
        part = model.loss_augmented_inference([data.samples[i] for i in rows], w)
        np.testing.assert_allclose(part.values(w, 1), whole.values(w, 1)[rows], atol=1e-8)


def test_one_component_is_fitted_to_the_end() -> None:
    """Its one slack makes minimisers leap to and fro, and the start contradicts most answers."""
    count = 0
    for seed in (2, 3):
        steps = train_steps(scene(6, seed), poor(), TrainingOptions(learner="n-slack"))
        found = run(steps).result
        assert found.converged
        count += found.n_inferences
    assert count < 3000
