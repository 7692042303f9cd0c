"""Regularisers: how far weights may go from a prior, and in which directions.

``L2``: ``lambda/2 (w - w_prior)' M (w - w_prior)``; ``L1``: ``lambda sum_i m_i |w_i - w_prior_i|``.

``Coupling`` ties the weights of several domains to shared ones (000, section 1.6.2, eq. 1.9):

    lambda/2 (w - w0)' M (w - w0)  +  rho/2 sum_d (w^d - w)' M (w^d - w)

Whatever the w^d are, the best shared weights are ``w = (lambda w0 + rho sum_d w^d) /
(lambda + D rho)``. With w put in, what is left is a quadratic function of the stacked w^d whose
inverse Hessian is ``(11'/lambda + I/rho) x M^-1``: ``1/tau = 1/lambda + 1/rho`` on its diagonal
and ``1/lambda`` beside it, as in the dual of section 1.6.3. With ``11'/lambda + I/rho = C C'``
and ``M = L L'`` the domains' weights are ``w^d = w0 + sum_r C_dr L'^-1 z_r`` and the regulariser
is ``1/2 ||z||^2``. With one domain it is L2 with tau.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, helmert, solve_triangular

from bridgetrack.errors import InputError
from bridgetrack.learning.model import FloatArray

IntArray = NDArray[np.intp]


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

    def whitened(self, slopes: FloatArray, domains: IntArray) -> FloatArray:
        """Slopes in coordinates z in which the value is ``1/2 ||z||^2``, shape (m, d)."""
        rows: FloatArray = whiten(self.metric, slopes) / np.sqrt(self.weight)
        return rows

    def unwhitened(self, z: FloatArray, n_domains: int) -> FloatArray:
        """Weights of coordinates z, shape (d,)."""
        w: FloatArray = centre(self, len(z)) + unwhiten(self.metric, z) / np.sqrt(self.weight)
        return w


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
        w0 = centre(self, weights.shape[1])
        if np.isinf(self.weight):
            return w0
        if np.isinf(self.tie):
            first: FloatArray = weights[0].copy()
            return first
        step: FloatArray = (weights - w0).mean(axis=0)
        return w0 + step / (1 + self.weight / (len(weights) * self.tie))

    def value(self, weights: FloatArray) -> float:
        """Value at the domains' weights (D, d) and the best shared ones.

        For rho = inf the domains must be equal, see `project`.
        """
        w, total = self.shared(weights), 0.0
        if np.isfinite(self.weight):
            total += L2(self.weight, self.prior, self.metric).value(w)
        if np.isfinite(self.tie):
            tie = L2(self.tie, w, self.metric)
            total += sum(tie.value(w_d) for w_d in weights)
        return total

    def project(self, weights: FloatArray) -> FloatArray:
        """The domains' weights, made equal where rho is inf; shape (D, d)."""
        if np.isfinite(self.tie):
            return weights
        w0 = centre(self, weights.shape[1])
        return np.tile(w0 + (weights - w0).mean(axis=0), (len(weights), 1))

    def factor(self, n_domains: int) -> FloatArray:
        """C with ``C C' = 11'/lambda + I/rho``, shape (D, D), (D, 1) for rho = inf."""
        together = n_domains / self.weight + 1 / self.tie
        columns = [np.full((n_domains, 1), np.sqrt(together / n_domains))]
        if np.isfinite(self.tie):
            columns.append(helmert(n_domains).T / np.sqrt(self.tie))
        return np.hstack(columns)

    def whitened(self, slopes: FloatArray, domains: IntArray) -> FloatArray:
        """Slopes (m, d) of bounds on some domains (m,) in the coordinates z, shape (m, r d)."""
        factor = self.factor(int(domains.max()) + 1)[domains]
        single = whiten(self.metric, slopes)
        return np.asarray((factor[:, :, None] * single[:, None, :]).reshape(len(slopes), -1))

    def unwhitened(self, z: FloatArray, n_domains: int) -> FloatArray:
        """The domains' weights of coordinates z (r d,), shape (D, d)."""
        factor = self.factor(n_domains)
        parts = z.reshape(factor.shape[1], -1)
        steps = factor @ np.array([unwhiten(self.metric, part) for part in parts])
        return centre(self, parts.shape[1]) + steps


def delta_regularizer(
    weight: float,
    source: FloatArray,
    *,
    free: NDArray[np.bool_] | None = None,
    metric: FloatArray | None = None,
) -> L2:
    """A source predictor that stays as it is, and a learned delta function (004, Algorithm 1).

        f_target(x, y) = f_source(x, y) + <delta, Psi(x, y)>,      min  lambda/2 |delta|^2 + risk

    Each cutting plane of 004 is a bound on the risk's penalty, and 1/lambda is its C. In terms of
    the target model's joint feature phi, which holds what the source uses and what the delta
    uses, ``f_source = <w_source, phi>`` and Psi are the *free* features. With the same features on
    both sides this is training with the prior w_source. Features that only the target has get
    weight 0 in w_source; a source that is no linear function of phi enters as one more feature,
    its score, with weight 1 and not free. Of what is learned, ``w - source`` is the delta.

    Parameters
    ----------
    weight
        lambda > 0.
    source
        w_source in the target's features, shape (d,).
    free
        Which features belong to Psi, shape (d,); None: all.
    metric
        M, see `L2`; a full matrix only where all features are free.

    Returns
    -------
    L2
        ``lambda/2 delta' M delta`` for ``delta = w - source``, delta zero where it is not free.

    Raises
    ------
    InputError
        If the shapes do not fit, no feature is free, or a full matrix meets features that are not.
    """
    d = len(source)
    if free is None or bool(np.all(free)):
        return L2(weight, source, metric)
    free = np.asarray(free, dtype=bool)
    if free.shape != (d,) or not free.any():
        raise InputError(
            f"the free features have shape {free.shape}; {d} are needed, at least one of them free"
        )
    if metric is not None and np.ndim(metric) != 1:
        raise InputError("a full metric needs all features to be free; give its diagonal")
    factor = np.ones(d) if metric is None else np.asarray(metric, dtype=float)
    return L2(weight, source, np.where(free, factor, np.inf))


def centre(regularizer: Regularizer | Coupling, d: int) -> FloatArray:
    """The prior, or zeros, shape (d,)."""
    return np.zeros(d) if regularizer.prior is None else np.asarray(regularizer.prior, dtype=float)


def check_regularizer(regularizer: Regularizer | Coupling, d: int) -> None:
    """Refuse a regulariser that does not fit ``d`` weights."""
    if isinstance(regularizer, Coupling):
        for name, value in (("lambda", regularizer.weight), ("rho", regularizer.tie)):
            if not value > 0:
                raise InputError(f"{name} must be positive, not {value}")
        if np.isinf(regularizer.weight) and np.isinf(regularizer.tie):
            raise InputError("lambda and rho are both infinite, so there is nothing to learn")
    elif not (np.isfinite(regularizer.weight) and regularizer.weight > 0):
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
        full = not isinstance(regularizer, L1)
        _check_metric(np.asarray(metric, dtype=float), d, full)


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
        with np.errstate(invalid="ignore"):  # inf * 0 where a weight is fixed at the prior
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
