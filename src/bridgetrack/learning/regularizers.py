"""Regularisers: how far weights may go from a prior, and in which directions.

``L2``: ``lambda/2 (w - w_prior)' M (w - w_prior)``; ``L1``: ``lambda sum_i m_i |w_i - w_prior_i|``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from bridgetrack.errors import InputError
from bridgetrack.learning.model import FloatArray


@dataclass(frozen=True)
class L2:
    """Squared distance from the prior.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights to stay close to, shape (d,); None: zero.
    metric
        M: None for the identity, a positive diagonal of shape (d,), or a symmetric positive
        definite matrix of shape (d, d), such as the inverse covariance of a pretrained prior.
        Where a diagonal is inf, the weight stays at the prior.
    """

    weight: float
    prior: FloatArray | None = None
    metric: FloatArray | None = None

    def value(self, w: FloatArray) -> float:
        """Value at weights ``w``."""
        step = w - centre(self, len(w))
        scaled = step if self.metric is None else _times(self.metric, step)
        return 0.5 * self.weight * float(step @ scaled)


@dataclass(frozen=True)
class L1:
    """Absolute distance from the prior: few weights leave it.

    Parameters
    ----------
    weight
        lambda > 0.
    prior
        Weights to stay close to, shape (d,); None: zero.
    metric
        Positive factor of each weight, shape (d,); None: one.
    """

    weight: float
    prior: FloatArray | None = None
    metric: FloatArray | None = None

    def value(self, w: FloatArray) -> float:
        """Value at weights ``w``."""
        step = np.abs(w - centre(self, len(w)))
        return self.weight * float(step.sum() if self.metric is None else self.metric @ step)


Regularizer = L2 | L1


def centre(regularizer: Regularizer, d: int) -> FloatArray:
    """The prior, or zeros, shape (d,)."""
    return np.zeros(d) if regularizer.prior is None else np.asarray(regularizer.prior, dtype=float)


def check_regularizer(regularizer: Regularizer, d: int) -> None:
    """Refuse a regulariser that does not fit ``d`` weights.

    Raises
    ------
    InputError
        If the weight is not positive, or prior or metric are of the wrong shape, not finite or
        not positive (definite).
    """
    if not (np.isfinite(regularizer.weight) and regularizer.weight > 0):
        raise InputError(
            f"the weight of the regulariser must be positive, not {regularizer.weight}"
        )
    prior, metric = regularizer.prior, regularizer.metric
    if prior is not None and (np.shape(prior) != (d,) or not np.isfinite(prior).all()):
        raise InputError(
            f"the prior has shape {np.shape(prior)} and must be {d} finite weights, one for each "
            "feature; it may belong to another set of features"
        )
    if metric is not None:
        _check_metric(np.asarray(metric, dtype=float), d, full=isinstance(regularizer, L2))


def whiten(metric: FloatArray | None, rows: FloatArray) -> FloatArray:
    """``L^-1 a`` for each row a, with ``M = L L'``; shape of ``rows`` (m, d)."""
    if metric is None:
        return rows
    if metric.ndim == 1:
        scaled: FloatArray = rows / np.sqrt(metric)
        return scaled
    lower = cholesky(metric, lower=True)
    solved: FloatArray = solve_triangular(lower, rows.T, lower=True).T
    return solved


def unwhiten(metric: FloatArray | None, u: FloatArray) -> FloatArray:
    """``L^-T u``: back from whitened coordinates, shape (d,)."""
    if metric is None:
        return u
    if metric.ndim == 1:
        scaled: FloatArray = u / np.sqrt(metric)
        return scaled
    lower = cholesky(metric, lower=True)
    solved: FloatArray = solve_triangular(lower, u, lower=True, trans="T")
    return solved


def _times(metric: FloatArray, step: FloatArray) -> FloatArray:
    if metric.ndim == 1:
        with np.errstate(invalid="ignore"):
            scaled: FloatArray = np.where(step == 0, 0.0, metric * step)
        return scaled
    product: FloatArray = metric @ step
    return product


def _check_metric(metric: FloatArray, d: int, full: bool) -> None:
    shapes = [(d,), (d, d)] if full else [(d,)]
    fixed = np.isposinf(metric) if full and metric.ndim == 1 else np.zeros(metric.shape, dtype=bool)
    if metric.shape not in shapes or not (np.isfinite(metric) | fixed).all():
        raise InputError(f"the metric has shape {metric.shape} and must be finite, {shapes}")
    if metric.ndim == 1:
        if not (metric > 0).all():
            raise InputError(f"the metric of feature {np.argmin(metric)} is not positive")
    elif not np.allclose(metric, metric.T) or np.linalg.eigvalsh(metric)[0] <= 0:
        raise InputError("the metric is not symmetric positive definite; add a small diagonal")
