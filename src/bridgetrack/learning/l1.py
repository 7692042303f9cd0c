"""The linear master problem of L1 regularisation, with a certificate.

    min_w  lambda sum_i m_i |w_i - w0_i| + max_k ( <a_k, w> + b_k )

Its dual is ``max_alpha (b + A w0)'alpha`` with ``alpha >= 0``, ``1'alpha = 1`` and
``|A'alpha|_i <= lambda m_i``. It is bounded only if some mean of the slopes is that small: the
caller sees to it with the row (0, b) that stands for ``P >= R`` (design notes, section 11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.errors import SolverError
from bridgetrack.learning.l2 import Master
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.regularizers import L1, centre


def solve_l1_master(slopes: FloatArray, offsets: FloatArray, regularizer: L1) -> Master:
    """Minimise the L1 regulariser plus the largest of the bounds, shapes (m, d) and (m,).

    One slope should be zero; ``dual`` is -inf if the multipliers prove nothing.
    """
    from scipy.optimize import linprog

    problem = _Priced.of(slopes, offsets, regularizer)
    m, d = slopes.shape
    found = linprog(
        np.ones(2 * d + 1),
        A_ub=problem.rows,
        b_ub=-problem.c,
        bounds=[(0, None)] * (2 * d) + [(None, None)],
        method="highs-ds",
    )
    if found.status != 0:
        raise SolverError(
            f"the L1 training problem of {m} bounds and {d} weights was not solved "
            "(unbounded, or badly scaled features); raise lambda or scale the features"
        )
    step = found.x[:d] - found.x[d : 2 * d]
    return problem.master(step, -found.ineqlin.marginals, "lp highs")


@dataclass(frozen=True)
class _Priced:
    """``min_s ||s||_1 + top + max_k (c + G s)_k`` with ``s = price * (w - w0)``."""

    G: FloatArray
    c: FloatArray
    top: float
    w0: FloatArray
    price: FloatArray

    @classmethod
    def of(cls, slopes: FloatArray, offsets: FloatArray, regularizer: L1) -> _Priced:
        """The problem in units in which every weight costs 1."""
        d = slopes.shape[1]
        factor = np.ones(d) if regularizer.metric is None else np.asarray(regularizer.metric)
        price = regularizer.weight * factor.astype(float)
        w0 = centre(regularizer, d)
        c = offsets + slopes @ w0
        top = float(c.max())
        return cls(slopes / price, c - top, top, w0, price)

    @property
    def rows(self) -> FloatArray:
        """``G p - G q - xi``, shape (m, 2d + 1)."""
        return np.hstack([self.G, -self.G, -np.ones((len(self.c), 1))])

    def master(self, step: FloatArray, alpha: FloatArray, backend: str) -> Master:
        """Certified solution."""
        alpha = np.maximum(alpha, 0.0)
        best = np.eye(len(self.c))[int(np.argmax(self.c))]
        alpha = _feasible(alpha / alpha.sum() if alpha.sum() > 0 else best, self.G)
        feasible = np.abs(self.G.T @ alpha).max(initial=0) <= 1 + 1e-9
        return Master(
            w=self.w0 + step / self.price,
            alpha=alpha,
            primal=self.top + float(np.abs(step).sum() + (self.c + self.G @ step).max()),
            dual=self.top + float(self.c @ alpha) if feasible else -np.inf,
            backend=backend,
        )


def _feasible(alpha: FloatArray, G: FloatArray) -> FloatArray:
    """Mix in the row of slope zero until the multipliers satisfy the dual constraints."""
    excess = float(np.abs(G.T @ alpha).max(initial=0))
    zero = np.flatnonzero(~G.any(axis=1))
    if excess <= 1 or not len(zero):
        return alpha
    mixed = alpha / excess
    mixed[zero[-1]] += 1 - 1 / excess
    return mixed
