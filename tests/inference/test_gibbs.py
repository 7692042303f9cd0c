"""Entropy of the choices of a set-partitioning problem, beside enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.gibbs import gibbs
from bridgetrack.inference.problem import Problem
from partition_problems import problem_of, random_covers, random_scores, tracking_problem


def all_choices(problem: Problem, allowed: np.ndarray) -> list[np.ndarray]:
    """Every choice, by trying all columns of the first open slot."""
    covers = [set(row[row < problem.n_slots].tolist()) for row in problem.slots_of(slice(None))]
    found: list[np.ndarray] = []

    def extend(picked: list[int], still: set[int]) -> None:
        if not still:
            found.append(np.array(picked, dtype=int))
            return
        first = min(still)
        for h, cover in enumerate(covers):
            if allowed[h] and first in cover and cover <= still:
                extend([*picked, h], still - cover)

    extend([], set(range(problem.n_slots)))
    return found


@given(seed=st.integers(0, 100_000))
@example(seed=153)  # a light beginning whose ends are the best
@settings(max_examples=20, deadline=None)
def test_equals_enumeration(seed: int) -> None:
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
    assert found.exact
    assert found.log_z == pytest.approx(log_z, abs=1e-9)
    assert found.entropy == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-8)


@given(seed=st.integers(0, 1000), sharp=st.sampled_from([0.0, 0.3, 1.0, 3.0]))
@settings(max_examples=12, deadline=None)
def test_sampled_states_come_close(seed: int, sharp: float) -> None:
    """The documented error of the estimate, on problems too large to list but not to sum."""
    problem, scores = tracking_problem(np.random.default_rng(seed), 6)
    exact = gibbs(problem, sharp * scores, limit=10**6)
    estimate = gibbs(problem, sharp * scores, limit=100)
    assert exact.exact
    assert abs(estimate.entropy - exact.entropy) <= 0.2 * exact.entropy + 0.05
    assert abs(estimate.log_z - exact.log_z) <= 0.2 * exact.entropy + 0.05
