"""The second best output equals enumeration and the solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.experiments.uncertainty import (
    MEASURES,
    Exchanges,
    Patches,
    second_best_gaps,
    uncertainties,
)
from bridgetrack.inference.margins import cheapest_flip
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from partition_problems import (
    brute_force,
    problem_of,
    random_covers,
    random_scores,
    tracking_problem,
)


def second_by_enumeration(problem: Problem, scores: np.ndarray) -> float:
    """Best minus second best value, over all outputs that lack one event of the best."""
    best = solve(problem, scores)
    gap = np.inf
    for column in np.flatnonzero(best.chosen):
        allowed = np.ones(problem.n_columns, dtype=bool)
        allowed[column] = False
        gap = min(gap, best.value - brute_force(problem, scores, allowed))
    return max(gap, 0.0)


def alone(problem: Problem) -> Patches:
    """A problem as the only patch of a pool; one feature, the identity."""
    return Patches(
        problem,
        sp.identity(problem.n_columns, format="csr"),
        np.zeros(problem.n_columns, dtype=np.int64),
        np.zeros(problem.n_slots, dtype=np.int64),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 25))
def test_gap_against_enumeration(seed: int, n_slots: int, n_wide: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, n_wide), n_slots)
    scores = random_scores(rng, problem.n_columns)
    true = second_by_enumeration(problem, scores)
    (found,) = second_best_gaps(alone(problem), scores, solve(problem, scores))
    tolerance = 1e-5 * max(1.0, np.abs(scores).max())
    assert found == pytest.approx(true, abs=tolerance)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_exchanges_against_the_solver_in_tracking_problems(seed: int) -> None:
    problem, scores = tracking_problem(np.random.default_rng(seed), 14)
    best = solve(problem, scores)
    if best.slack.any():
        return
    chosen = np.flatnonzero(best.chosen)
    single = sp.csr_matrix(sp.identity(problem.n_columns, format="csr")[chosen])
    second = cheapest_flip(problem, scores, single)
    assert second is not None
    expected = best.value - float(scores[second].sum())
    assert Exchanges(problem, scores, best).cheapest(chosen.tolist()) == pytest.approx(
        expected, abs=1e-6
    )


def test_no_second_output() -> None:
    problem = problem_of([(0, 1)], 2)
    scores = np.asarray([1.0])
    (gap,) = second_best_gaps(alone(problem), scores, solve(problem, scores))
    assert gap == np.inf
    (q,) = uncertainties(alone(problem), scores, "best_second", np.random.default_rng(0))
    assert q == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_table_1_2_against_enumeration(seed: int, n_slots: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, 8), n_slots)
    w = rng.normal(size=problem.n_columns)
    best, worst = brute_force(problem, w), -brute_force(problem, -w)
    expected = {
        "scoring": np.exp(-best),
        "best_worst": np.exp(-(best - worst)),
        "best_second": np.exp(-second_by_enumeration(problem, w)),
    }
    for measure, value in expected.items():
        (q,) = uncertainties(alone(problem), w, measure, rng)  # type: ignore[arg-type]
        assert q == pytest.approx(value, rel=1e-4, abs=1e-9)


def test_patches_of_a_pool_are_judged_one_by_one() -> None:
    rng = np.random.default_rng(2)
    problems = [problem_of(random_covers(rng, n, 9), n) for n in (3, 5, 4)]
    scores = [rng.normal(size=p.n_columns) for p in problems]
    whole = Patches(
        Problem(sp.csr_matrix(sp.block_diag([p.incidence for p in problems]))),
        sp.identity(sum(p.n_columns for p in problems), format="csr"),
        np.repeat(np.arange(3), [p.n_columns for p in problems]),
        np.repeat(np.arange(3), [p.n_slots for p in problems]),
    )
    for measure in MEASURES[1:]:
        together = uncertainties(whole, np.concatenate(scores), measure, rng)
        apart = [
            uncertainties(alone(p), s, measure, rng)[0]
            for p, s in zip(problems, scores, strict=True)
        ]
        np.testing.assert_allclose(together, apart, rtol=1e-6)


def test_random_uncertainty_is_uniform_and_others_are_refused() -> None:
    patches = alone(problem_of([(0,)], 1))
    drawn = [
        uncertainties(patches, np.ones(1), "random", np.random.default_rng(k))[0]
        for k in range(200)
    ]
    assert 0.4 < np.mean(drawn) < 0.6
    with pytest.raises(InputError, match="luck"):
        uncertainties(patches, np.ones(1), "luck", np.random.default_rng(0))  # type: ignore[arg-type]
