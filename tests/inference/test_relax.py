"""Relaxations: few columns of a large component are enough, and old optima are recognised."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.arrays import Array
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits, guessed_prices, still_optimal
from bridgetrack.inference.solve import solve
from bridgetrack.inference.solver import Program
from partition_problems import (
    brute_force,
    exact_margin,
    problem_of,
    random_covers,
    random_scores,
    tracking_problem,
)

ALWAYS = SolverLimits(large=0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 25))
def test_the_best_choice_its_prices_and_its_margins(seed: int, n_slots: int, n_wide: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, n_wide), n_slots)
    scores = random_scores(rng, problem.n_columns)
    tolerance = 1e-5 * max(1.0, np.abs(scores).max())
    guess = guessed_prices(problem, scores)
    assert (problem.incidence @ guess >= scores - tolerance).all()
    found = solve(problem, scores, limits=ALWAYS)
    assert found.value == pytest.approx(brute_force(problem, scores), abs=tolerance)
    assert found.gap == pytest.approx(0.0, abs=tolerance)
    assert (problem.incidence @ found.duals >= scores - tolerance).all()
    bounds = margin_bounds(problem, scores, found)
    for column in np.flatnonzero(found.chosen).tolist():
        rest = np.ones(problem.n_columns, dtype=bool)
        rest[column] = False
        assert bounds[column] <= found.value - brute_force(problem, scores, rest) + tolerance


def chained_triangles(count: int) -> tuple[Problem, Array]:
    """Triples of slots worth 1.5 relaxed and 1.4 in truth, and certain pairs, tied by chance."""
    covers, scores = [], []
    for k in range(count):
        a, b, c, d, e = range(5 * k, 5 * k + 5)
        covers += [(a, b), (b, c), (a, c), (d, e), (c, d), (a,), (b,), (c,), (d,), (e,)]
        scores += [1.0, 1.0, 1.0, 1.0, -0.5, -1.0, -1.0, 0.4, -1.0, -1.0]
        if k:
            covers.append((a - 1, a))
            scores.append(-0.5)
    return problem_of(covers, 5 * count), np.asarray(scores)


@pytest.mark.parametrize("optional", [False, True])
def test_what_only_poor_columns_tie_is_apart(optional: bool) -> None:
    problem, scores = chained_triangles(8)
    if optional:
        problem = Problem(problem.incidence, np.arange(problem.n_slots) % 5 == 2)
    whole, generated = solve(problem, scores), solve(problem, scores, limits=ALWAYS)
    assert generated.value == pytest.approx(whole.value)
    assert generated.value == pytest.approx(8 * 2.4)
    assert np.bincount(whole.component).max() == 40
    assert np.bincount(generated.component).max() == 3
    # How far the relaxation lies above the choice is told part by part, and bounds are nearer.
    np.testing.assert_allclose(whole.slack, 0.8)
    np.testing.assert_allclose(
        generated.slack.reshape(8, 5), [[0.1, 0.1, 0.1, 0, 0]] * 8, atol=1e-9
    )
    bounds = [margin_bounds(problem, scores, found) for found in (whole, generated)]
    assert np.nansum(bounds[0]) < np.nansum(bounds[1])
    for column in np.flatnonzero(generated.chosen).tolist():
        exact = exact_margin(problem, scores, whole, column)
        assert bounds[1][column] <= exact + 1e-6
        assert exact_margin(problem, scores, generated, column) == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("large", [0, 1_000_000])
def test_a_large_program_without_time_gives_a_choice_and_a_true_bound(large: int) -> None:
    problem, scores = chained_triangles(8)
    scores = scores + np.random.default_rng(0).normal(0, 0.5, len(scores))
    best = solve(problem, scores)
    limits = SolverLimits(max_seconds=0.0, batch=1, large=large)
    early = solve(problem, scores, limits=limits)
    early.check(problem, scores)
    assert early.value < best.value < early.bound
    assert (problem.incidence @ early.duals >= scores - 1e-9).all()
    of_each = np.unique(early.component, return_index=True)[1]
    assert early.slack[of_each].sum() == pytest.approx(early.gap)


@given(seed=st.integers(0, 10_000), step=st.sampled_from([0.0, 1e-3, 0.1, 1.0]))
@settings(deadline=None, max_examples=40)
def test_a_kept_choice_is_an_optimum(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    problem, scores = tracking_problem(rng, 6, frames=3)
    rows = sp.csr_matrix(problem.incidence.T.tocsr())
    old = Program(rows).relax(scores)
    moved = scores + step * rng.normal(size=len(scores))
    if still_optimal(problem.incidence, moved, old.x, old.duals):
        assert moved @ old.x >= moved @ Program(rows).relax(moved).x - 1e-6


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
