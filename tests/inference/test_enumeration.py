"""Choices and margins against enumeration, also where slots may stay free.

A free slot is the same as a column of score 0 that covers it alone.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.margins import best_without, exact_margin, margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import resolve, solve
from partition_problems import brute_force, problem_of, random_covers, random_scores


def optional_problem(
    rng: np.random.Generator, n_slots: int, n_wide: int, share: float = 0.5
) -> Problem:
    """Random covers of up to five slots; a share of the slots may stay free."""
    covers = random_covers(rng, n_slots, n_wide)
    for _ in range(n_wide // 2):
        k = min(int(rng.integers(3, 6)), n_slots)
        covers.append(tuple(sorted(rng.choice(n_slots, k, replace=False).tolist())))
    return Problem(problem_of(covers, n_slots).incidence, rng.random(n_slots) < share)


def spelled_out(problem: Problem) -> Problem:
    """The same with a column for every optional slot that leaves it free."""
    alone = sp.identity(problem.n_slots, format="csr")[~problem.required]
    return Problem(sp.csr_matrix(sp.vstack([problem.incidence, alone])))


def padded(problem: Problem, values: np.ndarray, fill: float | bool) -> np.ndarray:
    return np.append(values, np.full(int((~problem.required).sum()), fill))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.integers(0, 20),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
)
@example(1197225, 8, 2, False, 0.5)  # the price of an optional slot must not become negative
def test_choice_and_margins_equal_enumeration(
    seed: int, n_slots: int, n_wide: int, pinned: bool, share: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = optional_problem(rng, n_slots, n_wide, share)
    full, scores = spelled_out(problem), random_scores(rng, problem.n_columns)
    allowed = np.ones(problem.n_columns, dtype=bool)
    if pinned:
        allowed = rng.random(problem.n_columns) < 0.8

    def best(usable: np.ndarray) -> float:
        return brute_force(full, padded(problem, scores, 0.0), padded(problem, usable, True))

    truth = best(allowed)
    if truth == float("-inf"):
        with pytest.raises(InfeasibleError):
            solve(problem, scores, allowed)
        return
    solution = solve(problem, scores, allowed)
    assert not solution.chosen[~allowed].any()
    tolerance = 1e-5 * max(1.0, np.abs(scores).max())
    assert solution.value == pytest.approx(truth, abs=tolerance)
    assert solution.bound == pytest.approx(truth, abs=tolerance)
    assert solution.duals[~problem.required].min(initial=0.0) >= -tolerance
    assert (problem.incidence @ solution.duals - scores)[allowed].min(initial=0.0) >= -tolerance
    bounds = margin_bounds(problem, scores, solution, allowed)
    np.testing.assert_array_equal(np.isnan(bounds), ~solution.chosen)
    for column in np.flatnonzero(solution.chosen).tolist():
        rest = allowed.copy()
        rest[column] = False
        true = solution.value - best(rest)
        assert bounds[column] <= true + tolerance
        margin = exact_margin(problem, scores, solution, column, allowed)
        assert margin == pytest.approx(max(true, 0.0), abs=tolerance)
        if np.isfinite(margin):
            case = problem, scores, solution, column, [column], allowed
            cost, added, dropped = best_without(*case)
            assert cost == margin
            assert column in dropped
            assert rest[added].all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(2, 20))
def test_solving_again_after_columns_were_forbidden(seed: int, n_slots: int, n_wide: int) -> None:
    rng = np.random.default_rng(seed)
    problem = optional_problem(rng, n_slots, n_wide)
    scores = random_scores(rng, problem.n_columns)
    before = solve(problem, scores)
    allowed = rng.random(problem.n_columns) < 0.8
    truth = brute_force(
        spelled_out(problem), padded(problem, scores, 0.0), padded(problem, allowed, True)
    )
    if truth == float("-inf"):
        return
    after, _ = resolve(problem, scores, allowed, before.chosen.copy(), before)
    tolerance = 1e-5 * max(1.0, np.abs(scores).max())
    assert after.value == pytest.approx(truth, abs=tolerance)
