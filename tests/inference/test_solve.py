"""The best choice: beside one large integer program, in a child process, and within limits."""

import subprocess
import time
from dataclasses import replace

import mip
import mip.highs
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference import solve as solving
from bridgetrack.inference import solver
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits, greedy_choice
from bridgetrack.inference.solve import branch, solve, solve_steps
from bridgetrack.inference.solver import Program, solve_integer
from bridgetrack.progress import run
from partition_problems import problem_of, random_covers, random_scores, tracking_problem

# Three slots, every pair scores 1 and the single ones nothing: the relaxation takes half of
# each pair (1.5), the best whole choice is one pair and one single (1).
ODD_CYCLE = [(0, 1), (1, 2), (0, 2), (0,), (1,), (2,)]
TRIANGLE = problem_of(ODD_CYCLE, 3)
ODD_SCORES = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def odd_cycles(count, seed=0):
    """Many odd cycles side by side, each with its own scores."""
    rng = np.random.default_rng(seed)
    covers = [tuple(s + 3 * k for s in cover) for k in range(count) for cover in ODD_CYCLE]
    scores = np.tile(ODD_SCORES, count) + rng.uniform(-0.1, 0.1, len(covers))
    return problem_of(covers, 3 * count), scores


def assert_valid(problem, scores, solution):
    covered = problem.incidence[solution.chosen].sum(axis=0)
    np.testing.assert_array_equal(np.asarray(covered).ravel(), 1)
    assert solution.value == pytest.approx(float(scores[solution.chosen].sum()))
    assert solution.bound >= solution.value


def failing(*_, **__):
    raise mip.InterfacingError("Unknown error in call to HiGHS.")


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(0, 8))
def test_where_the_solver_fails_another_one_is_asked(seed, n_slots, n_wide):
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
def test_equals_one_integer_program(weights):
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


def test_no_slots():
    solution = solve(problem_of([], 0), np.zeros(0))
    assert solution.value == 0.0
    assert len(solution.chosen) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers(bad):
    scores = ODD_SCORES.copy()
    scores[4] = bad
    with pytest.raises(SolverError, match="not a finite number"):
        solve(TRIANGLE, scores)


def test_a_slot_that_nothing_covers():
    allowed = np.array([True, False, False, True, True, False])
    with pytest.raises(InfeasibleError, match="slot 2"):
        solve(TRIANGLE, ODD_SCORES, allowed)


def test_progress_rises_to_one_and_the_solution_is_returned():
    problem, scores = odd_cycles(20)
    shares: list[float] = []
    solution = run(solve_steps(problem, scores, limits=SolverLimits(batch=10)), shares.append)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert_valid(problem, scores, solution)


@pytest.mark.parametrize("limits", [SolverLimits(max_nodes=0), SolverLimits(max_seconds=0.0)])
def test_limits_leave_a_feasible_answer_with_a_true_gap(limits):
    rng = np.random.default_rng(1)
    problem, scores = tracking_problem(rng, 25, frames=3)
    free = solve(problem, scores)
    assert free.slack.any(), "the relaxation must be fractional for this test to mean anything"
    early = solve(problem, scores, limits=limits)
    assert_valid(problem, scores, early)
    assert early.value <= free.value + 1e-6
    assert early.bound >= free.value - 1e-6
    assert early.gap >= free.value - early.value - 1e-6


def test_a_solver_that_cannot_be_used(monkeypatch):
    monkeypatch.setattr(mip.highs, "has_highs", False)
    with pytest.raises(SolverError, match="highspy"):
        Program(Problem(sp.csr_matrix(np.ones((1, 1)))))


# --- branch and bound: in this process, in a child, and cut off


@pytest.mark.parametrize(("gap", "bound"), [(0.0, 1.0), (0.5, 1.5)])
def test_a_choice_that_may_be_worse_is_not_proven_best(gap, bound):
    relaxed = Program(TRIANGLE).relax(ODD_SCORES)
    limits, until = SolverLimits(large=0, gap=gap), time.monotonic() + 60.0
    chosen, found = branch(TRIANGLE, ODD_SCORES, relaxed.x, relaxed.duals, limits, until)
    assert ODD_SCORES[chosen].sum() == pytest.approx(1.0)
    assert found == pytest.approx(bound)


