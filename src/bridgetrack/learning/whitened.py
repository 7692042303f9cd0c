"""The quadratic master problem in whitened coordinates, and what points and multipliers prove.

    min_z 1/2 ||z||^2 + sum_g max_{k in g} (c + G z)_k

Its dual is ``max_alpha c'alpha - 1/2 ||G'alpha||^2``, ``alpha >= 0``, ``sum_{k in g} alpha_k = 1``,
and ``z = -G'alpha``. Whatever a back end returns is made feasible here and certified, so that the
gap reported is a true one. The ``w`` of a `Master` is z here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridgetrack.learning.master import Master
from bridgetrack.learning.model import FloatArray


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
