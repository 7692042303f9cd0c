"""Regularisers: how far weights may go from a prior, and in which directions.

``L2``: ``lambda/2 (w - w0)' M (w - w0)``; ``L1``: ``lambda sum_i m_i |w_i - w0_i|``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError


@dataclass(frozen=True)
class L2:
    """Squared distance from the prior.

    With the weights of a source model as the prior this learns the delta function of 004
    (Algorithm 1), where each cutting plane is a bound on the penalty and 1/lambda is its C:

        f_target(x, y) = <w0, phi(x, y)> + <w - w0, phi(x, y)>,    min  lambda/2 |w - w0|^2 + risk

    Features that only the target has get weight 0 in w0; those that keep the source's weight are
    fixed by the metric.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights w0 to stay close to, shape (d,); None: zero.
    metric
        M: None for the identity, a positive diagonal of shape (d,), or a symmetric positive
        definite matrix of shape (d, d), such as the inverse covariance of a pretrained prior.
        Where a diagonal is inf, the weight stays at the prior.
    """

    weight: float
    prior: Array | None = None
    metric: Array | None = None

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        step = w - centre(self, w.shape[-1])
        metric = np.ones(w.shape[-1]) if self.metric is None else self.metric
        if metric.ndim == 1:
            with np.errstate(invalid="ignore"):  # inf * 0 where a weight is fixed at the prior
                scaled = np.where(step == 0, 0.0, metric * step)
        else:
            scaled = step @ metric
        return np.asarray(0.5 * self.weight * (step * scaled).sum(axis=-1))

    def whitened(self, slopes: Array) -> Array:
        """Slopes (m, d) in coordinates ``z = sqrt(lambda) L'(w - w0)``, with ``M = L L'``."""
        return self._solved(slopes, "N") / np.sqrt(self.weight)

    def unwhitened(self, z: Array) -> Array:
        """Weights of coordinates z, shape (d,)."""
        return centre(self, len(z)) + self._solved(z[None], "T")[0] / np.sqrt(self.weight)

    def inverse(self, d: int) -> Array:
        """``M^-1 / lambda``, as a diagonal (d,) or a matrix (d, d)."""
        metric = np.ones(d) if self.metric is None else self.metric
        return np.asarray(
            (1.0 / metric if metric.ndim == 1 else np.linalg.inv(metric)) / self.weight
        )

    def _solved(self, rows: Array, trans: str) -> Array:
        """``L^-1 a`` ("N") or ``L^-T a`` ("T") of each row a, shape (m, d)."""
        if self.metric is None:
            return rows
        if self.metric.ndim == 1:
            scaled: Array = rows / np.sqrt(self.metric)
            return scaled
        lower = cholesky(self.metric, lower=True)
        return np.asarray(solve_triangular(lower, rows.T, lower=True, trans=trans).T)


@dataclass(frozen=True)
class L1:
    """Absolute distance from the prior: few weights leave it.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights w0 to stay close to, shape (d,); None: zero.
    metric
        Positive factor m of each weight, shape (d,); None: one.
    """

    weight: float
    prior: Array | None = None
    metric: Array | None = None

    def value(self, w: Array) -> Array:
        """Value at weights (d,), or at each of several, (k, d)."""
        step = np.abs(w - centre(self, w.shape[-1]))
        return np.asarray(self.weight * (step * self.factor(w.shape[-1])).sum(axis=-1))

    def factor(self, d: int) -> Array:
        """m, shape (d,)."""
        return np.ones(d) if self.metric is None else np.asarray(self.metric, dtype=float)


Regularizer = L2 | L1


def centre(regularizer: Regularizer, d: int) -> Array:
    """The prior, or zeros, shape (d,)."""
    return np.zeros(d) if regularizer.prior is None else np.asarray(regularizer.prior, dtype=float)


def check_regularizer(regularizer: Regularizer, d: int) -> None:
    """Refuse a regulariser that does not fit ``d`` weights."""
    if not (np.isfinite(regularizer.weight) and regularizer.weight > 0):
        raise InputError(
            f"the weight of the regulariser must be positive, not {regularizer.weight}"
        )
    prior = regularizer.prior
    if prior is not None and (np.shape(prior) != (d,) or not np.isfinite(prior).all()):
        raise InputError(
            f"the prior has shape {np.shape(prior)} and must be {d} finite weights, one for each "
            "feature; it may belong to another set of features"
        )
    if regularizer.metric is not None:
        metric = np.asarray(regularizer.metric, dtype=float)
        _check_metric(metric, d, not isinstance(regularizer, L1))


def _check_metric(metric: Array, d: int, full: bool) -> None:
    shapes = [(d,), (d, d)] if full else [(d,)]
    fixed = np.isposinf(metric) if full and metric.ndim == 1 else np.zeros(metric.shape, dtype=bool)
    if metric.shape not in shapes or not (np.isfinite(metric) | fixed).all():
        raise InputError(f"the metric has shape {metric.shape} and must be finite, {shapes}")
    if metric.ndim == 1:
        if not (metric > 0).all():
            raise InputError(f"the metric of feature {np.argmin(metric)} is not positive")
    elif not np.allclose(metric, metric.T) or np.linalg.eigvalsh(metric)[0] <= 0:
        raise InputError("the metric is not symmetric positive definite; add a small diagonal")
