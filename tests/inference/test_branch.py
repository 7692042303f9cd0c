"""Branch and bound: in this process, in a child, and cut off."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from bridgetrack.errors import InfeasibleError, SolverError
from bridgetrack.inference import solve as solving
from bridgetrack.inference import solver
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits, greedy_choice
from bridgetrack.inference.solve import branch, solve
from bridgetrack.inference.solver import Program, solve_integer
from partition_problems import problem_of, tracking_problem

TRIANGLE = problem_of([(0, 1), (1, 2), (0, 2), (0,), (1,), (2,)], 3)
SCORES = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
START = np.array([False, False, False, True, True, True])


@pytest.mark.parametrize(("gap", "bound"), [(0.0, 1.0), (0.5, 1.5)])
def test_a_choice_that_may_be_worse_is_not_proven_best(gap: float, bound: float) -> None:
    relaxed = Program(TRIANGLE).relax(SCORES)
    limits, until = SolverLimits(large=0, gap=gap), time.monotonic() + 60.0
    chosen, found = branch(TRIANGLE, SCORES, relaxed.x, relaxed.duals, limits, until)
    assert SCORES[chosen].sum() == pytest.approx(1.0)
    assert found == pytest.approx(bound)


def test_rounding_begins_again_where_optional_slots_are_used_up() -> None:
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


def test_a_start_is_returned_where_the_limit_strikes_first() -> None:
    answer = solve_integer(TRIANGLE, SCORES, START, 0, 0.0)
    np.testing.assert_array_equal(TRIANGLE.by_slot @ answer.x, 1)
    assert answer.value >= 0.0
    assert answer.bound >= 1.0 - 1e-6


def test_no_start_and_no_time() -> None:
    problem, scores = tracking_problem(np.random.default_rng(0), 40, frames=3)
    with pytest.raises(SolverError, match="allow more") as caught:
        solve_integer(problem, scores, None, 1, 0.0)
    assert not isinstance(caught.value, InfeasibleError)


def test_the_child_process_gives_the_same_answer(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    problem, scores = tracking_problem(np.random.default_rng(1), 14, frames=3)
    here = solve(problem, scores)
    calls = []
    child = solver.solve_bounded

    def counted(*args: object) -> object:
        calls.append(args)
        return child(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(solving, "_SMALL", 0)
    monkeypatch.setattr(solving, "solve_bounded", counted)
    there = solve(problem, scores)
    assert calls
    assert there.value == pytest.approx(here.value)
    assert there.gap == pytest.approx(0.0, abs=1e-6)
    assert capfd.readouterr() == ("", "")


def broken(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.CompletedProcess(command, 1, b"", b"")


def overdue(command: list[str], *, timeout: float, **_: object) -> None:
    raise subprocess.TimeoutExpired(command, timeout)  # `subprocess.run` has ended the child


@pytest.mark.parametrize("child", [broken, overdue])
def test_a_child_without_an_answer_leaves_the_start(
    monkeypatch: pytest.MonkeyPatch, child: Callable[..., object]
) -> None:
    monkeypatch.setattr(solving, "_SMALL", 0)
    monkeypatch.setattr(subprocess, "run", child)
    problem, scores = tracking_problem(np.random.default_rng(1), 14, frames=3)
    solution = solve(problem, scores)
    np.testing.assert_array_equal(problem.by_slot @ solution.chosen, 1)
    assert solution.bound == pytest.approx(solution.duals.sum())
