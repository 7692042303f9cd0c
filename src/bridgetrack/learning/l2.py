"""The quadratic master problem of the bundle method, with a certificate.

    min_w  lambda/2 (w - w0)' M (w - w0) + sum_g max_{k in g} ( <a_k, w> + b_k )

With ``M = L L'``, ``u = L'(w - w0)``, ``G = A L^-T / sqrt(lambda)`` and ``c = b + A w0`` this is
the problem of `whitened`, ``z = sqrt(lambda) u``. A linear term ``<v, w>`` is added to the rows of
a group beforehand: since the alphas of a group sum to 1 this is 001, eq. 14-15 together with its
missing ``-||v||^2/(2 lambda)``.

*primal* is the problem in z and one slack per group, *dual* the one in alpha.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.master import Master
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import L2, centre, unwhiten, whiten
from bridgetrack.learning.whitened import Whitened, best_of, certify, polished

Form = Literal["primal", "dual"]
Groups = NDArray[np.intp]

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
