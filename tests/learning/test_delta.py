"""A fixed source and a learned delta function (004, Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, LearningOptions, fit
from models import chain_problem, loss_values, multiclass_problem


@given(
    seed=st.integers(0, 1000),
    problem=st.sampled_from([multiclass_problem, chain_problem]),
    weight=st.sampled_from([0.05, 0.5]),
)
@settings(max_examples=5, deadline=None)
def test_a_delta_function_never_does_worse_than_its_source(
    seed: int, problem: Any, weight: float
) -> None:
    """With delta = 0 the objective is the risk of the source."""
    model, samples = problem(seed)
    source = np.random.default_rng(seed).normal(size=model.n_features)
    found = fit(model, samples, L2(weight, source), options=LearningOptions(precision=1e-6))
    delta = found.w - source
    risk = float(loss_values(model, samples, found.w, "bridge").mean())
    assert found.objective == pytest.approx(weight / 2 * delta @ delta + risk, abs=1e-9)
    assert found.objective <= loss_values(model, samples, source, "bridge").mean() + 1e-9
