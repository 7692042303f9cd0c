"""Self-paced learning to track: entropy of hidden events, and starts at which all tie."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, LearningOptions, fit
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, build_training_set
from models import entropy_of
from training.test_tracking_model import outputs
from training.training_cases import (
    confirmed,
    plain_scene,
    some_true,
    tiny_set,
    true_columns,
)


@cache
def clicked(count: int = 60) -> TrainingSet:
    return build_training_set(confirmed(plain_scene(), some_true(count)))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_hidden_entropy_equals_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = tiny_set(rng)
    w = rng.normal(size=data.phi.shape[1])
    model = TrackingModel(data)
    found = model.hidden_entropies(data.samples, w, 100)
    for sample, entropy in zip(data.samples, found, strict=True):
        columns = model.columns(sample.x)
        sets = data.sets[list(sample.y_star)][:, columns]
        agree = [y for y in outputs(data, sample.x) if (sets @ y > 1 - 1e-9).all()]
        scores = np.array([float(data.phi[columns] @ w @ y) for y in agree])
        assert entropy == pytest.approx(entropy_of(scores), abs=1e-8)


def test_weights_of_their_own() -> None:
    data = clicked()
    rng = np.random.default_rng(0)
    w = rng.normal(size=data.phi.shape[1])
    same = np.tile(w, (len(data.samples), 1))
    model, other = TrackingModel(data), rng.normal(size=same.shape)
    each = model.loss_augmented_inference(data.samples, same)
    together = model.loss_augmented_inference(data.samples, w)
    np.testing.assert_allclose(each.values(w, 1), together.values(w, 1), atol=1e-7)
    found = model.loss_augmented_inference(data.samples, other)
    for k, sample in enumerate(data.samples[:4]):
        alone = model.loss_augmented_inference([sample], other[k])
        reached = found.features[k] @ other[k] + found.losses[k]
        assert reached == pytest.approx(float(alone.values(other[k], 1)[0]), abs=1e-7)


def trained(data: TrainingSet, criterion: Any, start: np.ndarray) -> float:
    """Objective after training towards zero."""
    options = LearningOptions(learner="n-slack", curriculum=criterion)
    regularizer = L2(0.01, np.zeros_like(start))
    n = float(data.n_annotations)
    model = TrackingModel(data)
    found = fit(model, data.samples, regularizer, n_annotations=n, options=options, initial=start)
    return found.objective


def test_from_zero_the_undecided_must_wait() -> None:
    """All outputs tie at zero: plain training stays there; sure samples first lead away.

    Some components are annotated as a whole, of the others one event each.
    """
    columns = true_columns()
    whole = build_training_set(confirmed(plain_scene(), columns))
    sample = whole.annotation_sample
    first = np.unique(sample, return_index=True)[1]
    keep = np.union1d(first, np.flatnonzero(sample % 3 == 1))
    data = build_training_set(confirmed(plain_scene(), columns[keep]))
    zero = np.zeros(data.phi.shape[1])
    plain = trained(data, None, zero)
    assert trained(data, "entropy", zero) < 0.1 * plain
