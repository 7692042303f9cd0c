"""An old optimum is only called optimal when it is."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.inference.resolve import still_optimal
from bridgetrack.inference.solver import Program
from partition_problems import tracking_problem


@given(seed=st.integers(0, 10_000), step=st.sampled_from([0.0, 1e-3, 0.1, 1.0]))
@settings(deadline=None, max_examples=40)
def test_a_kept_choice_is_an_optimum(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    problem, scores = tracking_problem(rng, 6, frames=3)
    rows = sp.csr_matrix(problem.incidence.T.tocsr())
    old = Program(rows).relax(scores)
    moved = scores + step * rng.normal(size=len(scores))
    if still_optimal(problem.incidence, moved, old.x, old.duals):
        assert moved @ old.x >= Program(rows).relax(moved).value - 1e-6


def test_the_same_scores_keep_a_whole_optimum() -> None:
    problem, scores = tracking_problem(np.random.default_rng(3), 4, frames=2)
    scores[problem.width == 2] += 10.0 * np.arange((problem.width == 2).sum())
    old = Program(sp.csr_matrix(problem.incidence.T.tocsr())).relax(scores)
    assert np.allclose(old.x, np.rint(old.x))
    assert still_optimal(problem.incidence, scores, old.x, old.duals)
    worse = scores.copy()
    worse[old.x > 0.5] -= 100.0
    assert not still_optimal(problem.incidence, worse, old.x, old.duals)


def test_a_column_shares_among_its_slots_what_they_are_short_of() -> None:
    """One column covers both slots; what covers them one by one scores more, or less, in all."""
    problem, x, duals = sp.csr_matrix([[1.0, 1], [1, 0], [0, 1]]), np.array([1.0, 0, 0]), np.ones(2)
    for each, optimal in ((1.4, True), (1.6, False)):
        assert still_optimal(problem, np.array([3.0, each, each]), x, duals) == optimal
