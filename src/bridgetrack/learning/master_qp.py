"""The master problem of the cutting plane method, with a certificate.

    min_w  regulariser(w) + sum_g max_{k in g} ( <a_k, w> + b_k )

*L2.* With ``lambda/2 (w - w0)' M (w - w0)``, ``M = L L'``, ``z = sqrt(lambda) L'(w - w0)``,
``G = A L^-T / sqrt(lambda)`` and ``c = b + A w0`` this is

    min_z  1/2 ||z||^2 + sum_g max_{k in g} (c + G z)_k            (primal: one slack per group)
    max_alpha  c'alpha - 1/2 ||G'alpha||^2                         (dual)
    alpha >= 0,  sum_{k in g} alpha_k = 1,  z = -G'alpha

The linear term ``<v, w>`` of the tangent is added to the rows of one group beforehand
(`Bundle.rows`): since the alphas of a group
sum to 1 this is 001, eq. 14-15 together with its missing ``-||v||^2/(2 lambda)``.

*L1.* ``lambda sum_i m_i |w_i - w0_i|`` with one group is a linear program. Its dual is ``max_alpha
(b + A w0)'alpha`` with ``alpha >= 0``, ``1'alpha = 1`` and ``|A'alpha|_i <= lambda m_i``. It is
bounded only if some mean of the slopes is that small: the row of slope zero, which stands for
``P >= R``, ensures this.

Whatever a back end returns is made feasible and certified, so that the gap reported is a true one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.regularizers import L1, L2, Regularizer, centre
from bridgetrack.learning.structured_model import IntArray

ATTEMPTS = (("primal", "daqp"), ("dual", "piqp"), ("dual", "clarabel"), ("primal", "piqp"))
"""Forms and back ends for L2, one after the other until one is accepted."""

RELATIVE_TOLERANCE = 1e-9
SOLVER_OPTIONS: dict[str, dict[str, float]] = {"daqp": {"primal_tol": 1e-10}}
SPARSE = ("clarabel",)
"""Back ends that take sparse matrices only, and warn of every other."""


@dataclass(frozen=True)
class Master:
    """A solved master problem."""

    w: Array  # weights, shape (d,)
    alpha: Array  # multiplier of each row, shape (m,): not negative, sum 1 within each group
    primal: float  # value of the master problem at ``w``
    dual: float  # certified lower bound on its minimum; -inf if the multipliers prove nothing
    backend: str  # which form and back end found it

    @property
    def gap(self) -> float:
        """True duality gap, never negative up to rounding."""
        return self.primal - self.dual


def solve_master(
    slopes: Array,
    offsets: Array,
    groups: IntArray,
    regularizer: Regularizer,
    tolerance: float = 1e-8,
    attempts: Sequence[tuple[str, str]] = ATTEMPTS,
) -> Master:
    """Minimise the regulariser plus the largest row of each group.

    Parameters
    ----------
    slopes, offsets
        Rows, shapes (m, d) and (m,).
    groups
        Group of every row, counted from 0, shape (m,); none is empty. L1 supports one group only.
    regularizer
        L2 or L1.
    tolerance
        Accepted duality gap, besides 1e-9 of the value. Where none is that small, the smallest
        that was found is returned, with its gap.
    attempts
        Forms (primal or dual) and back ends to try for L2.

    Raises
    ------
    SolverError
        If no back end solved the problem.
    """
    if not len(offsets):
        raise InputError("the master problem needs at least one bound")
    if isinstance(regularizer, L1):
        return _solve_l1(slopes, offsets, regularizer)
    problem = Whitened.of(slopes, offsets, groups, regularizer)
    best: Master | None = None
    for attempt in _solutions(problem, attempts):
        best = attempt if best is None else best_of(best, attempt)
        accepted = tolerance + RELATIVE_TOLERANCE * abs(best.dual)
        if best.gap > accepted:
            best = best_of(best, polished(problem, best))
        if best.gap <= accepted:
            break
    if best is None:
        raise SolverError(
            f"no back end solved the training problem of {len(offsets)} bounds and "
            f"{slopes.shape[1]} weights; check the scale of the features, or raise lambda"
        )
    return replace(best, w=regularizer.unwhitened(best.w))


# --- L2: a quadratic program in z


@dataclass(frozen=True)
class Whitened:
    """The problem in z; shapes of G (m, d), c (m,), and the indicator of groups (n_groups, m)."""

    G: Array
    c: Array
    indicator: Array

    @classmethod
    def of(cls, slopes: Array, offsets: Array, groups: IntArray, regularizer: L2) -> Whitened:
        """The problem in coordinates in which the regulariser is ``1/2 ||z||^2``."""
        numbers = np.arange(groups.max() + 1)
        indicator = (groups[None, :] == numbers[:, None]).astype(float)
        if not indicator.any(axis=1).all():
            raise InputError(f"group {int(np.argmin(indicator.sum(axis=1)))} has no bound")
        w0 = centre(regularizer, slopes.shape[1])
        return cls(regularizer.whitened(slopes), offsets + slopes @ w0, indicator)

    @property
    def top(self) -> Array:
        """Largest offset of each group."""
        return self.largest(self.c)

    def largest(self, values: Array) -> Array:
        """Largest value of each group, shape (n_groups,)."""
        top: Array = np.where(self.indicator > 0, values, -np.inf).max(axis=1)
        return top

    def primal(self, z: Array) -> float:
        """Value at z."""
        return 0.5 * float(z @ z) + float(self.largest(self.c + self.G @ z).sum())

    def dual(self, alpha: Array) -> float:
        """Dual value at feasible multipliers: a lower bound on the minimum."""
        z = self.G.T @ alpha
        return float(self.c @ alpha) - 0.5 * float(z @ z)

    def best_of_each(self) -> Array:
        """Multipliers that choose the largest offset of each group."""
        alpha = np.zeros(len(self.c))
        alpha[np.where(self.indicator > 0, self.c, -np.inf).argmax(axis=1)] = 1.0
        return alpha

    def feasible(self, alpha: Array) -> Array:
        """Multipliers that are not negative and sum to 1 in each group, nearest by scaling."""
        alpha = np.maximum(alpha, 0.0)
        empty = self.indicator @ alpha <= 0
        if empty.any():
            alpha = np.where(empty @ self.indicator > 0, self.best_of_each(), alpha)
        scaled: Array = alpha / ((self.indicator @ alpha) @ self.indicator)
        return scaled


def _solutions(problem: Whitened, attempts: Sequence[tuple[str, str]]) -> Iterator[Master]:
    """Solutions by one back end after the other."""
    if not np.any(problem.G):
        yield certify(problem, "closed form", problem.best_of_each())
        return
    for form, backend in attempts:
        solved = (_solve_primal if form == "primal" else _solve_dual)(problem, backend)
        if solved is not None:
            yield solved


def _solve_primal(problem: Whitened, backend: str) -> Master | None:
    """In z and one slack per group, scaled so that rows have length 1 and offsets range over 1."""
    G, d, top = problem.G, problem.G.shape[1], problem.top
    shifted = problem.c - top @ problem.indicator
    longest = float(np.linalg.norm(G, axis=1).max())
    spread = float(-shifted.min())
    if spread <= 1e-12 * longest**2:
        spread = longest**2
    hessian = np.zeros((d + len(top), d + len(top)))
    hessian[np.arange(d), np.arange(d)] = spread / longest**2
    linear = np.concatenate([np.zeros(d), np.ones(len(top))])
    rows = np.hstack([G / longest, -problem.indicator.T])
    solution = call_backend(backend, hessian, linear, G=rows, h=-shifted / spread)
    x, alpha = (None, None) if solution is None else solution
    if x is None or alpha is None:
        return None
    return certify(problem, f"primal {backend}", alpha, x[:d] * spread / longest)


def _solve_dual(problem: Whitened, backend: str) -> Master | None:
    """In alpha: 001, eq. 14, whitened and shifted; rescaling it would make good back ends fail."""
    shifted = problem.c - problem.top @ problem.indicator
    solution = call_backend(
        backend,
        problem.G @ problem.G.T,
        -shifted,
        A=problem.indicator,
        b=np.ones(len(problem.indicator)),
        lb=np.zeros(len(shifted)),
    )
    return None if solution is None else certify(problem, f"dual {backend}", solution[0])


def certify(problem: Whitened, backend: str, alpha: Array, z: Array | None = None) -> Master:
    """Values at the multipliers, made feasible, and at the better of z and ``-G'alpha``.

    The point of a back end can be better by far: rounding of alpha is amplified by 1/lambda.
    """
    alpha = problem.feasible(alpha)
    point = -problem.G.T @ alpha
    if z is not None and problem.primal(z) < problem.primal(point):
        point = z
    return Master(point, alpha, problem.primal(point), problem.dual(alpha), backend)


def best_of(a: Master, b: Master) -> Master:
    """The better point and the better multipliers of two."""
    point = a if a.primal <= b.primal else b
    multipliers = a if a.dual >= b.dual else b
    return replace(point, alpha=multipliers.alpha, dual=multipliers.dual)


def polished(problem: Whitened, found: Master) -> Master:
    """Solve the equations of the active bounds exactly; keep the result if it is better."""
    G, c, indicator = problem.G, problem.c, problem.indicator
    active = np.flatnonzero(found.alpha > 1e-7)
    for _ in range(5):
        E = indicator[:, active]
        n, g = len(active), len(E)
        K = np.block([[G[active] @ G[active].T, E.T], [E, np.zeros((g, g))]])
        solved = np.linalg.lstsq(K, np.concatenate([c[active], np.ones(g)]), rcond=None)[0][:n]
        trial = np.zeros_like(found.alpha)
        trial[active] = solved
        found = best_of(found, certify(problem, found.backend, trial))
        active = active[solved > 0]
        if (solved > 0).all() or not (indicator[:, active].sum(axis=1) > 0).all():
            break
    return found


def call_backend(
    backend: str,
    P: Array,
    q: Array,
    *,
    G: Array | None = None,
    h: Array | None = None,
    A: Array | None = None,
    b: Array | None = None,
    lb: Array | None = None,
) -> tuple[Array, Array | None] | None:
    """Minimise ``1/2 x'P x + q'x`` subject to ``G x <= h``, ``A x = b``, ``x >= lb``.

    The point and the multipliers of ``G x <= h`` (None if the back end gives none); None if the
    back end could not solve it. Nothing is certified: check what comes back. What a back end warns
    of is kept quiet, since its result is certified and another one follows.
    """
    import qpsolvers

    if backend not in qpsolvers.available_solvers:
        raise InputError(
            f"there is no QP back end {backend!r}; choose one of "
            f"{', '.join(qpsolvers.available_solvers)}"
        )
    matrices: list[Any] = [P, G, A]
    if backend in SPARSE:
        matrices = [None if m is None else sp.csc_matrix(m) for m in matrices]
    # Most failures come back as a status. What is raised for the numbers' sake is an error of
    # qpsolvers (Clarabel's refusal to set up), of values (an indefinite P) or of arithmetic.
    try:
        hessian, rows, equal = matrices
        problem = qpsolvers.Problem(hessian, q, rows, h, equal, b, lb)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = SOLVER_OPTIONS.get(backend, {})
            solution = qpsolvers.solve_problem(problem, backend, **options)
    except (qpsolvers.exceptions.QPError, ValueError, ArithmeticError):
        return None
    except Exception as error:
        raise SolverError(
            f"the QP back end {backend} failed unexpectedly ({type(error).__name__}: {error}); "
            "its version may not fit, reinstall it or choose another one"
        ) from error
    x, z = solution.x, solution.z
    if x is None or not np.isfinite(x).all():
        return None
    return x, (z if z is not None and np.isfinite(z).all() else None)


# --- L1: a linear program


def _solve_l1(slopes: Array, offsets: Array, regularizer: L1) -> Master:
    """``min_s ||s||_1 + top + max_k (c + G s)_k`` with ``s = price * (w - w0)``."""
    from scipy.optimize import linprog

    m, d = slopes.shape
    price = np.asarray(regularizer.weight * regularizer.factor(d))
    w0 = centre(regularizer, d)
    c = offsets + slopes @ w0
    top = float(c.max())
    G, c = slopes / price, c - top
    found = linprog(
        np.ones(2 * d + 1),
        A_ub=np.hstack([G, -G, -np.ones((m, 1))]),
        b_ub=-c,
        bounds=[(0, None)] * (2 * d) + [(None, None)],
        method="highs-ds",
    )
    if found.status != 0:
        raise SolverError(
            f"the L1 training problem of {m} bounds and {d} weights was not solved "
            "(unbounded, or badly scaled features); raise lambda or scale the features"
        )
    step = found.x[:d] - found.x[d : 2 * d]
    alpha = np.maximum(-found.ineqlin.marginals, 0.0)
    best = np.eye(m)[int(np.argmax(c))]
    alpha = _feasible(alpha / alpha.sum() if alpha.sum() > 0 else best, G)
    feasible = np.abs(G.T @ alpha).max(initial=0) <= 1 + 1e-9
    return Master(
        w=w0 + step / price,
        alpha=alpha,
        primal=top + float(np.abs(step).sum() + (c + G @ step).max()),
        dual=top + float(c @ alpha) if feasible else -np.inf,
        backend="lp highs",
    )


def _feasible(alpha: Array, G: Array) -> Array:
    """Mix in the row of slope zero until the multipliers satisfy the dual constraints."""
    excess = float(np.abs(G.T @ alpha).max(initial=0))
    zero = np.flatnonzero(~G.any(axis=1))
    if excess <= 1 or not len(zero):
        return alpha
    mixed = alpha / excess
    mixed[zero[-1]] += 1 - 1 / excess
    return mixed
