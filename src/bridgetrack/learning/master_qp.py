"""The master problem of the cutting plane method, with a certificate.

    min_w  regulariser(w) + sum_g max_{k in g} ( <a_k, w> + b_k )

*L2.* With ``lambda/2 (w - w0)' M (w - w0)``, ``z = sqrt(lambda M) (w - w0)``,
``G = A / sqrt(lambda M)`` and ``c = b + A w0`` this is

    min_z  1/2 ||z||^2 + sum_g max_{k in g} (c + G z)_k            (primal: one slack per group)
    max_alpha  c'alpha - 1/2 ||G'alpha||^2                         (dual)
    alpha >= 0,  sum_{k in g} alpha_k = 1,  z = -G'alpha

The linear term ``<v, w>`` of the tangent is added to the rows of one group beforehand
(`Bundle.rows`): since the alphas of a group sum to 1 this is 001, eq. 14-15 together with its
missing ``-||v||^2/(2 lambda)``.

*L1* makes it a linear program, see `regularizers.L1`.

The result of a back end is made feasible and certified, so that the reported gap is a true one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import SolverError
from bridgetrack.learning.regularizers import L1, L2, Regularizer

RELATIVE_TOLERANCE = 1e-9
SOLVER_OPTIONS: dict[str, dict[str, float]] = {"daqp": {"primal_tol": 1e-10}}


@dataclass(frozen=True)
class Master:
    """A solved master problem."""

    w: Array  # weights, shape (d,)
    alpha: Array  # multiplier of each row, shape (m,): not negative, sum 1 within each group
    primal: float  # value of the master problem at ``w``
    dual: float  # certified lower bound on its minimum; -inf if the multipliers prove nothing

    @property
    def gap(self) -> float:
        """True duality gap, never negative up to rounding."""
        return self.primal - self.dual


def solve_master(
    slopes: Array, offsets: Array, groups: Index, regularizer: Regularizer, tolerance: float = 1e-8
) -> Master:
    """Minimise the regulariser plus the largest row of each group.

    The primal form is solved first, by daqp, the fastest back end. On the problems of 4,000 real
    trainings it failed on one in thirty, most of them with many slacks; piqp solved the dual form
    of all.

    Parameters
    ----------
    slopes, offsets
        Rows, shapes (m, d) and (m,).
    groups
        Group of every row, counted from 0, shape (m,); none is empty. L1 supports one group only.
    regularizer
        L2 or L1.
    tolerance
        Duality gap, besides 1e-9 of the value, up to which the dual form is not tried. The smaller
        gap of the two is returned.

    Raises
    ------
    SolverError
        If no back end solved the problem.
    """
    if isinstance(regularizer, L1):
        return Master(*regularizer.minimise_with(slopes, offsets))
    assert isinstance(regularizer, L2)
    w0 = regularizer.centre(slopes.shape[1])
    indicator = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)
    problem = Whitened(regularizer.whitened(slopes), offsets + slopes @ w0, indicator)
    found = problem.solve_primal()
    if found is None or found.gap > tolerance + RELATIVE_TOLERANCE * abs(found.dual):
        both = [m for m in (found, problem.solve_dual()) if m is not None]
        if not both:
            raise SolverError(
                f"no back end solved the training problem of {len(offsets)} bounds and "
                f"{slopes.shape[1]} weights; check the scale of the features, or raise lambda"
            )
        found = min(both, key=lambda m: m.gap)
    return replace(found, w=regularizer.unwhitened(found.w))


@dataclass(frozen=True)
class Whitened:
    """The problem of L2 in coordinates z in which the regulariser is ``1/2 ||z||^2``."""

    G: Array  # shape (m, d)
    c: Array  # shape (m,)
    indicator: Array  # of groups, shape (n_groups, m)

    def largest(self, values: Array) -> Array:
        """Largest value of each group, shape (n_groups,)."""
        return np.asarray(np.where(self.indicator > 0, values, -np.inf).max(axis=1))

    def shifted(self) -> Array:
        """Offsets less the largest of their group."""
        return self.c - self.largest(self.c) @ self.indicator

    def solve_primal(self) -> Master | None:
        """Solve in z and slacks, scaled so that rows have length 1 and offsets range over 1."""
        G, shifted = self.G, self.shifted()
        d = G.shape[1]
        n = d + len(self.indicator)
        longest = float(np.linalg.norm(G, axis=1).max()) or 1.0
        spread = float(-shifted.min())
        if spread <= 1e-12 * longest**2:
            spread = longest**2
        is_slack = np.arange(n) >= d
        hessian = np.diag(np.where(is_slack, 0.0, spread / longest**2))
        rows = np.hstack([G / longest, -self.indicator.T])
        solved = call_backend("daqp", hessian, is_slack.astype(float), G=rows, h=-shifted / spread)
        if solved is None or not len(solved[1]):
            return None
        point, alpha = solved
        return self.certify(alpha, point[:d] * spread / longest)

    def solve_dual(self) -> Master | None:
        """Solve in the multipliers."""
        equal = {"A": self.indicator, "b": np.ones(len(self.indicator))}
        lower = np.zeros(len(self.c))
        solved = call_backend("piqp", self.G @ self.G.T, -self.shifted(), lb=lower, **equal)
        return None if solved is None else self.certify(solved[0])

    def certify(self, alpha: Array, z: Array | None = None) -> Master | None:
        """Values at the multipliers, made feasible, and at the better of z and ``-G'alpha``.

        The point of a back end can be better by far: rounding of alpha is amplified by 1/lambda.
        None if a group has no multiplier at all.
        """
        alpha = np.maximum(alpha, 0.0)
        total = self.indicator @ alpha
        if not (total > 0).all():
            return None
        alpha = alpha / (total @ self.indicator)
        slope = self.G.T @ alpha
        dual = float(self.c @ alpha) - 0.5 * float(slope @ slope)
        points = [-slope] if z is None else [-slope, z]
        values = [
            0.5 * float(p @ p) + float(self.largest(self.c + self.G @ p).sum()) for p in points
        ]
        k = int(np.argmin(values))
        return Master(points[k], alpha, values[k], dual)


def call_backend(
    backend: str, P: Array, q: Array, **constraints: Array
) -> tuple[Array, Array] | None:
    """Minimise ``1/2 x'P x + q'x`` subject to ``G x <= h``, ``A x = b``, ``x >= lb``.

    Returns the point and the multipliers of ``G x <= h`` (none if the back end gives none), or None
    if it could not solve the problem. Nothing is certified here. Warnings of a back end are
    suppressed, since its result is certified afterwards and another back end follows.
    """
    import qpsolvers

    # Most failures are returned as a status. Errors that depend on the numbers are those of
    # qpsolvers, of values (an indefinite P), and of arithmetic.
    try:
        problem = qpsolvers.Problem(P, q, **constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = SOLVER_OPTIONS.get(backend, {})
            solution = qpsolvers.solve_problem(problem, backend, **options)
    except (qpsolvers.exceptions.QPError, ValueError, ArithmeticError):
        return None
    x, z = solution.x, solution.z
    if x is None or not np.isfinite(x).all():
        return None
    return x, z if z is not None and np.isfinite(z).all() else np.zeros(0)
