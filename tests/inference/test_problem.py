"""Columns that others beat are dropped, and never one that the best choice needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import SolverError
from bridgetrack.inference.solve import solve
from partition_problems import brute_force, problem_of, random_covers, random_scores


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(0, 30))
def test_the_optimum_survives(seed: int, n_slots: int, n_wide: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, n_wide), n_slots)
    scores = random_scores(rng, problem.n_columns)
    allowed = rng.random(problem.n_columns) < rng.choice([0.5, 1.0])
    kept = problem.undominated(scores, allowed)
    assert not kept[~allowed].any()
    assert brute_force(problem, scores, kept) == pytest.approx(
        brute_force(problem, scores, allowed), abs=1e-9
    )


def test_each_way_of_being_beaten() -> None:
    covers = [(0,), (1,), (2,), (0, 1), (0, 1), (1, 2), (0, 1, 2), (0, 2)]
    scores = np.array([1.0, 1.0, 1.0, 2.5, 2.4, 1.9, 3.4, 2.0])
    kept = problem_of(covers, 3).undominated(scores, np.ones(8, dtype=bool))
    # 4: same slots as 3; 5 and 7: no better than single ones; 6: less than 3 and 2 together
    np.testing.assert_array_equal(np.flatnonzero(kept), [0, 1, 2, 3])


# --- a solution that is wrong finds out by itself


PROBLEM = problem_of([(0, 1), (0,), (1,)], 2)
SCORES = np.array([3.0, 1.0, 1.0])


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