def test_rounding_begins_again_where_optional_slots_are_used_up():
    # Two regions that share pixels (the last slot): false, seen and then lost, or appeared.
    columns = np.array(
        [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 1],
         [0, 0, 0, 1, 1]]
    )  # fmt: skip
    rows, free = sp.csr_matrix(columns.astype(np.float64)), np.arange(5) == 4
    x = np.array([0.4, 0.4, 0.6, 0.6, 0.5, 0.5])
    choice = greedy_choice(Problem(rows, free), np.zeros(6), x, np.zeros(5))
    assert choice is not None
    np.testing.assert_array_equal((rows.T @ choice)[~free], 1)


def test_a_start_is_returned_where_the_limit_strikes_first():
    answer = solve_integer(TRIANGLE, ODD_SCORES, ODD_SCORES == 0, 0, 0.0)
    np.testing.assert_array_equal(TRIANGLE.by_slot @ answer.x, 1)
    assert answer.value >= 0.0
    assert answer.bound >= 1.0 - 1e-6


def test_no_start_and_no_time():
    problem, scores = tracking_problem(np.random.default_rng(0), 40, frames=3)
    with pytest.raises(SolverError, match="allow more") as caught:
        solve_integer(problem, scores, None, 1, 0.0)
    assert not isinstance(caught.value, InfeasibleError)


def test_the_child_process_gives_the_same_answer(monkeypatch, capfd):
    problem, scores = tracking_problem(np.random.default_rng(1), 14, frames=3)
    here = solve(problem, scores)
    calls = []
    child = solver.solve_bounded

    def counted(*args):
        calls.append(args)
        return child(*args)

    monkeypatch.setattr(solving, "_SMALL", 0)
    monkeypatch.setattr(solving, "solve_bounded", counted)
    there = solve(problem, scores)
    assert calls
    assert there.value == pytest.approx(here.value)
    assert there.gap == pytest.approx(0.0, abs=1e-6)
    assert capfd.readouterr() == ("", "")


def broken(command, **_):
    return subprocess.CompletedProcess(command, 1, b"", b"")


def overdue(command, *, timeout, **_):
    raise subprocess.TimeoutExpired(command, timeout)  # `subprocess.run` has ended the child


@pytest.mark.parametrize("child", [broken, overdue])
def test_a_child_without_an_answer_leaves_the_start(monkeypatch, child):
    monkeypatch.setattr(solving, "_SMALL", 0)
    monkeypatch.setattr(subprocess, "run", child)
    problem, scores = tracking_problem(np.random.default_rng(1), 14, frames=3)
    solution = solve(problem, scores)
    np.testing.assert_array_equal(problem.by_slot @ solution.chosen, 1)
    assert solution.bound == pytest.approx(solution.duals.sum())


def test_each_way_of_being_beaten():
    covers = [(0,), (1,), (2,), (0, 1), (0, 1), (1, 2), (0, 1, 2), (0, 2)]
    scores = np.array([1.0, 1.0, 1.0, 2.5, 2.4, 1.9, 3.4, 2.0])
    kept = problem_of(covers, 3).undominated(scores, np.ones(8, dtype=bool))
    # 4: same slots as 3; 5 and 7: no better than single ones; 6: less than 3 and 2 together
    np.testing.assert_array_equal(np.flatnonzero(kept), [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chosen": np.array([True, True, False])}, "slot 0 is covered 2 times"),
        ({"chosen": np.array([False, False, True])}, "slot 0 is covered 0 times"),
        ({"value": 2.0}, "the objective is 3.0, not 2.0"),
        ({"bound": 2.0}, "the bound 2.0 is below"),
    ],
)
def test_a_solution_that_is_wrong_finds_out(change, message):
    problem, scores = problem_of([(0, 1), (0,), (1,)], 2), np.array([3.0, 1.0, 1.0])
    solution = replace(solve(problem, scores), **change)
    with pytest.raises(SolverError, match=message):
        solution.check(problem, scores)
