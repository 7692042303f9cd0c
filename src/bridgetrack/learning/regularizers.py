"""Regularisers: the cost of weights that differ from a prior.

``L2``: ``lambda/2 (w - w0)' M (w - w0)``; ``L1``: ``lambda sum_i m_i |w_i - w0_i|``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError, SolverError


@dataclass(frozen=True)
class Regularizer(ABC):
    """Distance from the prior, `L2` or `L1`.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights w0 to stay close to, shape (d,); None: zero.
    metric
        Positive factor of each weight, the diagonal of M or m, shape (d,); None: one.
    """

    weight: float
    prior: Array | None = None
    metric: Array | None = None

    @abstractmethod
    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""

    def centre(self, d: int) -> Array:
        """The prior, or zeros, shape (d,)."""
        return np.zeros(d) if self.prior is None else np.asarray(self.prior, dtype=float)

    def factor(self, d: int) -> Array:
        """The metric, or ones, shape (d,)."""
        return np.ones(d) if self.metric is None else np.asarray(self.metric, dtype=float)

    def check(self, d: int) -> None:
        """Raise an InputError unless weight, prior and metric are valid for ``d`` weights."""
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"the weight of the regulariser must be positive, not {self.weight}")
        for name, values in (("prior", self.centre(d)), ("metric", self.factor(d))):
            if values.shape != (d,) or not np.isfinite(values).all():
                raise InputError(
                    f"the {name} has shape {values.shape} and must be {d} finite numbers, one for "
                    "each feature; it may belong to another set of features"
                )
        if not (self.factor(d) > 0).all():
            feature = int(np.argmin(self.factor(d)))
            raise InputError(f"the metric of feature {feature} is not positive")


class L2(Regularizer):
    """Squared distance from the prior.

    With the weights of a source model as the prior this learns the delta function of 004
    (Algorithm 1), where each cutting plane is a bound on the penalty and 1/lambda is its C:

        f_target(x, y) = <w0, phi(x, y)> + <w - w0, phi(x, y)>,    min  lambda/2 |w - w0|^2 + risk
    """

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        d = w.shape[-1]
        step = w - self.centre(d)
        return np.asarray(0.5 * self.weight * (step * (self.factor(d) * step)).sum(axis=-1))

    def whitened(self, slopes: Array) -> Array:
        """Slopes (m, d) in coordinates ``z = sqrt(lambda M) (w - w0)``."""
        scaled: Array = slopes / np.sqrt(self.factor(slopes.shape[1])) / np.sqrt(self.weight)
        return scaled

    def unwhitened(self, z: Array) -> Array:
        """Weights of coordinates z, shape (d,)."""
        return self.centre(len(z)) + self.whitened(z[None])[0]

    def least(self, slope: Array) -> Array:
        """Minimiser of the regulariser plus ``<slope, w - w0>``, minus w0."""
        return np.asarray(-(1.0 / self.factor(len(slope)) / self.weight) * slope)


class L1(Regularizer):
    """Absolute distance from the prior: few weights leave it.

    The master problem of one group is a linear program. Its dual is ``max_alpha (b + A w0)'alpha``
    with ``alpha >= 0``, ``1'alpha = 1`` and ``|A'alpha|_i <= lambda m_i``. It is bounded only if
    some mean of the slopes is that small: the row of slope zero, which stands for ``P >= R`` and
    comes last, ensures this.
    """

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        d = w.shape[-1]
        return np.asarray(self.weight * (np.abs(w - self.centre(d)) * self.factor(d)).sum(axis=-1))

    def minimise_with(self, slopes: Array, offsets: Array) -> tuple[Array, Array, float, float]:
        """Minimise ``||s||_1 + top + max_k (c + G s)_k`` with ``s = lambda m (w - w0)``.

        Returns the weights, the multiplier of each row, the value and a lower bound on it.
        """
        from scipy.optimize import linprog

        m, d = slopes.shape
        price, w0 = self.weight * self.factor(d), self.centre(d)
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
        primal = top + float(np.abs(step).sum() + (c + G @ step).max())
        alpha = np.maximum(-found.ineqlin.marginals, 0.0)
        alpha = alpha / alpha.sum()
        excess = max(1.0, float(np.abs(G.T @ alpha).max(initial=0)))
        alpha = alpha / excess
        alpha[-1] += 1 - 1 / excess  # the row of slope zero takes the excess due to rounding
        feasible = np.abs(G.T @ alpha).max(initial=0) <= 1 + 1e-9
        return w0 + step / price, alpha, primal, top + float(c @ alpha) if feasible else -np.inf
