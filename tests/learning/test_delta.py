"""A fixed source and a learned delta function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.learning import (
    L2,
    Domain,
    LearningOptions,
    Stacked,
    fit,
    loss_values,
)
from models import chain_problem, multiclass_problem

FINE = LearningOptions(precision=1e-6)
seeds = st.integers(0, 1000)
problems = st.sampled_from([multiclass_problem, chain_problem])


@given(seed=seeds, problem=problems)
@settings(max_examples=10, deadline=None)
def test_features_that_the_source_lacks(seed: int, problem: Any) -> None:
    """The source knows half the features; with only the others free its part stays as it is."""
    model, samples = problem(seed)
    d = model.n_features
    extra = np.arange(d) >= d // 2
    source = np.where(extra, 0.0, np.random.default_rng(seed).normal(size=d))
    fixed = L2(0.05, source, np.where(extra, 1.0, np.inf))
    found = fit(model, samples, fixed, options=FINE)
    np.testing.assert_array_equal(found.w[~extra], source[~extra])
    penalty = 0.025 * float(((found.w - source) ** 2).sum())
    risk = float(loss_values(model, samples, found.w, "bridge").mean())
    assert found.objective == pytest.approx(penalty + risk, abs=1e-9)
    assert (np.diff(found.objectives) <= 1e-9).all()
    both = fit(model, samples, L2(0.05, source), options=FINE, initial=found.w)
    assert both.objective <= found.objective + 1e-6


def test_fixed_features_stay_fixed_in_transfer() -> None:
    model, samples = chain_problem(5)
    source = np.linspace(-1, 1, model.n_features)
    metric = np.where(np.arange(model.n_features) < 3, np.inf, 1.0)
    other = Domain(*chain_problem(6))
    stacked = Stacked([Domain(model, samples), other], 0.1, 0.2, source, metric)
    found = fit(stacked, stacked.samples, stacked.regularizer, n_annotations=1)
    np.testing.assert_array_equal(stacked.weights(found.w)[:, :3], np.tile(source[:3], (2, 1)))
    assert np.isfinite(found.objective)


def test_wrong_use() -> None:
    model, samples = multiclass_problem(0)
    with pytest.raises(InputError, match="prior"):
        fit(model, samples, L2(1.0, np.zeros(4)))
    bad = np.full(9, np.nan)
    with pytest.raises(InputError, match="metric"):
        fit(model, samples, L2(1.0, metric=bad))
