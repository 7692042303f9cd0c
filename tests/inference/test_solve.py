"""The best choice: against enumeration, against one large integer program, and within limits."""

from __future__ import annotations

from dataclasses import replace

import mip
import mip.highs
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.relax import SolverLimits
from bridgetrack.inference.solve import solve, solve_steps
from bridgetrack.inference.solver import Program, solve_integer
from bridgetrack.progress import run
from partition_problems import (
    problem_of,
    random_covers,
    random_scores,
    tracking_problem,
)

# Three slots, every pair scores 1 and the single ones nothing: the relaxation takes half of
# each pair (1.5), the best whole choice is one pair and one single (1).
ODD_CYCLE = [(0, 1), (1, 2), (0, 2), (0,), (1,), (2,)]
ODD_SCORES = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def odd_cycles(count: int, seed: int = 0) -> tuple[Problem, np.ndarray]:
    """Many odd cycles side by side, each with its own scores."""
    rng = np.random.default_rng(seed)
    covers = [tuple(s + 3 * k for s in cover) for k in range(count) for cover in ODD_CYCLE]
    scores = np.tile(ODD_SCORES, count) + rng.uniform(-0.1, 0.1, len(covers))
    return problem_of(covers, 3 * count), scores


def assert_valid(problem: Problem, scores: np.ndarray, solution: Solution) -> None:
    covered = problem.incidence[solution.chosen].sum(axis=0)
    np.testing.assert_array_equal(np.asarray(covered).ravel(), 1)
    assert solution.value == pytest.approx(float(scores[solution.chosen].sum()))
    assert solution.bound >= solution.value


def failing(*_: object, **__: object) -> None:
    raise mip.InterfacingError("Unknown error in call to HiGHS.")


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(0, 8))
def test_where_the_solver_fails_another_one_is_asked(seed: int, n_slots: int, n_wide: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, n_wide), n_slots)
    scores, free = random_scores(rng, problem.n_columns), rng.random(n_slots) < 0.3
    rows, problem = problem.by_slot, replace(problem, free=free)
    expected = solve_integer(problem, scores, None, 20_000, 10.0)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(mip.Model, "optimize", failing)
        found = solve_integer(problem, scores, None, 20_000, 10.0)
    assert found.value == pytest.approx(expected.value, abs=1e-6)
    assert ((rows @ found.x)[~free] == 1).all()
    assert ((rows @ found.x)[free] <= 1).all()


@pytest.mark.parametrize("weights", ["poor", "zero", "integers"])
def test_equals_one_integer_program(weights: str) -> None:
    rng = np.random.default_rng(0)
    problem, scores = tracking_problem(rng, 14, frames=3)
    if weights == "zero":  # all events tie, the Hamming term alone decides
        scores = (rng.random(problem.n_columns) < 0.02).astype(np.float64)
    elif weights == "integers":
        scores = np.rint(scores)
    whole = solve_integer(problem, scores, None, 10**6, 60.0)
    assert whole.bound == pytest.approx(whole.value, abs=1e-6)
    solution = solve(problem, scores)
    assert_valid(problem, scores, solution)
    assert solution.value == pytest.approx(whole.value, abs=1e-5)
    assert solution.gap == pytest.approx(0.0, abs=1e-5)


def test_no_slots() -> None:
    solution = solve(problem_of([], 0), np.zeros(0))
    assert solution.value == 0.0
    assert len(solution.chosen) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers(bad: float) -> None:
    scores = ODD_SCORES.copy()
    scores[4] = bad
    with pytest.raises(SolverError, match="not a finite number"):
        solve(problem_of(ODD_CYCLE, 3), scores)


def test_a_slot_that_nothing_covers() -> None:
    allowed = np.array([True, False, False, True, True, False])
    with pytest.raises(InfeasibleError, match="slot 2"):
        solve(problem_of(ODD_CYCLE, 3), ODD_SCORES, allowed)


def test_progress_rises_to_one_and_the_solution_is_returned() -> None:
    problem, scores = odd_cycles(20)
    shares: list[float] = []
    solution = run(solve_steps(problem, scores, limits=SolverLimits(batch=10)), shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert_valid(problem, scores, solution)


@pytest.mark.parametrize("limits", [SolverLimits(max_nodes=0), SolverLimits(max_seconds=0.0)])
def test_limits_leave_a_feasible_answer_with_a_true_gap(limits: SolverLimits) -> None:
    rng = np.random.default_rng(1)
    problem, scores = tracking_problem(rng, 25, frames=3)
    free = solve(problem, scores)
    assert free.slack.any(), "the relaxation must be fractional for this test to mean anything"
    early = solve(problem, scores, limits=limits)
    assert_valid(problem, scores, early)
    assert early.value <= free.value + 1e-6
    assert early.bound >= free.value - 1e-6
    assert early.gap >= free.value - early.value - 1e-6


def test_a_solver_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mip.highs, "has_highs", False)
    with pytest.raises(SolverError, match="highspy"):
        Program(Problem(sp.csr_matrix(np.ones((1, 1)))))
