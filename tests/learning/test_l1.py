"""The linear master problem and L1 training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import SolverError
from bridgetrack.learning import L1, LearningOptions, fit
from bridgetrack.learning.master_qp import solve_master
from models import chain_problem


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(9, 4)), np.zeros(4)]), np.append(rng.random(9), 0.0)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([1e-3, 0.1, 1.0, 1e3]))
@settings(max_examples=40, deadline=None)
def test_dual_value_equals_primal(seed: int, weight: float) -> None:
    A, b = rows(seed)
    rng = np.random.default_rng(seed)
    wanted = L1(weight, rng.normal(size=4), rng.uniform(0.5, 2, 4))
    found = solve_master(A, b, np.zeros(len(b), dtype=int), wanted)
    size = 1 + abs(found.primal)
    assert found.primal == pytest.approx(wanted.value(found.w) + (A @ found.w + b).max())
    assert abs(found.gap) < 1e-6 * size


def test_unbounded_without_the_reward_bound() -> None:
    A, b = rows(0)
    with pytest.raises(SolverError, match="unbounded"):
        solve_master(A[:1], b[:1], np.zeros(1, dtype=int), L1(1e-3))


def test_weights_are_sparse_and_the_gap_is_true() -> None:
    model, samples = chain_problem(4, n=15)
    options = LearningOptions(precision=1e-4)
    loose = fit(model, samples, L1(0.01), options=options)
    tight = fit(model, samples, L1(0.3), options=options)
    assert loose.converged and tight.converged
    assert -1e-9 < tight.gap <= 1e-4
    assert np.sum(tight.w == 0) > np.sum(loose.w == 0)
    assert 0 < np.sum(tight.w != 0) < model.n_features
