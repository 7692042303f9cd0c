"""Entropy of the choices of a set-partitioning problem, beside enumeration."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.gibbs import gibbs
from bridgetrack.inference.problem import Problem
from partition_problems import (
    all_choices,
    problem_of,
    random_covers,
    random_scores,
    tracking_problem,
)


@given(seed=st.integers(0, 100_000))
@example(seed=153)  # a light beginning whose ends are the best
@settings(max_examples=20)
def test_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    n_slots = int(rng.integers(1, 9))
    problem = problem_of(random_covers(rng, n_slots, 12), n_slots)
    scores = np.clip(random_scores(rng, problem.n_columns), -20, 20)
    allowed = rng.random(problem.n_columns) < 0.9
    choices = all_choices(problem, allowed)
    if not choices:
        with pytest.raises(InfeasibleError):
            gibbs(Problem(problem.incidence[allowed]), scores[allowed])
        return
    values = np.array([scores[c].sum() for c in choices])
    log_z = values.max() + np.log(np.exp(values - values.max()).sum())
    p = np.exp(values - log_z)
    found = gibbs(Problem(problem.incidence[allowed]), scores[allowed])
    assert found[0] == pytest.approx(log_z, abs=1e-9)
    assert found[1] == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-8)


@given(seed=st.integers(0, 1000), sharp=st.sampled_from([0.0, 0.3, 1.0, 3.0]))
@settings(max_examples=12)
def test_sampled_states_come_close(seed, sharp):
    """The documented error of the estimate, on problems too large to list but not to sum."""
    problem, scores = tracking_problem(np.random.default_rng(seed), 6)
    exact = gibbs(problem, sharp * scores, limit=10**6)
    estimate = gibbs(problem, sharp * scores, limit=100)
    assert abs(estimate[1] - exact[1]) <= 0.2 * exact[1] + 0.05
    assert abs(estimate[0] - exact[0]) <= 0.2 * exact[1] + 0.05
