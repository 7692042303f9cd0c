"""The structured perceptron from partial annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridgetrack.learning import (
    L2,
    LOSSES,
    LearningOptions,
    Sample,
    TrainingResult,
    fit,
    train_perceptron,
)
from bridgetrack.learning.risk import Risk
from bridgetrack.progress import run
from models import chain_problem, multiclass_problem


def perceptron(model: Any, samples: Any, **more: Any) -> TrainingResult:
    """Train from zero, or from elsewhere."""
    return fit(model, samples, L2(1.0), options=LearningOptions(learner="perceptron"), **more)


def task_loss(model: object, samples: tuple[Sample, ...], w: np.ndarray) -> float:
    return float(model.inference(samples, w).losses.mean())


def test_learns_and_reports_the_task_loss() -> None:
    model, samples = chain_problem(0, n=20)
    before = task_loss(model, samples, np.zeros(model.n_features))
    found = perceptron(model, samples)
    assert found.objective == pytest.approx(task_loss(model, samples, found.w))
    assert found.objective < 0.5 * before
    assert np.isnan(found.gap)
    assert (np.diff([s.objective for s in found.steps]) <= 0).all()


def test_one_step_is_the_difference_of_features() -> None:
    model, samples = multiclass_problem(0, n=1)
    x, y_star = samples[0].x, frozenset({2})
    predicted = model.inference(samples, np.zeros(9))
    np.testing.assert_array_equal(predicted.features[0], model.joint_feature(x, (0,)))
    risk = Risk(model, [Sample(x, y_star)], None, LOSSES["hinge"])
    found = run(train_perceptron(risk, np.zeros(9), max_epochs=1, rate=0.5))
    wanted = model.joint_feature(x, (2,)) - model.joint_feature(x, (0,))
    np.testing.assert_allclose(found.w, 0.5 * wanted)
    assert "limit" in found.reason
