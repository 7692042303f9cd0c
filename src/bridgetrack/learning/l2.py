"""The quadratic master problem of the cutting plane method, with a certificate.

    min_w  regulariser(w) + sum_g max_{k in g} ( <a_k, w> + b_k )

With ``lambda/2 (w - w0)' M (w - w0)``, ``M = L L'``, ``z = sqrt(lambda) L'(w - w0)``,
``G = A L^-T / sqrt(lambda)`` and ``c = b + A w0`` this is

    min_z  1/2 ||z||^2 + sum_g max_{k in g} (c + G z)_k            (primal: one slack per group)
    max_alpha  c'alpha - 1/2 ||G'alpha||^2                         (dual)
    alpha >= 0,  sum_{k in g} alpha_k = 1,  z = -G'alpha

A linear term ``<v, w>`` is added to the rows of a group beforehand: since the alphas of a group
sum to 1 this is 001, eq. 14-15 together with its missing ``-||v||^2/(2 lambda)``. One group is the
1-slack problem, one per sample the n-slack problem.

With a `Coupling` each row belongs to a domain, and in the coordinates z of `regularizers` the
problem is the same (000, section 1.6.3): the matrix of the dual has ``1/tau A^d'A^d`` on its
diagonal blocks and ``1/lambda A^d'A^e`` off them, and with ``u^d = v^d + A^d alpha^d``

    w = w0 - M^-1 sum_d u^d / lambda,      w^d = w - M^-1 u^d / rho,
    dual = sum_d (b^d + A^d'w0)'alpha^d - |sum_d u^d|^2 / (2 lambda) - sum_d |u^d|^2 / (2 rho).

Whatever a back end returns is made feasible and certified, so that the gap reported is a true one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.options import Form
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import L2, Coupling, centre

IntArray = NDArray[np.intp]

FALLBACKS: tuple[tuple[Form, str], ...] = (
    ("primal", "daqp"),
    ("dual", "piqp"),
    ("dual", "clarabel"),
    ("primal", "piqp"),
)
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Master:
    """A solved master problem."""

    w: FloatArray  # weights, shape (d,), of several domains (D, d); within this module z instead
    alpha: FloatArray  # multiplier of each bound, shape (m,): not negative, sum 1 within each group
    primal: float  # value of the master problem at ``w``
    dual: float  # certified lower bound on its minimum
    backend: str  # which form and back end found it

    @property
    def gap(self) -> float:
        """True duality gap, never negative up to rounding."""
        return self.primal - self.dual


def solve_l2_master(
    slopes: FloatArray,
    offsets: FloatArray,
    regularizer: L2 | Coupling,
    *,
    groups: IntArray | None = None,
    domains: IntArray | None = None,
    form: Form = "primal",
    backend: str | None = None,
    tolerance: float = 1e-8,
) -> Master:
    """Minimise the regulariser plus the largest bound of each group; slopes (m, d), offsets (m,).

    ``groups`` (m,) counts from 0, ``domains`` (m,) too and rises; without them there is one of
    each. A group belongs to one domain, and none is empty. ``form`` and ``backend`` say what to try
    first (default daqp for the primal and piqp for the dual), others follow if it fails. The
    accepted duality gap is ``tolerance`` plus 1e-9 of the value; where none is that small, the
    smallest found is returned, and reported.
    """
    m, d = slopes.shape
    domains = np.zeros(m, dtype=np.intp) if domains is None else domains
    w0, parts = centre(regularizer, d), np.split(slopes, np.flatnonzero(np.diff(domains)) + 1)
    problem = Whitened(
        regularizer.whitened(slopes, domains),
        # part by part: rounding must not depend on the other domains
        offsets + np.concatenate([part @ w0 for part in parts]),
        _indicator(groups, m),
    )
    best: Master | None = None
    for attempt in _attempts(problem, form, backend):
        best = attempt if best is None else best_of(best, attempt)
        accepted = tolerance + RELATIVE_TOLERANCE * abs(best.dual)
        if best.gap > accepted:
            best = best_of(best, polished(problem, best))
        if best.gap <= accepted:
            break
    if best is None:
        raise SolverError(
            f"no back end solved the training problem of {m} bounds and {d} weights; "
            "check the scale of the features, or raise lambda"
        )
    return replace(best, w=regularizer.unwhitened(best.w, int(domains.max()) + 1))


def _attempts(problem: Whitened, form: Form, backend: str | None) -> Iterator[Master]:
    """Solutions by one back end after the other, the wanted one first."""
    if not np.any(problem.G):
        yield certify(problem, "closed form", problem.best_of_each())
        return
    first = (form, backend or ("daqp" if form == "primal" else "piqp"))
    for kind, name in (first, *(f for f in FALLBACKS if f != first)):
        solved = (_solve_primal if kind == "primal" else _solve_dual)(problem, name)
        if solved is not None:
            yield solved


def _solve_primal(problem: Whitened, backend: str) -> Master | None:
    """In z and one slack per group, scaled so that rows have length 1 and offsets range over 1."""
    G, d, top = problem.G, problem.G.shape[1], problem.top
    shifted = problem.c - top @ problem.indicator
    reach = float(np.linalg.norm(G, axis=1).max())
    spread = float(-shifted.min())
    if spread <= 1e-12 * reach**2:
        spread = reach**2
    hessian = np.zeros((d + len(top), d + len(top)))
    hessian[np.arange(d), np.arange(d)] = spread / reach**2
    linear = np.concatenate([np.zeros(d), np.ones(len(top))])
    rows = np.hstack([G / reach, -problem.indicator.T])
    solution = call_backend(backend, hessian, linear, G=rows, h=-shifted / spread)
    x, alpha = (None, None) if solution is None else solution
    if x is None or alpha is None:
        return None
    return certify(problem, f"primal {backend}", alpha, x[:d] * spread / reach)


def _solve_dual(problem: Whitened, backend: str) -> Master | None:
    """In alpha, as printed; rescaling it would make good back ends fail."""
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


def _indicator(groups: IntArray | None, m: int) -> FloatArray:
    """Which bound belongs to which group, shape (n_groups, m)."""
    if m == 0:
        raise InputError("the master problem needs at least one bound")
    if groups is None:
        return np.ones((1, m))
    numbers = np.arange(np.max(groups) + 1)
    indicator: FloatArray = (np.asarray(groups)[None, :] == numbers[:, None]).astype(float)
    if not indicator.any(axis=1).all():
        raise InputError(f"group {int(np.argmin(indicator.sum(axis=1)))} has no bound")
    return indicator


@dataclass(frozen=True)
class Whitened:
    """The problem in z; shapes of G (m, r), c (m,), and the indicator of groups (n_groups, m)."""

    G: FloatArray
    c: FloatArray
    indicator: FloatArray

    @property
    def top(self) -> FloatArray:
        """Largest offset of each group."""
        return self.largest(self.c)

    def largest(self, values: FloatArray) -> FloatArray:
        """Largest value of each group, shape (n_groups,)."""
        top: FloatArray = np.where(self.indicator > 0, values, -np.inf).max(axis=1)
        return top

    def primal(self, z: FloatArray) -> float:
        """Value at z."""
        return 0.5 * float(z @ z) + float(self.largest(self.c + self.G @ z).sum())

    def dual(self, alpha: FloatArray) -> float:
        """Dual value at feasible multipliers: a lower bound on the minimum."""
        z = self.G.T @ alpha
        return float(self.c @ alpha) - 0.5 * float(z @ z)

    def best_of_each(self) -> FloatArray:
        """Multipliers that choose the largest offset of each group."""
        alpha = np.zeros(len(self.c))
        alpha[np.where(self.indicator > 0, self.c, -np.inf).argmax(axis=1)] = 1.0
        return alpha

    def feasible(self, alpha: FloatArray) -> FloatArray:
        """Multipliers that are not negative and sum to 1 in each group, nearest by scaling."""
        alpha = np.maximum(alpha, 0.0)
        empty = self.indicator @ alpha <= 0
        if empty.any():
            alpha = np.where(empty @ self.indicator > 0, self.best_of_each(), alpha)
        scaled: FloatArray = alpha / ((self.indicator @ alpha) @ self.indicator)
        return scaled


def certify(
    problem: Whitened, backend: str, alpha: FloatArray, z: FloatArray | None = None
) -> Master:
    """Values at the multipliers, made feasible, and at the better of z and ``-G'alpha``.

    The point of a back end can be better by far: rounding of alpha is blown up by 1/lambda.
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
