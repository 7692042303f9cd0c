"""The six losses: what training computes is their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.learning import LOSSES
from bridgetrack.learning.options import find_loss
from bridgetrack.learning.risk import Risk
from models import chain_problem, loss_values, multiclass_problem

PROBLEMS = {"chain": lambda seed: chain_problem(seed, n=3), "multiclass": multiclass_problem}
problems = st.sampled_from(sorted(PROBLEMS))


@given(problem=problems, seed=st.integers(0, 10_000), name=st.sampled_from(sorted(LOSSES)))
@settings(max_examples=40, deadline=None)
def test_penalty_minus_reward_is_the_mean_loss(problem: str, seed: int, name: str) -> None:
    """Plain loss-augmented inference suffices, also for those that ask for Y°: six are three."""
    model, samples = PROBLEMS[problem](seed)
    w = np.random.default_rng(seed).normal(size=model.n_features)
    risk = Risk(model, samples, None, LOSSES[name])
    penalty = risk.penalty(w)
    mean = loss_values(model, samples, w, name).mean()
    assert penalty.values(w, 1).mean() + risk.tangent(w).at(w) == pytest.approx(mean)
    np.testing.assert_allclose(penalty.bounds, penalty.values(w, 1))  # inference is exact here


def test_unknown_loss_is_named() -> None:
    with pytest.raises(InputError, match=r"no loss 'brigde'.*bridge"):
        find_loss("brigde")
