"""Regularisers: how far weights may go from a prior, and in which directions.

``L2``: ``lambda/2 (w - w_prior)' M (w - w_prior)``; ``L1``: ``lambda sum_i m_i |w_i - w_prior_i|``.

The regulariser of eq. 1.9 (000, section 1.6.2): weights of several domains tied to shared ones.

    lambda/2 (w - w0)' M (w - w0)  +  rho/2 sum_d (w^d - w)' M (w^d - w)

Whatever the w^d are, the best shared weights are ``w = (lambda w0 + rho sum_d w^d) /
(lambda + D rho)``. With w put in, what is left is a quadratic function of the stacked w^d whose
inverse Hessian is ``(11'/lambda + I/rho) x M^-1``: ``1/tau = 1/lambda + 1/rho`` on its diagonal
and ``1/lambda`` beside it, as in the dual of section 1.6.3. With ``11'/lambda + I/rho = C C'``
and ``M = L L'`` the domains' weights are ``w^d = w0 + sum_r C_dr L'^-1 z_r`` and the regulariser
is ``1/2 ||z||^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, helmert, solve_triangular

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


@dataclass(frozen=True)
class Coupling:
    """How far domains may differ from each other, and the shared weights from the prior.

    Parameters
    ----------
    weight
        lambda > 0; inf fixes the shared weights at the prior, so that every domain is trained
        on its own with rho in place of lambda.
    tie
        rho > 0; inf makes all domains equal, which is training on their union with lambda.
    prior
        w0, shape (d,); None: zero.
    metric
        M as in `L2`, the same for both terms.
    """

    weight: float
    tie: float
    prior: FloatArray | None = None
    metric: FloatArray | None = None

    def shared(self, weights: FloatArray) -> FloatArray:
        """The best shared weights w for those of the domains (D, d), shape (d,)."""
        w0 = self._centre(weights.shape[1])
        if np.isinf(self.weight):
            return w0
        if np.isinf(self.tie):
            first: FloatArray = weights[0]
            return first
        step: FloatArray = (weights - w0).mean(axis=0)
        return w0 + step / (1 + self.weight / (len(weights) * self.tie))

    def value(self, weights: FloatArray) -> float:
        """Value at the domains' weights (D, d) and the best shared ones.

        For rho = inf the domains must be equal, see `project`.
        """
        w, total = self.shared(weights), 0.0
        if np.isfinite(self.weight):
            total += self._l2(self.weight, self.prior).value(w)
        if np.isfinite(self.tie):
            tie = self._l2(self.tie, w)
            total += sum(tie.value(w_d) for w_d in weights)
        return total

    def project(self, weights: FloatArray) -> FloatArray:
        """The domains' weights, made equal where rho is inf; shape (D, d)."""
        if np.isfinite(self.tie):
            return weights
        w0 = self._centre(weights.shape[1])
        return np.tile(w0 + (weights - w0).mean(axis=0), (len(weights), 1))

    def factor(self, n_domains: int) -> FloatArray:
        """C with ``C C' = 11'/lambda + I/rho``, shape (D, D), (D, 1) for rho = inf."""
        together = n_domains / self.weight + 1 / self.tie
        columns = [np.full((n_domains, 1), np.sqrt(together / n_domains))]
        if np.isfinite(self.tie):
            columns.append(helmert(n_domains).T / np.sqrt(self.tie))
        return np.hstack(columns)

    def whitened(self, slopes: FloatArray, row: FloatArray) -> FloatArray:
        """Slopes (m, d) of a domain in the coordinates z, from its row of C; shape (m, r d)."""
        single = whiten(self.metric, slopes)
        return np.hstack([c * single for c in row])

    def unwhitened(self, z: FloatArray, factor: FloatArray) -> FloatArray:
        """The domains' weights of coordinates z (r d,), shape (D, d)."""
        parts = z.reshape(factor.shape[1], -1)
        steps = factor @ np.array([unwhiten(self.metric, part) for part in parts])
        return self._centre(parts.shape[1]) + steps

    def _centre(self, d: int) -> FloatArray:
        return centre(self._l2(1.0, self.prior), d)

    def _l2(self, weight: float, prior: FloatArray | None) -> L2:
        return L2(weight, prior, self.metric)


def check_coupling(coupling: Coupling, d: int) -> None:
    """Refuse a coupling that does not fit ``d`` weights.

    Raises
    ------
    InputError
        If lambda or rho is not positive, both are infinite, or prior or metric do not fit.
    """
    for name, value in (("lambda", coupling.weight), ("rho", coupling.tie)):
        if not value > 0:
            raise InputError(f"{name} must be positive, not {value}")
    if np.isinf(coupling.weight) and np.isinf(coupling.tie):
        raise InputError("lambda and rho are both infinite, so there is nothing to learn")
    check_regularizer(L2(1.0, coupling.prior, coupling.metric), d)
