"""A solved master problem of the bundle method, with its certificate.

The quadratic master problem in whitened coordinates, and what points and multipliers prove.

    min_z 1/2 ||z||^2 + sum_g max_{k in g} (c + G z)_k

Its dual is ``max_alpha c'alpha - 1/2 ||G'alpha||^2``, ``alpha >= 0``, ``sum_{k in g} alpha_k = 1``,
and ``z = -G'alpha``. Whatever a back end returns is made feasible here and certified, so that the
gap reported is a true one. The ``w`` of a `Master` is z here.

The quadratic master problem of the bundle method, with a certificate.

    min_w  lambda/2 (w - w0)' M (w - w0) + sum_g max_{k in g} ( <a_k, w> + b_k )

With ``M = L L'``, ``u = L'(w - w0)``, ``G = A L^-T / sqrt(lambda)`` and ``c = b + A w0`` this is
the problem of `whitened`, ``z = sqrt(lambda) u``. A linear term ``<v, w>`` is added to the rows of
a group beforehand: since the alphas of a group sum to 1 this is 001, eq. 14-15 together with its
missing ``-||v||^2/(2 lambda)``.

*primal* is the problem in z and one slack per group, *dual* the one in alpha.

The quadratic master problem of joint training (000, section 1.6.3), with a certificate.

    min  lambda/2 |w - w0|^2 + rho/2 sum_d |w^d - w|^2 + sum_d max_{k in d} (<a_k, w^d> + b_k)

In the coordinates of `coupling` it is the master problem of `l2` with one group of bounds for
each domain, so both its forms and its certificate serve here too. Its *dual* form has the matrix
of the paper, ``1/tau A^d'A^d`` on the diagonal blocks and ``1/lambda A^d'A^e`` off them. With the
linear term v^d of a domain added to its rows and ``u^d = v^d + A^d alpha^d``,

    w = w0 - M^-1 sum_d u^d / lambda,      w^d = w - M^-1 u^d / rho,
    dual = sum_d (b^d + A^d'w0)'alpha^d - |sum_d u^d|^2 / (2 lambda) - sum_d |u^d|^2 / (2 rho).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import L2, Coupling, centre, unwhiten, whiten

Groups = NDArray[np.intp]


@dataclass(frozen=True)
class Master:
    """A solved master problem.

    Parameters
    ----------
    w
        Weights, shape (d,).
    alpha
        Multiplier of each bound, shape (m,): not negative, sum 1 within each group.
    primal
        Value of the master problem at ``w``.
    dual
        Certified lower bound on its minimum.
    backend
        Which form and back end found it.
    """

    w: FloatArray
    alpha: FloatArray
    primal: float
    dual: float
    backend: str

    @property
    def gap(self) -> float:
        """True duality gap, never negative up to rounding."""
        return self.primal - self.dual


@dataclass(frozen=True)
class Whitened:
    """The problem; shapes of G (m, d), of c (m,), and of the indicator of groups (n_groups, m)."""

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


Form = Literal["primal", "dual"]

FALLBACKS: tuple[tuple[Form, str], ...] = (
    ("primal", "daqp"),
    ("dual", "piqp"),
    ("dual", "clarabel"),
    ("primal", "piqp"),
)
RELATIVE_TOLERANCE = 1e-9


def solve_l2_master(
    slopes: FloatArray,
    offsets: FloatArray,
    regularizer: L2,
    *,
    groups: Groups | None = None,
    form: Form = "primal",
    backend: str | None = None,
    tolerance: float = 1e-8,
) -> Master:
    """Minimise the regulariser plus the largest bound of each group.

    Parameters
    ----------
    slopes, offsets
        Bounds ``<a_k, w> + b_k``, shapes (m, d) and (m,).
    regularizer
        lambda, w0 and M.
    groups
        Group of each bound, 0 to n_groups - 1, none empty; None: one group. One group is the
        1-slack problem, one group per sample the n-slack problem, one per domain eq. 1.9 of 000.
    form, backend
        What to try first: ``primal`` or the paper's ``dual``, and a qpsolvers back end (default
        daqp for the primal and piqp for the dual). Others are tried if it fails.
    tolerance
        Accepted duality gap, plus 1e-9 of the value. The smallest gap found is returned, and
        reported, where none is that small.

    Returns
    -------
    Master
        Weights, multipliers, values.

    Raises
    ------
    InputError
        If a group has no bound.
    SolverError
        If no back end returned anything.
    """
    d = slopes.shape[1]
    w0 = centre(regularizer, d)
    problem = Whitened(
        whiten(regularizer.metric, slopes) / np.sqrt(regularizer.weight),
        offsets + slopes @ w0,
        _indicator(groups, len(offsets)),
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
            f"no back end solved the training problem of {len(offsets)} bounds and {d} weights; "
            "check the scale of the features, or raise lambda"
        )
    w = w0 + unwhiten(regularizer.metric, best.w) / np.sqrt(regularizer.weight)
    return replace(best, w=w)


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


def _indicator(groups: Groups | None, m: int) -> FloatArray:
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
class JointMaster:
    """A solved master problem.

    Parameters
    ----------
    weights
        w^d, shape (D, d).
    alphas
        Multipliers of each domain's bounds, not negative, sum 1 in each.
    primal
        Value of the master problem at ``weights``.
    dual
        Certified lower bound on its minimum.
    backend
        Which form and back end found it.
    """

    weights: FloatArray
    alphas: tuple[FloatArray, ...]
    primal: float
    dual: float
    backend: str


def solve_joint_master(
    slopes: Sequence[FloatArray],
    offsets: Sequence[FloatArray],
    coupling: Coupling,
    *,
    form: Form = "primal",
    backend: str | None = None,
    tolerance: float = 1e-8,
) -> JointMaster:
    """Minimise the coupling plus the largest bound of each domain.

    Parameters
    ----------
    slopes, offsets
        Bounds ``<a_k, w^d> + b_k`` of each domain, shapes (m_d, d) and (m_d,), none empty.
    coupling
        lambda, rho, w0 and M.
    form, backend, tolerance
        As in `l2.solve_l2_master`.

    Raises
    ------
    InputError
        If a domain has no bound.
    SolverError
        If no back end returned anything.
    """
    count = [len(b) for b in offsets]
    factor = coupling.factor(len(count))
    rows = [coupling.whitened(a, row) for a, row in zip(slopes, factor, strict=True)]
    w0 = centre(L2(1.0, coupling.prior), slopes[0].shape[1])
    found = solve_l2_master(
        np.vstack(rows),
        np.concatenate([b + a @ w0 for a, b in zip(slopes, offsets, strict=True)]),
        L2(1.0),
        groups=np.repeat(np.arange(len(count)), count),
        form=form,
        backend=backend,
        tolerance=tolerance,
    )
    alphas = np.split(found.alpha, np.cumsum(count)[:-1])
    weights = coupling.unwhitened(found.w, factor)
    return JointMaster(weights, tuple(alphas), found.primal, found.dual, found.backend)
