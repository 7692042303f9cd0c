"""Learning by likelihood: its sums beside enumeration, its slope beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.learning import L2, fit_likelihood
from bridgetrack.training.components import build_training_set
from bridgetrack.training.tracking_model import TrackingModel
from training.test_tracking_model import outputs
from training.training_cases import blind_prior, confirmed, plain_scene, some_true, tiny_set


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_log_losses_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = tiny_set(rng)
    model = TrackingModel(data)
    w = rng.normal(size=data.phi.shape[1])
    values, slopes = model.log_losses(data.samples, w)
    for k, sample in enumerate(data.samples):
        every = outputs(data, sample.x)
        agree = [y for y in every if model.task_loss(sample.y_star, y) <= 1e-9]
        sums, means = zip(
            *(log_sum(model, sample.x, some, w) for some in (every, agree)), strict=True
        )
        weight = data.importance[sample.x]
        assert values[k] == pytest.approx(weight * (sums[0] - sums[1]), abs=1e-8)
        np.testing.assert_allclose(slopes[k], means[0] - means[1], atol=1e-8)


def log_sum(
    model: TrackingModel, x: int, every: list[np.ndarray], w: np.ndarray
) -> tuple[float, np.ndarray]:
    """Log of the sum over outputs, and their mean joint feature."""
    columns = model.data.phi[model.columns(x)]
    scores = np.array([float(columns @ w @ y) for y in every])
    total = float(np.logaddexp.reduce(scores))
    features = np.array([model.joint_feature(x, y) for y in every])
    return total, np.exp(scores - total) @ features


def test_makes_the_annotations_more_probable() -> None:
    data = build_training_set([confirmed(plain_scene(), some_true(40))])
    model, prior = TrackingModel(data), blind_prior().aligned(plain_scene().matrix.features)
    found = fit_likelihood(model, data.samples, L2(0.1, prior), n_annotations=40.0, max_steps=12)
    before = model.log_losses(data.samples, prior)[0].sum()
    after = model.log_losses(data.samples, found.w)[0].sum()
    assert after < 0.7 * before
    assert found.objective < 0.9 * found.objectives[0]
    assert found.objective == pytest.approx(after / 40 + L2(0.1, prior).value(found.w))


def test_needs_annotations() -> None:
    data = build_training_set([confirmed(plain_scene(), some_true(5))])
    with pytest.raises(InputError, match="at least one annotation"):
        fit_likelihood(TrackingModel(data), data.samples, L2(0.1), n_annotations=0)
