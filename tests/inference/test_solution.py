"""A solution that is wrong finds out by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.errors import SolverError
from bridgetrack.inference.solve import solve
from partition_problems import problem_of

PROBLEM = problem_of([(0, 1), (0,), (1,)], 2)
SCORES = np.array([3.0, 1.0, 1.0])


def test_a_right_solution_passes() -> None:
    solution = solve(PROBLEM, SCORES)
    solution.check(PROBLEM, SCORES)
    assert solution.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chosen": np.array([True, True, False])}, "slot 0 is covered 2 times"),
        ({"chosen": np.array([False, False, True])}, "slot 0 is covered 0 times"),
        ({"value": 2.0}, "the objective is 3.0, not 2.0"),
        ({"bound": 2.0}, "the bound 2.0 is below"),
    ],
)
def test_a_wrong_one_does_not(change: dict[str, object], message: str) -> None:
    solution = replace(solve(PROBLEM, SCORES), **change)
    with pytest.raises(SolverError, match=message):
        solution.check(PROBLEM, SCORES)
