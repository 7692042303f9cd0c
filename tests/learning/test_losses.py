"""The six losses: which are equal, and what training really computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.learning import LOSSES, Sample
from bridgetrack.learning.options import find_loss
from bridgetrack.learning.risk import Risk
from models import chain_problem, loss_values, multiclass_problem

PROBLEMS = {"chain": lambda seed: chain_problem(seed, n=3), "multiclass": multiclass_problem}
problems = st.sampled_from(sorted(PROBLEMS))


@given(problem=problems, seed=st.integers(0, 10_000), scale=st.sampled_from([0.0, 0.1, 1.0, 10.0]))
@settings(max_examples=40, deadline=None)
def test_six_losses_are_three_functions(problem: str, seed: int, scale: float) -> None:
    model, samples = PROBLEMS[problem](seed)
    w = np.random.default_rng(seed).normal(size=model.n_features) * scale
    value = {name: loss_values(model, samples, w, name) for name in LOSSES}
    np.testing.assert_allclose(value["hinge"], value["bridge"], atol=1e-9)
    np.testing.assert_allclose(value["ramp"], value["max"], atol=1e-9)
    np.testing.assert_allclose(value["ramp-delta"], value["max-delta"], atol=1e-9)
    assert (value["ramp"] <= value["hinge"] + 1e-9).all()


@given(problem=problems, seed=st.integers(0, 10_000), name=st.sampled_from(sorted(LOSSES)))
@settings(max_examples=40, deadline=None)
def test_penalty_minus_reward_is_the_mean_loss(problem: str, seed: int, name: str) -> None:
    """Plain loss-augmented inference suffices, also for the losses that ask for Y°."""
    model, samples = PROBLEMS[problem](seed)
    w = np.random.default_rng(seed).normal(size=model.n_features)
    risk = Risk(model, samples, None, LOSSES[name])
    penalty = risk.penalty(w)
    mean = loss_values(model, samples, w, name).mean()
    assert penalty.values(w, 1).mean() + risk.tangent(w).at(w) == pytest.approx(mean)
    np.testing.assert_allclose(penalty.bounds, penalty.values(w, 1))  # inference is exact here


def test_a_sample_without_wrong_outputs_has_no_loss() -> None:
    model, samples = chain_problem(1, n=1)
    free = Sample(samples[0].x, (-1,) * 4)
    w = np.random.default_rng(1).normal(size=model.n_features)
    for name in LOSSES:
        assert loss_values(model, [free], w, name) == pytest.approx(0)


def test_unknown_loss_is_named() -> None:
    with pytest.raises(InputError, match=r"no loss 'brigde'.*bridge"):
        find_loss("brigde")
