"""Relaxations: few columns of a large component are enough, and old optima are recognised."""

import numpy as np
import pytest

from bridgetrack.errors import SolverError
from bridgetrack.inference.margins import exact_margin, margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits
from bridgetrack.inference.solve import solve
from bridgetrack.inference.solver import Program
from partition_problems import problem_of

ALWAYS = SolverLimits(large=0)


class Stopping:
    """HiGHS that says of its first `stops` runs that they ended short of the optimum."""

    def __init__(self, lib, stops):
        self._lib, self._stops = lib, stops

    def __getattr__(self, name):
        return getattr(self._lib, name)

    def Highs_getModelStatus(self, handle):  # noqa: N802
        self._stops -= 1
        status: int = self._lib.Highs_getModelStatus(handle)
        return status if self._stops < 0 else self._lib.kHighsModelStatusUnknown


def test_a_program_that_ends_short_of_its_optimum_is_solved_from_the_beginning():
    scores = np.arange(3.0)
    solver = Program(problem_of([(0,), (0, 1), (1,)], 2))
    solver._model.solver._lib = Stopping(solver._model.solver._lib, 1)
    np.testing.assert_allclose(solver.relax(scores).x, [1.0, 0.0, 1.0])
    solver._model.solver._lib = Stopping(solver._model.solver._lib, 2)
    with pytest.raises(SolverError, match="before the optimum"):
        solver.relax(scores)


def chained_triangles(count):
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
def test_what_only_poor_columns_tie_is_apart(optional):
    problem, scores = chained_triangles(5)
    if optional:
        problem = Problem(problem.incidence, np.arange(problem.n_slots) % 5 == 2)
    whole, generated = solve(problem, scores), solve(problem, scores, limits=ALWAYS)
    assert generated.value == pytest.approx(whole.value)
    assert generated.value == pytest.approx(5 * 2.4)
    assert np.bincount(whole.component).max() == 25
    assert np.bincount(generated.component).max() == 3
    # How far the relaxation lies above the choice is told part by part, and bounds are nearer.
    np.testing.assert_allclose(whole.slack, 0.5)
    np.testing.assert_allclose(
        generated.slack.reshape(5, 5), [[0.1, 0.1, 0.1, 0, 0]] * 5, atol=1e-9
    )
    bounds = [margin_bounds(problem, scores, found) for found in (whole, generated)]
    assert np.nansum(bounds[0]) < np.nansum(bounds[1])
    for column in np.flatnonzero(generated.chosen).tolist():
        exact = exact_margin(problem, scores, whole, column)
        assert bounds[1][column] <= exact + 1e-6
        assert exact_margin(problem, scores, generated, column) == pytest.approx(exact, abs=1e-5)
