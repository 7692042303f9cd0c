"""Margins: bounds stay below the exact ones, the exact ones equal enumeration."""

import numpy as np
import pytest

from bridgetrack.errors import SolverError
from bridgetrack.inference.margins import (
    exact_margin,
    margin_bounds,
    reduced_costs,
    smallest_margins,
)
from bridgetrack.inference.relax import SolverLimits
from bridgetrack.inference.solve import solve
from partition_problems import brute_force, problem_of, tracking_problem


def test_a_dominated_column_that_reaches_into_a_fractional_part():
    """The bound must leave room for what the other part can win back.

    (0, 1) stands alone; 2, 3, 4 are an odd cycle whose single 4 has a price above its score.
    Without (0, 1) the triple (0, 1, 4) takes over, which is dropped as long as (0, 1) and (4)
    together beat it, so that no component knows of it.
    """
    covers = [(0, 1), (0,), (1,), (2, 3), (3, 4), (2, 4), (2,), (3,), (4,), (0, 1, 4)]
    scores = np.array([1.0, -5.0, -5.0, 1.0, 0.9, 0.9, -5.0, -5.0, 0.0, 0.99])
    problem = problem_of(covers, 5)
    solution = solve(problem, scores)
    assert np.flatnonzero(solution.chosen).tolist() == [0, 3, 8]
    assert reduced_costs(problem, scores, solution)[8] > 0.3
    true = solution.value - brute_force(problem, scores, np.arange(10) != 0)
    assert true == pytest.approx(0.01)
    assert margin_bounds(problem, scores, solution)[0] <= true + 1e-6
    assert exact_margin(problem, scores, solution, 0) == pytest.approx(true)


def test_bounds_after_a_limit_stay_below_the_drop():
    problem, scores = tracking_problem(np.random.default_rng(2), 14, frames=3)
    solution = solve(problem, scores, limits=SolverLimits(max_nodes=0))
    assert solution.gap > 0
    bounds = margin_bounds(problem, scores, solution)
    for column in np.flatnonzero(solution.chosen)[:6].tolist():
        again = solve(problem, scores, np.arange(problem.n_columns) != column)
        assert bounds[column] <= max(solution.value - again.value, 0.0) + solution.gap + 1e-5


def test_margins_are_for_chosen_columns():
    problem = problem_of([(0,), (0,)], 1)
    scores = np.array([1.0, 0.0])
    solution = solve(problem, scores)
    with pytest.raises(SolverError, match="chosen events only"):
        exact_margin(problem, scores, solution, 1)


def test_the_smallest_margins_are_the_smallest():
    problem, scores = tracking_problem(np.random.default_rng(0), 12, frames=3, radius=0.9)
    solution = solve(problem, scores)
    bounds = margin_bounds(problem, scores, solution)
    chosen = np.flatnonzero(solution.chosen & np.isfinite(bounds))
    every = np.array([exact_margin(problem, scores, solution, c) for c in chosen.tolist()])
    columns, margins, exact = smallest_margins(problem, scores, solution, bounds, 5)
    assert exact
    by_bounds = every[np.argsort(bounds[chosen], kind="stable")][:5]
    assert by_bounds.max() > np.sort(every)[4] + 0.1, "bounds alone would mislead"
    np.testing.assert_allclose(margins, np.sort(every)[:5], atol=1e-6)
    margin = dict(zip(chosen.tolist(), every.tolist(), strict=True))
    np.testing.assert_allclose([margin[c] for c in columns], margins, atol=1e-6)


def test_where_the_relaxation_is_fractional_margins_are_at_least_so_large(monkeypatch):
    monkeypatch.setattr("bridgetrack.inference.margins._FAR", -1.0)
    problem, scores = tracking_problem(np.random.default_rng(4), 20, frames=3)
    solution = solve(problem, scores)
    bounds = margin_bounds(problem, scores, solution)
    columns, margins, exact = smallest_margins(problem, scores, solution, bounds, 5)
    assert not exact
    assert len(columns) == 5
    for column, margin in zip(columns.tolist(), margins.tolist(), strict=True):
        assert margin <= exact_margin(problem, scores, solution, column) + 1e-6
