"""Choices, prices and margins against enumeration, also where slots may stay free.

A free slot is the same as a column of score 0 that covers it alone.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.margins import best_without, exact_margin, margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits, guessed_prices
from bridgetrack.inference.solve import resolve, solve
from partition_problems import all_choices, problem_of, random_covers, random_scores

SEED = st.integers(0, 2**32 - 1)
WHOLE, GENERATED = SolverLimits(), SolverLimits(large=0)


class Case:
    """A random problem of up to five slots a column, some of which may stay free."""

    def __init__(self, seed, n_slots, n_wide, share):
        self.rng = rng = np.random.default_rng(seed)
        covers = random_covers(rng, n_slots, n_wide)
        for _ in range(n_wide // 2):
            k = min(int(rng.integers(3, 6)), n_slots)
            covers.append(tuple(sorted(rng.choice(n_slots, k, replace=False).tolist())))
        free = rng.random(n_slots) < share
        self.problem = Problem(problem_of(covers, n_slots).incidence, free)
        self.scores = random_scores(rng, len(covers))
        self.tolerance = 1e-5 * max(1.0, np.abs(self.scores).max())
        alone = sp.identity(n_slots, format="csr")[free]
        spelled_out = Problem(sp.csr_matrix(sp.vstack([self.problem.incidence, alone])))
        found = all_choices(spelled_out)
        self.choices = np.zeros((len(found), spelled_out.n_columns), dtype=bool)
        for row, columns in zip(self.choices, found, strict=True):
            row[columns] = True
        self.choices = self.choices[:, : len(covers)]

    def best(self, allowed):
        """The best value, by enumeration; -inf where there is no choice."""
        usable = self.choices[~self.choices[:, ~allowed].any(axis=1)]
        return float((usable @ self.scores).max(initial=-np.inf))


@settings(max_examples=40)
@given(
    SEED,
    st.integers(1, 9),
    st.integers(0, 20),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([WHOLE, GENERATED]),
)
# the price of an optional slot must not become negative
@example(1197225, 8, 2, False, 0.5, WHOLE)
def test_choice_prices_and_margins_equal_enumeration(seed, n_slots, n_wide, pinned, share, limits):
    case = Case(seed, n_slots, n_wide, share)
    problem, scores, tolerance = case.problem, case.scores, case.tolerance
    allowed = case.rng.random(problem.n_columns) < (0.8 if pinned else 1.0)
    truth = case.best(allowed)
    if truth == -np.inf:
        with pytest.raises(InfeasibleError):
            solve(problem, scores, allowed, limits)
        return
    solution = solve(problem, scores, allowed, limits)
    assert not solution.chosen[~allowed].any()
    assert solution.value == pytest.approx(truth, abs=tolerance)
    assert solution.bound == pytest.approx(truth, abs=tolerance)
    assert solution.duals[~problem.required].min(initial=0.0) >= -tolerance
    assert (problem.incidence @ solution.duals - scores)[allowed].min(initial=0.0) >= -tolerance
    assert (problem.incidence @ guessed_prices(problem, scores) >= scores - tolerance).all()
    bounds = margin_bounds(problem, scores, solution, allowed)
    np.testing.assert_array_equal(np.isnan(bounds), ~solution.chosen)
    for column in np.flatnonzero(solution.chosen).tolist():
        rest = allowed & (np.arange(problem.n_columns) != column)
        true = solution.value - case.best(rest)
        assert bounds[column] <= true + tolerance
        margin = exact_margin(problem, scores, solution, column, allowed)
        assert margin == pytest.approx(max(true, 0.0), abs=tolerance)
        if np.isfinite(margin):
            given_ = problem, scores, solution, column, [column], allowed
            cost, added, dropped = best_without(*given_)
            assert cost == margin
            assert column in dropped and rest[added].all()


@settings(max_examples=15)
@given(SEED, st.integers(2, 9), st.integers(2, 20))
def test_solving_again_after_columns_were_forbidden(seed, n_slots, n_wide):
    case = Case(seed, n_slots, n_wide, 0.5)
    before = solve(case.problem, case.scores)
    allowed = case.rng.random(case.problem.n_columns) < 0.8
    truth = case.best(allowed)
    if truth > -np.inf:
        after, _ = resolve(case.problem, case.scores, allowed, before.chosen.copy(), before)
        assert after.value == pytest.approx(truth, abs=case.tolerance)
